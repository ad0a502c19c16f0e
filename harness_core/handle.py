"""What people hold in their hands: a session, and HITL, the helper that reads its tasks and submits decisions."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness_core.batch import expired, expiry_of
from harness_core.errors import (
    AlreadyDecided,
    AlreadyVoted,
    AmbiguousTask,
    DeniedByPolicy,
    InvalidArguments,
    NotApplicable,
    TaskExpired,
    UnknownTask,
)
from harness_core.events import Event, HITLPending, HITLSubmitted, HITLVoted, Inspected, RuleChanged
from harness_core.hitl import Approve, Decision, Expired, HITLDecision, HITLTask, Rerun, edited, fits, lets_run
from harness_core.journal_ids import depth_of
from harness_core.permissions.judge import judge, misfit, people_for, refusal
from harness_core.session import CallState, Trace
from harness_core.trace import Asked
from harness_core.types import Args, canonical, digest

if TYPE_CHECKING:
    from harness_core.engine import HarnessEngine

Which = HITLTask | str  # a task, its fingerprint, or its call_uuid


@dataclass(frozen=True, slots=True)
class AgentSession:
    """One conversation, by id. All it knows is in the journal: two handles of one id are one session."""

    engine: HarnessEngine
    id: str

    async def trace(self) -> Trace:
        """What the session is now."""
        return await self.engine.trace(self)

    async def is_pending(self) -> bool:
        """Whether it waits for a person."""
        return bool((await self.trace()).pending)


class HITL:
    """Find the tasks of a session, and submit decisions.

    A submitted decision is stored; the session goes on when it is streamed without a prompt, or woken. Refusals are
    errors of the kind DecisionRefused, and change nothing.
    """

    @staticmethod
    async def get_pending_tasks(session: AgentSession) -> tuple[HITLTask, ...]:
        """The tasks that wait, in model order."""
        return (await session.trace()).pending

    @staticmethod
    async def get_pending_task(session: AgentSession) -> HITLTask | None:
        """The first task that waits."""
        return next(iter(await HITL.get_pending_tasks(session)), None)

    @staticmethod
    async def get_pending_task_by_call_uuid(session: AgentSession, call_uuid: str) -> HITLTask | None:
        """The waiting task of that call."""
        return next((t for t in await HITL.get_pending_tasks(session) if t.call_uuid == call_uuid), None)

    @staticmethod
    async def get_pending_task_by_tool_name(session: AgentSession, tool_name: str) -> HITLTask | None:
        """The waiting task of that tool. Raises AmbiguousTask if there is more than one."""
        tasks = [t for t in await HITL.get_pending_tasks(session) if t.tool_name == tool_name]
        if len(tasks) > 1:
            raise AmbiguousTask(f"{len(tasks)} calls of {tool_name} wait. Name the one that you mean by its id.")
        return tasks[0] if tasks else None

    @staticmethod
    async def submit(session: AgentSession, task: Which, decision: Decision, *, by: str = "", via: str = "") -> None:
        """Decide one task. The first decision wins. Where a rule wants several people, an approval is the vote of the
        person that `by` names, and the last one that is wanted decides; one reject or skip decides alone.
        """
        await HITL.submit_all(session, {_name(task): decision}, by=by, via=via)

    @staticmethod
    async def submit_all(
        session: AgentSession, decisions: Mapping[str, Decision], *, by: str = "", via: str = ""
    ) -> None:
        """Decide several tasks (by call_uuid or fingerprint), all or nothing."""
        if depth_of(session.id):  # where the session would not hear of it in time
            raise NotApplicable("What a sub-agent asks is decided in the session that it works in.")
        while True:  # refused because something came in between: look again, and decide or refuse on what is now
            trace = await session.trace()
            facts: list[Event] = []
            named: set[str] = set()
            for which, decision in decisions.items():
                state, one = await _waiting(session, trace, which)
                task = one.task
                run_id = trace.run.run_id if trace.run else task.run_id
                if task.fingerprint in named:
                    raise AmbiguousTask(f"#{task.short_id} is named twice. Give one decision for it.")
                named.add(task.fingerprint)
                new = await _facts(session, trace, state, one, decision, by, via)
                facts += [replace(fact, run_id=run_id) for fact in new]
            if not facts or await session.engine.store.append(session.id, facts, after=trace.seq):
                return

    @staticmethod
    async def approve(session: AgentSession, task: Which, *, by: str = "", always_allow: bool = False) -> None:
        """Let the call run as it was shown."""
        await HITL.submit(session, task, HITLDecision.approve(always_allow=always_allow), by=by)

    @staticmethod
    async def reject(session: AgentSession, task: Which, comment: str = "", *, by: str = "") -> None:
        """Refuse the call."""
        await HITL.submit(session, task, HITLDecision.reject(comment), by=by)

    @staticmethod
    async def skip(session: AgentSession, task: Which, comment: str = "", *, by: str = "", done: bool = False) -> None:
        """Go on without the call."""
        await HITL.submit(session, task, HITLDecision.skip(comment, done=done), by=by)


def _name(task: Which) -> str:
    return task.fingerprint if isinstance(task, HITLTask) else task


async def _facts(
    session: AgentSession, trace: Trace, state: CallState | None, asked: Asked, decision: Decision, by: str, via: str
) -> list[Event]:
    """What this decision adds to the journal. Raises what refuses it."""
    task, now = asked.task, session.engine.clock.now()
    if expired(task, now):
        expiry = replace(expiry_of(task), run_id=trace.run.run_id if trace.run else "", at=now)
        await session.engine.store.append(session.id, expiry, after=trace.seq)
        raise TaskExpired
    if not fits(task.kind, decision):
        name = getattr(decision, "action", type(decision).__name__)
        raise NotApplicable(f"A task of the kind {task.kind!r} does not take {name!r}.")
    more: list[Event] = []
    people = 1
    if lets_run(decision):
        if task.session:  # judged where the call is, with what its agent has and may do
            session = AgentSession(session.engine, task.session)
            trace = await session.trace()
            state = trace.of(task.call_uuid)
        people = max(task.people, await _people(session, trace, state, task))
    if isinstance(decision, Approve):
        decision, more = await _approval(session, trace, state, task, decision, by)
    submitted: list[Event] = [HITLSubmitted(task.fingerprint, decision, by, via, key=task.fingerprint)]
    if people > 1 and lets_run(decision):
        votes = _vote(asked, decision, by, people)
        submitted = [*votes, *submitted] if len(asked.votes) + len(votes) >= people else votes
    return [replace(fact, at=now) for fact in (*submitted, *more)]


async def _people(session: AgentSession, trace: Trace, state: CallState | None, task: HITLTask) -> int:
    """How many people the rules of now want for the call as it was shown."""
    if state is None:  # a sub-agent's journal that is gone
        return 1
    try:
        gate = (await session.engine.policy(session.id)).gate
    except UnknownTask:  # an agent that is gone, whose call will not run
        return 1
    return people_for(gate, trace, state.call.given(task.args), state.inspection)


def _vote(asked: Asked, decision: Approve | Rerun, by: str, people: int) -> list[Event]:
    """One of several approvals, all for what the card shows; none where there are enough since a rule went. Raises
    what refuses it.
    """
    if not (who := _person(by)):
        raise NotApplicable(f"{people} people must approve this call. Say who this is.")
    if isinstance(decision, Approve) and decision.modified_args is not None:
        raise NotApplicable(f"{people} people must approve this call as it is. To have it changed, reject it.")
    if isinstance(decision, Approve) and decision.always_allow:  # for a rule that came after the card
        raise NotApplicable(f"{people} people must approve this call, so it can only be approved once.")
    if who not in (_person(vote.by) for vote in asked.votes):
        return [HITLVoted(asked.task.fingerprint, by, decision, key=f"{asked.task.fingerprint}:{who}")]
    if len(asked.votes) < people:
        raise AlreadyVoted
    return []


def _person(by: str) -> str:
    """Who this is, however it is written: case, blanks and what nobody sees make nobody another person."""
    return "".join(char for char in unicodedata.normalize("NFKC", by).casefold() if char.isprintable() and char != " ")


async def _waiting(session: AgentSession, trace: Trace, which: str) -> tuple[CallState, Asked]:
    """The open call and its waiting task. Raises UnknownTask, or AlreadyDecided for one that waits no more."""
    for state in trace.batch:
        for one in state.questions:
            if one.waiting and which in (one.task.fingerprint, one.task.call_uuid):
                return state, one
    known: set[str] = set()
    for event in await session.engine.store.read(session.id):  # a late click is worth an exact answer
        if isinstance(event, HITLPending):
            known |= {t.fingerprint for t in event.tasks if which in (t.fingerprint, t.call_uuid)}
        if isinstance(event, HITLSubmitted) and event.fingerprint in known and isinstance(event.decision, Expired):
            raise TaskExpired
    raise AlreadyDecided if known else UnknownTask


async def _approval(
    session: AgentSession, trace: Trace, state: CallState | None, task: HITLTask, decision: Approve, by: str
) -> tuple[Approve, list[Event]]:
    """Check an approval, and what goes with it: what the tool sees for edited arguments, the rule to remember."""
    if not isinstance(decision.modified_args, Mapping | None):
        raise InvalidArguments(f"The edited arguments are {type(decision.modified_args).__name__}, and no object.")
    args = edited(task.args, decision)
    facts: list[Event] = []
    if decision.modified_args is not None:
        _encodable(args)
        if canonical(args) == canonical(task.args):
            decision = replace(decision, modified_args=None, replace_args=False)
        elif state is None:  # a sub-agent's journal that is gone
            raise UnknownTask
        else:
            facts += await _checked_edit(session, trace, state, args)
    if not decision.always_allow:
        return decision, facts
    if not task.may_always:
        raise NotApplicable("An allow rule would not let this call through, so it can only be approved once.")
    remember = session.engine.hitl_interceptor.remember
    if rule := remember(task.tool_name, args) if remember else None:
        why = f"always allow #{task.short_id}"
        facts.append(RuleChanged("added", rule, by, why, key=f"always:{task.fingerprint}"))
    return decision, facts


def _encodable(args: Args) -> None:
    try:
        if unnamed := [key for key in args if not isinstance(key, str)]:
            raise TypeError(f"the key {unnamed[0]!r} is no text")
        canonical(args).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"The edited arguments cannot be written as JSON: {error}") from error


async def _checked_edit(session: AgentSession, trace: Trace, state: CallState, args: Args) -> list[Event]:
    """Judge an edited call as it would run: by the schema, by what the tool sees, and by the rules that refuse."""
    engine, call = session.engine, state.call.given(args)
    trace = replace(trace, now=engine.clock.now())
    gate = (await engine.policy(session.id)).gate
    tool = gate.tools.get(call.name)
    if tool is None:
        raise InvalidArguments(f"The tool {call.name} is not there any more.")
    if problem := misfit(tool, args):
        raise InvalidArguments(problem)
    found = await engine.inspect(session, call.name, args)
    if found and found.problem:
        raise InvalidArguments(found.problem)
    if denied := refusal(gate, trace, call, lambda _: found):
        raise DeniedByPolicy(denied.reason)
    if (verdict := judge(gate, trace, call, lambda _: found)).effect == "deny":
        raise DeniedByPolicy(verdict.reason)
    if (people := people_for(gate, trace, call, lambda _: found)) > 1:  # not the verdict's, which hooks may rewrite
        raise DeniedByPolicy(f"{people} people must approve the call as edited. Reject it, to have it asked anew.")
    return [Inspected(call.call_uuid, digest(canonical(args)), found)] if found else []
