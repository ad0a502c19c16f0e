"""The inbox, as facts fill and empty it: prompts that no model request has held yet.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Self

from harness_core.events import Ledger, PromptAmended, Prompted


class Inbox:
    """prompts: in the order in which people wrote. heard: the seqs of those that hooks have ruled on."""

    def __init__(self, prompts: Iterable[Prompted] = (), heard: tuple[int, ...] = ()) -> None:
        self.prompts = [*prompts]
        self.heard = heard
        self._edits: list[tuple[int, Prompted]] = []  # (the edit, the prompt before it), since hooks were last asked

    @classmethod
    def carried(cls, ledger: Ledger, seq: int) -> Self:
        """The inbox that a compression (its seq) carries. No model request was built from the facts before it."""
        inbox = cls(ledger.inbox, ledger.heard)
        inbox._edits = [(seq, prompt) for prompt in inbox.prompts if prompt.seq in ledger.edited]
        return inbox

    def add(self, prompt: Prompted) -> None:
        """Somebody said something."""
        self.prompts.append(prompt)
        self.prompts.sort(key=_as_sent)

    def amend(self, event: PromptAmended, seq: int) -> None:
        """An author changed a prompt, or took it back. seq: of the edit. Hooks have not heard it as it is now."""
        amended = {p.seq: p for p in self.prompts if p.ref == event.ref}
        self._edits += [(seq, p) for p in amended.values()]
        self.heard = tuple(seq for seq in self.heard if seq not in amended)
        if event.text is None:
            self.prompts = [p for p in self.prompts if p.ref != event.ref]
        else:
            self.prompts = [replace(p, text=event.text) if p.ref == event.ref else p for p in self.prompts]

    def hear(self, prompt: int, text: str) -> None:
        """Hooks ruled that the model hears this prompt (its seq) so."""
        self.prompts = [replace(p, text=text) if p.seq == prompt else p for p in self.prompts]
        self.heard = (*self.heard, prompt)
        self._edits = [(at, before) for at, before in self._edits if before.seq != prompt]

    def block(self, prompt: int) -> Sequence[Prompted]:
        """No model is to read this prompt (its seq). Returns what was said after it."""
        before = [*takewhile(lambda p: p.seq != prompt, self.prompts)]
        later = self.prompts[len(before) + 1 :]
        self.prompts = [*before, *later]
        return later

    def withdraw(self, upto: int) -> None:
        """A stop takes back what was said before it."""
        self.prompts = [p for p in self.prompts if (p.seq or 0) > upto]

    def deliver(self, upto: int) -> Sequence[Prompted]:
        """Hand over what a request held that was built from these facts: what was edited or withdrawn while the model
        had it already, as the model read it.
        """
        if not (self.prompts or self.heard or self._edits):
            return ()
        read = {before.seq: before for at, before in reversed(self._edits) if (before.seq or 0) <= upto < at}
        current = {p.seq: p for p in self.prompts if (p.seq or 0) <= upto}
        self.prompts = [p for p in self.prompts if (p.seq or 0) > upto]
        self.heard = tuple(seq for seq in self.heard if seq > upto)
        self._edits = [(at, before) for at, before in self._edits if (before.seq or 0) > upto]
        return sorted((current | read).values(), key=_as_sent)

    def edited(self, upto: int) -> frozenset[int]:
        """The seqs of prompts that were edited after this fact, and that no hook has heard since."""
        return frozenset(before.seq or 0 for at, before in self._edits if at > upto)

    def leave(self, upto: int) -> Sequence[Prompted]:
        """Hand over what a run that is over was asked, even if no model ever answered: it must not begin the next run.
        But what somebody has edited since stays: a new question, which no model has read and no hook has seen.
        """
        edited = self.edited(upto)
        kept = [p for p in self.prompts if p.seq in edited]
        self.prompts = [p for p in self.prompts if p.seq not in edited]
        self._edits = []
        asked = self.deliver(upto)
        self.prompts = sorted((*self.prompts, *kept), key=_as_sent)
        return asked


def _as_sent(prompt: Prompted) -> tuple[float, int]:
    """The order in which people wrote."""
    return prompt.sent_at, prompt.seq or 0
