"""Decisions of people, carried out: authorise, store, wake.  One path for buttons, forms and typed words."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bot import approvers, edits, ids, modals, words
from bot.approvers import Refusal, Who
from bot.blocks import may_approve_by_word, shown_whole
from bot.heard import Decide, Edit, OpenModal, Origin
from bot.ids import TaskRef, thread_of
from bot.kit import View
from bot.posts import card_id
from bot.presenter import Presenter
from bot.slack_api import SlackApi, SlackRefused, SlackUnreachable
from bot.view import Card, Waiting, may_always
from bot.widening import Widening
from harness_core.engine import HarnessEngine
from harness_core.errors import (
    AlreadyDecided,
    AlreadyVoted,
    DecisionRefused,
    DeniedByPolicy,
    InvalidArguments,
    NotApplicable,
    StoreError,
    TaskExpired,
    UnknownTask,
)
from harness_core.handle import HITL
from harness_core.hitl import Approve, HITLDecision, HITLTask, Rerun, lets_run
from harness_core.permissions.rule import PermissionRule

log = logging.getLogger(__name__)

Decided = TypeVar("Decided", Decide, Edit)
Told = TypeVar("Told")


class Decisions:
    """Takes decisions, and opens the forms that ask for them. Every method returns what to tell the person."""

    def __init__(
        self,
        engine: HarnessEngine,
        presenter: Presenter,
        widening: Widening,
        api: SlackApi,
        who: Callable[[Origin], Awaitable[Who]],
    ) -> None:
        self._engine, self._presenter, self._widening, self._api = engine, presenter, widening, api
        self._who = who

    async def decide(self, asked: Decide) -> str:
        """Store a decision and let the session go on. Returns what to tell the person in private, "" if it counts."""
        return await self._taken(asked, self._submitted, asked.block_id, clicked=asked.via == "button")

    async def open_form(self, asked: OpenModal) -> str:
        """Open the form of a button. Returns what to tell the person in private, "" if the form is open."""
        return await self._opened(asked, self._form, words.slow(asked.task.fingerprint[: ids.SHORT_ID]))

    async def show_whole(self, asked: OpenModal) -> str:
        """Open the whole call to be read, decided or not. Whoever may speak here may read it."""
        return await self._opened(asked, self._whole, words.SLOW_VIEW)

    async def _opened(self, asked: OpenModal, make: Callable[[OpenModal], Awaitable[View | str]], too_slow: str) -> str:
        """Open the view that this makes; what it says where it makes none, and what Slack made of it, is told."""
        try:
            view = await make(asked)
            if isinstance(view, str):
                return view
            await self._api.open_view(asked.origin.trigger_id, view)
        except StoreError:
            log.exception("a form of session %s did not open", asked.session_id)
            return words.FAILED
        except (SlackRefused, SlackUnreachable) as error:
            log.warning("a form did not open: %s", error)
            return too_slow
        return ""

    async def _form(self, asked: OpenModal) -> View | str:
        found = await self._task(asked.session_id, asked.task, asked.origin, asked.block_id, clicked=True)
        if isinstance(found, str):
            return found
        task, card = found
        if refusal := await self._may_decide(asked.origin, task):
            return refusal.why
        return await self._form_of(asked, task, card) or words.NOT_SWITCHED_ON

    async def _form_of(self, asked: OpenModal, task: HITLTask, card: Card) -> View | None:
        thread = thread_of(asked.session_id)
        if asked.action == "edit":
            return edits.edit_form(card, self._schema(card))
        if asked.action == "always" and may_always(card) and thread:
            return modals.always(card, await self._widening.choices(thread, task, await self._who(asked.origin)))
        return modals.form(asked.action, card)

    async def _whole(self, asked: OpenModal) -> View | str:
        if refusal := approvers.may_speak(await self._who(asked.origin)):
            return refusal.why
        if not await self._genuine(asked.session_id, asked.task, asked.origin, asked.block_id):
            return words.UNKNOWN
        card = await self._presenter.card(asked.session_id, asked.task.fingerprint)
        return modals.full(card) if card else words.UNKNOWN

    async def edit(self, asked: Edit) -> str | Mapping[str, str]:
        """Approve with edited arguments. Returns errors by field while the form must stay, or what to tell instead."""
        return await self._taken(asked, self._edited)

    async def _taken(
        self,
        asked: Decided,
        take: Callable[[Decided, HITLTask, Card], Awaitable[Told]],
        block_id: str = "",
        *,
        clicked: bool = False,
    ) -> Told | str:
        """Find the task, and take what was decided about it. What does not count is said in words."""
        try:
            found = await self._task(asked.session_id, asked.task, asked.origin, block_id, clicked=clicked)
            if isinstance(found, str):
                return found
            return await take(asked, *found)
        except DecisionRefused as refused:
            self._presenter.wake(asked.session_id)
            return _refused(refused)
        except (StoreError, SlackUnreachable):
            log.exception("a decision in session %s was not stored", asked.session_id)
            return words.FAILED

    async def _edited(self, asked: Edit, task: HITLTask, card: Card) -> str | Mapping[str, str]:
        schema = self._schema(card)
        if edits.edit_form(card, schema) is None:
            return words.NOT_SWITCHED_ON
        args, errors = edits.read_back(card, schema, asked.values)
        if errors:
            return errors
        decision = HITLDecision.approve(modified_args=args, replace_args=True)
        try:
            return await self._submitted(
                Decide(asked.session_id, asked.task, decision, asked.origin, "modal"), task, card
            )
        except (InvalidArguments, DeniedByPolicy) as refused:  # the form stays, and says where it is wrong
            return edits.blamed(card, schema, args, str(refused))

    def _schema(self, card: Card) -> Mapping[str, Any]:
        spec = self._engine.spec(card.task.tool_name)
        return spec.schema if spec else {}

    async def _submitted(self, asked: Decide, task: HITLTask, card: Card) -> str:
        """Authorise and store a decision, and let the session go on. Raises DecisionRefused."""
        if refusal := await self._may_decide(asked.origin, task):
            return refusal.why
        if why := _unseen(asked, card) or await self._lapsed(asked, card):
            return why
        rules = await self._chosen(asked, task)
        if isinstance(rules, str):
            return rules
        session = await self._engine.session(asked.session_id)
        await HITL.submit(session, task.fingerprint, asked.decision, by=asked.origin.user, via=asked.via)
        self._engine.wake(asked.session_id)
        return await self._widened(asked, task, rules)

    async def _lapsed(self, asked: Decide, card: Card) -> str:
        """Why no approval counts now: somebody whose vote it would rest on may not decide any more. "" if all may."""
        votes = card.state.votes if isinstance(card.state, Waiting) and lets_run(asked.decision) else ()
        for by in votes:
            if await self._may_decide(replace(asked.origin, user=by), card.task):
                return words.lapsed(by)
        return ""

    async def _chosen(self, asked: Decide, task: HITLTask) -> Sequence[PermissionRule] | str:
        thread = thread_of(asked.session_id)
        who = await self._who(asked.origin)
        return await self._widening.chosen(thread, task, who, asked.reach) if thread else ()

    async def _widened(self, asked: Decide, task: HITLTask, rules: Sequence[PermissionRule]) -> str:
        """Make the wider rules that go with a decision, which counts whatever becomes of them."""
        try:
            if thread := thread_of(asked.session_id):
                by, channel = asked.origin.user, asked.reach.channel
                await self._widening.make(thread, task, by, rules, channel=channel)
        except StoreError:
            log.exception("a wider rule of session %s was not stored", asked.session_id)
            return words.NOT_WIDENED
        return ""

    async def _may_decide(self, origin: Origin, task: HITLTask) -> Refusal | None:
        who = await self._who(origin)
        return approvers.may_decide(who, task.requested_by)

    async def _task(
        self, session_id: str, ref: TaskRef, origin: Origin, block_id: str, *, clicked: bool
    ) -> tuple[HITLTask, Card] | str:
        """The waiting task that somebody points at, and its card; or what to tell them instead. clicked: on a card."""
        trace = await self._engine.trace(session_id)
        fitting = [t for t in trace.pending if t.fingerprint.startswith(ref.fingerprint)]
        if len(fitting) > 1:
            return words.ambiguous(_apart([t.fingerprint for t in fitting]))
        if clicked and not await self._genuine(session_id, ref, origin, block_id):
            return words.UNKNOWN
        if not fitting:
            self._presenter.wake(session_id)
            return words.LATE if await self._presenter.asked(session_id, ref.fingerprint) else words.UNKNOWN
        card = await self._presenter.card(session_id, fitting[0].fingerprint)
        return (fitting[0], card) if card else words.UNKNOWN

    async def _genuine(self, session_id: str, ref: TaskRef, origin: Origin, block_id: str) -> bool:
        """Whether a click came from the card that we posted. A click can be quicker than the answer to our own post:
        then the card's name, which only our post carries, tells where it stands.
        """
        thread = thread_of(session_id)
        post = (await self._presenter.board.posts(session_id)).by_id.get(card_id(ref.fingerprint))
        if post is None or thread is None or origin.channel != thread.channel:
            return False
        if post.ts:
            return post.ts == origin.message_ts
        named = ids.card_named(block_id)
        if named is None or not ref.fingerprint.startswith(named[0]):
            return False
        await self._presenter.board.stands(session_id, card_id(ref.fingerprint), post.digest, origin.message_ts)
        return True


def _unseen(asked: Decide, card: Card) -> str:
    """Nothing runs that the person could not have read: what a card had to cut is approved in its form alone."""
    decision = asked.decision
    if isinstance(decision, Approve) and decision.always_allow:
        return "" if may_always(card) else words.NOT_SWITCHED_ON
    if not isinstance(decision, Approve | Rerun):
        return ""
    if asked.via == "modal":
        return "" if modals.review(card) else words.NOT_BY_WORD
    readable = may_approve_by_word(card) if asked.via == "word" else shown_whole(card)
    return "" if readable else words.NOT_BY_WORD


def _refused(error: DecisionRefused) -> str:
    match error:
        case AlreadyDecided() | TaskExpired():
            return words.LATE
        case AlreadyVoted():
            return words.ALREADY_VOTED
        case UnknownTask():
            return words.UNKNOWN
        case NotApplicable() | InvalidArguments() | DeniedByPolicy():
            return words.refused(str(error))
        case _:
            return words.FAILED


def _apart(fingerprints: Sequence[str]) -> Sequence[str]:
    """As many digits of each as tell them apart."""
    enough = next(n for n in range(ids.SHORT_ID, 65) if len({f[:n] for f in fingerprints}) == len(fingerprints))
    return [fingerprint[:enough] for fingerprint in fingerprints]
