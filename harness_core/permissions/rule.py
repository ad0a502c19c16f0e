"""Allow, ask or deny a tool call by rule.  Pure: what a rule means never depends on where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from harness_core.types import STRICT, Args, canonical, digest

Effect = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule. It matches a call of `tool` whose subject is exactly `pattern`, or whose canonical arguments are
    exactly `arguments`; with neither it matches any arguments.
    """

    __pydantic_config__: ClassVar[Any] = STRICT
    effect: Effect
    tool: str
    pattern: str | None = None
    arguments: str | None = None

    @property
    def id(self) -> str:
        """Six hex digits, the same wherever the same rule stands."""
        return digest(repr((self.effect, self.tool, self.pattern, self.arguments)))[:6]

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

    def __str__(self) -> str:
        what = self.arguments if self.arguments is not None else self.pattern
        return f"{self.effect} {self.tool}" + ("" if what is None else f" {what}")
