"""The calls of the last model message while any of them is open, as facts change them.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness_core.events import (
    HITLDecided,
    HITLPending,
    HITLSubmitted,
    HITLVoted,
    Inspected,
    ToolCallEnd,
    ToolCallStart,
)
from harness_core.hitl import HITLTask
from harness_core.trace import Asked, CallState, works_in
from harness_core.types import Args, effect


class OpenBatch:
    """Calls by their ids, in model order, with the questions about them: their own, and those of sub-agents' calls."""

    def __init__(self, states: Iterable[CallState] = ()) -> None:
        self._states = {state.call.call_uuid: state for state in states}

    @property
    def states(self) -> tuple[CallState, ...]:
        """Where each call stands, in model order."""
        return tuple(self._states.values())

    def of(self, call_uuid: str) -> CallState | None:
        """Where this call stands, if it is one of the batch."""
        return self._states.get(call_uuid)

    @property
    def settled(self) -> bool:
        """Whether there are calls, and each has its result."""
        return bool(self._states) and all(state.end for state in self._states.values())

    def inspected(self, event: Inspected) -> None:
        """A tool has looked at the world, for a call of the batch or of a sub-agent."""
        digest, found = event.args_digest, event.found
        self._change(event.call_uuid, lambda c: replace(c, inspections={**c.inspections, digest: found}))
        self._of_child(event.call_uuid, lambda one: replace(one, inspected=(*one.inspected, event)))

    def rewritten(self, call_uuid: str, args: Args) -> None:
        """Hooks gave the call other arguments."""
        self._change(call_uuid, lambda c: replace(c, rewritten=args))

    def suspended(self, event: HITLPending) -> None:
        """Calls were put to people."""
        for task in event.tasks:
            if task.session:
                self._ask_within(task)
            else:
                self._ask(task)

    def voted(self, event: HITLVoted) -> None:
        """One of the people whose approvals a question wants approved it."""
        for uuid, state in self._states.items():
            if state.task and state.task.fingerprint == event.fingerprint:
                self._states[uuid] = replace(state, votes=(*state.votes, event))
            for one in state.asked:
                if one.task.fingerprint == event.fingerprint:
                    self._of_child(one.task.call_uuid, lambda one: replace(one, votes=(*one.votes, event)))

    def submitted(self, event: HITLSubmitted) -> None:
        """A question has its answer; the first one counts."""
        for uuid, state in self._states.items():
            if state.task and state.task.fingerprint == event.fingerprint and state.submitted is None:
                self._states[uuid] = replace(state, submitted=event)
            for one in state.asked:
                if one.task.fingerprint == event.fingerprint and one.submitted is None:
                    self._of_child(one.task.call_uuid, lambda one: replace(one, submitted=event))

    def decided(self, event: HITLDecided) -> None:
        """A decision was applied."""
        self._change(event.call_id, lambda c: replace(c, decided=event))
        self._of_child(event.call_id, lambda one: replace(one, decided=event))

    def started(self, event: ToolCallStart) -> None:
        """A call began."""
        self._change(event.call.call_uuid, lambda c: replace(c, started=event))

    def ended(self, event: ToolCallEnd) -> None:
        """A call has its result."""
        self._of_child(event.call_uuid, lambda one: replace(one, end=event))
        self._change(event.call_uuid, lambda c: replace(c, end=event))

    def rejections(self, call_uuid: str) -> Mapping[str, str]:
        """By effect, who rejected it with the call that has this id; also where a sub-agent had asked for it."""
        rejected: dict[str, str] = {}
        for state in self._states.values():
            for one in state.questions:
                if one.submitted and one.task.call_uuid == call_uuid:
                    rejected[effect(one.task.tool_name, one.task.args)] = one.submitted.by
                    if state.call.call_uuid == call_uuid:
                        rejected[state.call.effect] = one.submitted.by
        return rejected

    def _ask(self, task: HITLTask) -> None:
        self._change(
            task.call_uuid, lambda c: replace(c, tasks=(*c.tasks, task), submitted=None, decided=None, votes=())
        )

    def _ask_within(self, task: HITLTask) -> None:
        for uuid, state in self._states.items():
            if works_in(state, task.session):
                self._states[uuid] = replace(state, asked=(*state.asked, Asked(task)))

    def _change(self, call_uuid: str, change: Callable[[CallState], CallState]) -> None:
        if call_uuid in self._states:
            self._states[call_uuid] = change(self._states[call_uuid])

    def _of_child(self, call_uuid: str, change: Callable[[Asked], Asked]) -> None:
        """Change the newest question about a sub-agent's call, if it is that."""
        for uuid, state in self._states.items():
            places = [n for n, one in enumerate(state.asked) if one.task.call_uuid == call_uuid]
            if places:
                asked = [*state.asked]
                asked[places[-1]] = change(asked[places[-1]])
                self._states[uuid] = replace(state, asked=tuple(asked))
