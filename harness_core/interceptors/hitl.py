"""Which tools are put to a person, and what an *always allow* leaves behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from harness_core.errors import ConfigError
from harness_core.given import asked_at_once, one_of, said
from harness_core.permissions.judge import Strategy
from harness_core.permissions.rule import PermissionRule
from harness_core.session import Trace
from harness_core.types import Args

OnApproved = Callable[[str, Args], Awaitable[None] | None]


class HITLInterceptor:
    """Holds the strategies per tool, and the callbacks of approvals that said *always allow*.

    remember: what rule an *always allow* adds to the session, together with the decision: by default one for exactly
    the approved arguments. remember=None adds none.
    """

    def __init__(
        self, *, remember: Callable[[str, Args], PermissionRule | None] | None = PermissionRule.exactly
    ) -> None:
        self._strategies: dict[str, Strategy] = {}
        self._callbacks: list[OnApproved] = []
        self.remember = remember

    def on_tool(self, name: str, strategy: Strategy) -> Self:
        """Put calls of this tool to a person whenever the strategy gives a reason."""
        one_of("on_tool", str, "told the name of a tool", name)
        if not asked_at_once(strategy, "evaluate"):
            raise ConfigError(
                f"{said(strategy)} is no strategy for {name}: it must be a plain function (trace, args) that gives a "
                "reason to ask, or None; or an object with one as its `evaluate`."
            )
        self._strategies = {**self._strategies, name: strategy}
        return self

    def on_sensitive_tool(self, *names: str) -> Self:
        """Put every call of these tools to a person."""
        for name in names:
            self.on_tool(name, _sensitive)
        return self

    def on_approved(self, callback: OnApproved) -> Self:
        """Call back with (tool, approved arguments) after each approval with always_allow, at least once."""
        if not callable(callback):
            raise ConfigError(f"{said(callback)} cannot be called back with (tool, arguments).")
        self._callbacks.append(callback)
        return self

    @property
    def strategies(self) -> Mapping[str, Strategy]:
        """The strategies as they stand now; a later `on_tool` does not change what was handed out."""
        return self._strategies

    @property
    def callbacks(self) -> tuple[OnApproved, ...]:
        """Who is called back."""
        return tuple(self._callbacks)


def _sensitive(trace: Trace, args: Args) -> str:
    return "the tool is marked sensitive"
