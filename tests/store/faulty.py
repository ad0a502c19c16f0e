"""A store that dies at a chosen call, so that a test can try every point at which a process may be killed.

for at in count(1):
    store = CrashingStore(MemoryStore(...), at=at)
    with suppress(Crash):
        await work(store)
    if not store.crashed:
        break
    await recover(store.inner.reopen())     # after the dead one's leases expired
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeVar

from harness_core.events import Event
from harness_core.ports import Lease, SessionStore, Unsubscribe

T = TypeVar("T")


class Crash(BaseException):
    """The process died here. No Exception, so that nothing takes it for something to recover from."""


class Mortal(SessionStore, Protocol):
    """A store that can stop its heartbeat, as a dead process does."""

    def stall(self) -> None: ...


class CrashingStore:
    """A SessionStore that raises Crash at its n-th call: before performing it, or with `performed` after.

    Calls are counted from 1: append, read, open, last_seq, sessions, find, unfinished, lease (entering), rest and
    release (leaving); `log` names them. at=None only counts. Once it has crashed nothing reaches the inner store any
    more, not even the release of its leases, and its heartbeat has stopped: they expire, as those of a killed process
    do.
    """

    def __init__(self, inner: Mortal, at: int | None = None, *, performed: bool = False) -> None:
        self.inner = inner
        self.at = at
        self.performed = performed
        self.crashed = False
        self.log: list[str] = []

    async def append(self, session_id: str, events: Event | Sequence[Event], **how: Any) -> tuple[Event, ...]:
        return await self.call("append", lambda: self.inner.append(session_id, events, **how))

    async def read(self, session_id: str, after: int = 0) -> Sequence[Event]:
        return await self.call("read", lambda: self.inner.read(session_id, after))

    async def open(self, session_id: str) -> Sequence[Event]:
        return await self.call("open", lambda: self.inner.open(session_id))

    async def last_seq(self, session_id: str) -> int:
        return await self.call("last_seq", lambda: self.inner.last_seq(session_id))

    async def unfinished(self, now: float) -> Sequence[str]:
        return await self.call("unfinished", lambda: self.inner.unfinished(now))

    async def sessions(self, prefix: str = "") -> Sequence[str]:
        return await self.call("sessions", lambda: self.inner.sessions(prefix))

    async def find(self, kind: str, prefix: str = "") -> Sequence[Event]:
        return await self.call("find", lambda: self.inner.find(kind, prefix))

    def lease(self, session_id: str) -> CrashingLease:
        return CrashingLease(self, session_id)

    def changed(self, told: Callable[[str, tuple[Event, ...]], None]) -> Unsubscribe:
        return self.inner.changed(told)

    async def close(self) -> None:
        """Closing is no point to crash at; it is how a test tidies up."""
        await self.inner.close()

    async def call(self, name: str, perform: Callable[[], Awaitable[T]]) -> T:
        if self.crashed:
            raise Crash(f"dead before {name}")
        self.log.append(name)
        number = len(self.log)
        if number == self.at and not self.performed:
            self.die(f"before {name}, call {number}")
        result = await perform()
        if number == self.at:
            self.die(f"after {name}, call {number}")
        return result

    def die(self, where: str) -> None:
        self.crashed = True
        self.inner.stall()
        raise Crash(where)


class CrashingLease:
    """The lease of a store that may die: entering, resting and leaving are calls of their own."""

    def __init__(self, store: CrashingStore, session_id: str) -> None:
        self.session_id = session_id
        self.fence = 0
        self._store = store
        self._context = store.inner.lease(session_id)
        self._inner: Lease | None = None

    async def __aenter__(self) -> Lease | None:
        self._inner = await self._store.call("lease", self._context.__aenter__)
        if self._inner is None:
            return None
        self.fence = self._inner.fence
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inner is None:
            return
        if not self._store.crashed:
            await self._store.call("release", lambda: self._context.__aexit__(kind, error, trace))
        elif kind is None:
            raise Crash("dead before release")

    def valid(self) -> bool:
        return self._inner is not None and not self._store.crashed and self._inner.valid()

    async def rest(self, seq: int, until: float | None = None) -> None:
        inner = self._inner
        assert inner is not None
        await self._store.call("rest", lambda: inner.rest(seq, until))
