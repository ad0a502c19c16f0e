"""Allow, ask or deny a tool call by rule.  Pure: what a rule means never depends on where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

from harness_core.errors import ConfigError
from harness_core.given import one_of, said
from harness_core.types import STRICT, Args, canonical, digest

SHORT_ID: Final = 6  # digits

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule. tool: a name; `*` stands for any letters. pattern: what the call's subject must be like (README says
    what a pattern is for each tool). arguments: what its canonical arguments must be, byte for byte. With neither it
    matches any arguments.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    effect: Effect
    tool: str
    pattern: str | None = None
    arguments: str | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what it says, in hex: the same wherever the same rule stands."""
        return digest(repr((self.effect, self.tool, self.pattern, self.arguments)))

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
    def ask(cls, tool: str, pattern: str | None = None) -> PermissionRule:
        """A rule that puts the call to a person, whatever allows it."""
        return cls("ask", tool, pattern)

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
        return rule

    def __str__(self) -> str:
        what = self.arguments if self.arguments is not None else self.pattern
        return f"{self.effect} {self.tool}" + ("" if what is None else f" {what}")
