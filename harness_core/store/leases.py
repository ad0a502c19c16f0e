"""Who holds a session and for how long: heartbeats and leases, as one process sees its own."""

from __future__ import annotations

import math
import threading
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from harness_core.ports import Clock, Lease

BEAT_EVERY: Final = 1.0  # seconds between two heartbeats of a process
EXPIRY: Final = 3.0  # seconds without a heartbeat after which others may take a process's sessions over
MARGIN: Final = 0.5  # seconds before expiry at which a holder stops trusting its own lease


def alive(beat_at: float, now: float) -> bool:
    """Whether a process that beat then may still live. Both in seconds since the epoch.

    A beat from the future is as good as none: the clock was set back, and whoever lives beats again in a second.
    """
    return abs(now - beat_at) <= EXPIRY


class Rest(NamedTuple):
    """Nothing is to be done up to fact `seq`, or until this time (seconds since the epoch)."""

    seq: int
    until: float | None


class Beats:
    """When this process was last known alive, by monotonic time.

    A pause longer than the expiry ends a *life*: somebody may have taken over meanwhile, so no lease of an earlier life
    is ever trusted again, even though the process beats once more.
    """

    def __init__(self) -> None:
        self.life = 0
        self._last = -math.inf
        self._lock = threading.Lock()  # the heartbeat's thread and the store's both note beats

    def note(self, began: float, ended: float) -> None:
        """A beat was written between these two moments. The earlier one counts, so that we err on the safe side."""
        with self._lock:
            if ended - self._last > EXPIRY - MARGIN:
                self.life += 1
            self._last = max(self._last, began)

    def stop(self, now: float) -> None:
        """There will be no more beats; the last one was now at the latest."""
        with self._lock:
            self._last = min(self._last, now)

    def fresh(self, now: float) -> bool:
        """Whether the process was alive so lately that nobody can have taken over yet."""
        return now - self._last <= EXPIRY - MARGIN

    def due(self, now: float) -> bool:
        """Whether a lease taken now should bring its own heartbeat."""
        return now - self._last > BEAT_EVERY


class Leasing(Protocol):
    """What a lease needs of its store."""

    async def enter(self, lease: HeldLease) -> bool:
        """Take the session; False if somebody else holds it."""

    async def leave(self, lease: HeldLease) -> None:
        """Let the session go, and write down its rest."""


class HeldLease:
    """The right to write to a session, from `async with` until its end. See ports.Lease."""

    def __init__(self, store: Leasing, session_id: str, beats: Beats, clock: Clock) -> None:
        self.session_id = session_id
        self.fence = 0  # set by the store once taken; 0 stands for never taken
        self.life = 0
        self.resting: Rest | None = None
        self._store = store
        self._beats = beats
        self._clock = clock

    async def __aenter__(self) -> Lease | None:
        return self if await self._store.enter(self) else None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.life:
            await self._store.leave(self)

    def valid(self) -> bool:
        """Whether nobody else can have taken over yet, by this machine's monotonic time."""
        return bool(self.life) and self.life == self._beats.life and self._beats.fresh(self._clock.monotonic())

    async def rest(self, seq: int, until: float | None = None) -> None:
        """Note that nothing is to be done up to fact `seq`, or until this time (seconds since the epoch).

        Written together with the release: who dies before it has not rested.
        """
        self.resting = Rest(seq, until)
