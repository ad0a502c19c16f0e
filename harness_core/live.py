"""Who watches a session, and what each watcher sees: one request from its RunStart to exactly one RunEnd."""

from __future__ import annotations

import asyncio
from typing import Protocol

from harness_core.events import Event, HITLPending, ReasonEnd, RunEnd, RunStart
from harness_core.journal import Journal
from harness_core.session import Trace


class Watcher:
    """One stream. prompt_seq: the prompt that it brought, so that it does not end before that was taken up."""

    def __init__(self, prompt_seq: int | None = None) -> None:
        self.prompt_seq = prompt_seq
        self.queue: asyncio.Queue[Event | BaseException] = asyncio.Queue()
        self.done = False
        self._started = False
        self._shown_pending = False

    def push(self, event: Event, trace: Trace) -> None:
        """Show an event. A stream that joins late begins with a passing RunStart all the same."""
        if self.done or (event.seq or self.prompt_seq or 0) < (self.prompt_seq or 0):
            return  # what was before this stream's prompt, as another stream may be shown it, is none of its request
        if isinstance(event, RunEnd) and self._still_in(trace):
            return  # the run that ended is not the one that takes up this stream's prompt
        if not self._started and not isinstance(event, RunStart):
            self.queue.put_nowait(_passing_start(event, trace))
        self._started = True
        self._shown_pending = self._shown_pending or isinstance(event, HITLPending)
        if isinstance(event, ReasonEnd):
            self._shown_pending = False
        self.queue.put_nowait(event)
        self.done = isinstance(event, RunEnd)

    def finish(self, trace: Trace, now: float) -> None:
        """The session rests: end this request with what it rests on."""
        if self.done:
            return
        sid = trace.session_id
        if trace.run is None:
            self.push(RunEnd("completed", trace.answer, session_id=sid, at=now), trace)
            return
        run_id = trace.run.run_id
        if not self._shown_pending:
            self.push(HITLPending(trace.pending, session_id=sid, run_id=run_id, at=now), trace)
        self.push(RunEnd("pending", waiting_for(trace), session_id=sid, run_id=run_id, at=now), trace)

    def fail(self, error: BaseException) -> None:
        """The engine could not go on; whoever watches must know."""
        if not self.done:
            self.done = True
            self.queue.put_nowait(error)

    def _still_in(self, trace: Trace) -> bool:
        return trace.run is None and any(p.seq == self.prompt_seq for p in trace.inbox)


def waiting_for(trace: Trace) -> str:
    """What a suspended session waits for, in one line."""
    tasks = ", ".join(f"{t.tool_name} #{t.short_id}" for t in trace.pending)
    return f"Waiting for a decision on {tasks}."


def _passing_start(event: Event, trace: Trace) -> RunStart:
    run = trace.run
    return RunStart(
        run.run_id if run else event.run_id,
        attempt=run.attempt if run else 1,
        resumed=run is not None,
        requested_by=run.requested_by if run else "",
        session_id=event.session_id,
        at=event.at,
    )


class Stage(Protocol):
    """Where a session's events are shown, and where a stop arrives. acting: tools of it run now."""

    acting: bool

    @property
    def stopping(self) -> asyncio.Future[None]:
        """Done once a stop was requested."""

    def publish(self, event: Event, trace: Trace) -> None:
        """Show an event to whoever watches."""

    def go_on(self) -> None:
        """No stop is requested, or not any more."""


class Aside:
    """A sub-agent's stage: nobody watches it, and it is stopped with its session."""

    def __init__(self, session: Stage) -> None:
        self._session = session

    @property
    def stopping(self) -> asyncio.Future[None]:
        """The session's."""
        return self._session.stopping

    @property
    def acting(self) -> bool:
        """Tools run now, of the session or a sub-agent of it."""
        return self._session.acting

    @acting.setter
    def acting(self, acting: bool) -> None:
        self._session.acting = acting

    def publish(self, event: Event, trace: Trace) -> None:
        """Only a sub-agent's questions are seen, and those in the session."""

    def go_on(self) -> None:
        """The session says so."""


class Live:
    """A session that somebody works on in this process. woken: look (again). stopping: done once a stop was requested.
    acting: tools of it run now.

    A future and not an event, which would take a task to wait for beside something else.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.watchers: list[Watcher] = []
        self.shown = 0  # the last fact that was shown
        self.woken = True
        self.acting = False
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.followed: Journal | None = None
        self.task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Interrupt what runs."""
        if not self.stopping.done():
            self.stopping.set_result(None)

    def go_on(self) -> None:
        """No stop is requested, or not any more."""
        if self.stopping.done():
            self.stopping = asyncio.get_running_loop().create_future()

    def publish(self, event: Event, trace: Trace) -> None:
        """Show an event to everybody."""
        self.shown = max(self.shown, event.seq or 0)
        for watcher in self.watchers:
            watcher.push(event, trace)

    def finish(self, trace: Trace, now: float) -> None:
        """End the requests that have not ended."""
        for watcher in self.watchers:
            watcher.finish(trace, now)

    def fail(self, error: BaseException) -> None:
        """Tell everybody that it failed."""
        for watcher in self.watchers:
            watcher.fail(error)

    @property
    def since(self) -> int | None:
        """The fact after which all is news to whoever prompted and waits; None if everybody only resumes."""
        asked = [w.prompt_seq for w in self.watchers if not w.done and w.prompt_seq]
        return max(min(asked), self.shown) if asked else None

    @property
    def watched(self) -> bool:
        """Whether a request waits for its end."""
        return any(not w.done for w in self.watchers)
