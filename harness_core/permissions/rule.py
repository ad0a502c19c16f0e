"""Allow, ask or deny a tool call by rule.  Pure: what a rule means never depends on where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from harness_core.errors import ConfigError
from harness_core.given import one_of, said
from harness_core.types import STRICT, Args, canonical, digest

SHORT_ID: Final = 6  # digits
MOST_PEOPLE: Final = 10  # that a rule may want to approve one call

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule. tool: a name; `*` stands for any letters. pattern: what the call's subject must be like (README says
    what a pattern is for each tool). arguments: what its canonical arguments must be, byte for byte. With neither it
    matches any arguments. people: how many must approve what it asks about; 1 for a rule that does not ask.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    effect: Effect
    tool: str
    pattern: str | None = None
    arguments: str | None = None
    people: int = 1

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what it says, in hex: the same wherever the same rule stands."""
        several = (self.people,) if self.people > 1 else ()
        return digest(repr((self.effect, self.tool, self.pattern, self.arguments, *several)))

    @property
    def id(self) -> str:
        """The six hex digits that people see. Somebody who tries can find another rule with the same."""
        return self.fingerprint[:SHORT_ID]

    def called(self, name: str) -> bool:
        """Whether this is its id, or more of its fingerprint."""
        return len(name) >= SHORT_ID and self.fingerprint.startswith(name)

    @classmethod
    def allow(cls, tool: str, pattern: str | None = None) -> PermissionRule:
        """A rule that lets the call run unasked."""
        return cls("allow", tool, pattern)

    @classmethod
    def ask(cls, tool: str, pattern: str | None = None, *, people: int = 1) -> PermissionRule:
        """A rule that puts the call to a person, whatever allows it; or to several, who must all approve it."""
        return cls("ask", tool, pattern, people=people)

    @classmethod
    def deny(cls, tool: str, pattern: str | None = None) -> PermissionRule:
        """A rule that no click can overcome."""
        return cls("deny", tool, pattern)

    @classmethod
    def exactly(cls, tool: str, args: Args) -> PermissionRule:
        """What *always allow* stores: this tool with exactly these arguments, nothing wider."""
        return cls("allow", tool, arguments=canonical(args))

    @staticmethod
    def given(rule: object) -> PermissionRule:
        """The rule that a program gave. Raises ConfigError for what would never match: it forbids nothing."""
        one_of("A rule", PermissionRule, 'a PermissionRule, PermissionRule.deny("bash", "git push *") say', rule)
        assert isinstance(rule, PermissionRule)
        if rule.effect not in get_args(Effect):
            raise ConfigError(f"There is no effect {said(rule.effect)}; a rule is to allow, ask or deny.")
        if not isinstance(rule.tool, str) or not rule.tool:
            raise ConfigError(f"A rule needs the name of a tool, or * for every one, and not {said(rule.tool)}.")
        for name in ("pattern", "arguments"):
            if not isinstance(value := getattr(rule, name), str | None):
                raise ConfigError(f"The {name} of a rule must be a text, not {said(value)}.")
        if fault := rule.miscounted:
            raise ConfigError(f"{fault[0].upper()}{fault[1:]}.")
        return rule

    @property
    def miscounted(self) -> str:
        """Why this number of people cannot be wanted; "" if it can."""
        if type(self.people) is not int or not 1 <= self.people <= MOST_PEOPLE:
            return f"a rule may want 1 to {MOST_PEOPLE} people, not {said(self.people)}"
        if self.people > 1 and self.effect != "ask":
            return f"only a rule that asks may want several people, not one to {self.effect}"
        return ""

    def __str__(self) -> str:
        what = self.arguments if self.arguments is not None else self.pattern
        several = f" ({self.people} people)" if self.people > 1 else ""
        return f"{self.effect} {self.tool}" + ("" if what is None else f" {what}") + several
