"""Tool calls put together from the pieces of a stream.  Pure.

A well-behaved server numbers its calls and gives each an id with its first piece. Others send no ids, or a new one with
every piece; the same index for all; a name in two halves, in every piece, or at the end. What decides here is whether
the call at hand is whole, which is when its arguments are a JSON object. In doubt pieces are kept together: arguments
glued from two calls are no JSON, so that nothing runs, while a call torn in two could run as something nobody wanted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.errors import ModelError
from harness_core.ports import ProposedCall

UNREADABLE: Final = "The model's reply held a tool call that could not be read."


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        if not "".join(self.pieces[-2:]).rstrip().endswith("}"):
            return False  # spares reading long arguments again and again
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(frozen=True, slots=True)
class _Piece:
    index: int | None
    id: str
    name: str
    arguments: str


class CallBuilder:
    """Takes the pieces in the order of their arrival. tools: the names that exist, to tell a name from half of one."""

    def __init__(self, tools: Collection[str] = ()) -> None:
        self._tools = tools
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def add(self, raw: object) -> None:
        """Take in one element of `delta.tool_calls`. Raises ModelError (bad_reply) if it is none."""
        piece = _read(raw)
        call = self._meant(piece)
        if call is None or self._begins(call, piece):
            call = _Call()
            self._calls.append(call)
        if piece.index is not None:
            self._at[piece.index] = call
        self._join(call, piece)

    def calls(self) -> tuple[ProposedCall, ...]:
        """The calls in the order in which they began, arguments as the text that came."""
        return tuple(ProposedCall(mended(c.name), mended(c.arguments), mended(c.id)) for c in self._calls)

    def _meant(self, piece: _Piece) -> _Call | None:
        """The call that this piece may belong to: by its index, else by its id, else the last one."""
        if piece.index is not None:
            return self._at.get(piece.index)
        by_id = next((c for c in reversed(self._calls) if piece.id and c.id == piece.id), None)
        return by_id or (self._calls[-1] if self._calls else None)

    def _begins(self, call: _Call, piece: _Piece) -> bool:
        """Whether this piece begins another call than the one that its place points at."""
        if not (piece.id or piece.name):
            return False
        another_id = bool(piece.id and call.id and piece.id != call.id)
        if not call.whole:
            # Some servers give every piece an id of its own: without a name that says nothing.
            return bool(piece.name and call.name) and (another_id or self._other_tool(call.name, piece.name))
        if not piece.name and not piece.arguments.strip():
            return False  # a late id
        if piece.id and piece.id == call.id and piece.arguments in ("", call.arguments):
            return False  # the same call said again
        if another_id:
            return True
        return bool(piece.name and call.name) and (bool(piece.arguments.strip()) or piece.name != call.name)

    def _other_tool(self, name: str, more: str) -> bool:
        return name != more and name in self._tools and more in self._tools and name + more not in self._tools

    def _join(self, call: _Call, piece: _Piece) -> None:
        call.id = call.id or piece.id
        call.name = self._named(call.name, piece.name)
        again = piece.id and piece.arguments == call.arguments and call.whole
        if piece.arguments and not again:
            call.pieces.append(piece.arguments)

    def _named(self, name: str, more: str) -> str:
        """The name so far with what this piece adds: the other half, the same again, or the whole of it."""
        if not (name and more):
            return name or more
        if name == more:
            return name
        return more if more in self._tools and more.startswith(name) else name + more


def mended(text: str) -> str:
    """The text with halves of one character put together again; what stays half is replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _read(raw: object) -> _Piece:
    if not isinstance(raw, Mapping):
        raise ModelError("bad_reply", UNREADABLE)
    index, function = raw.get("index"), raw.get("function")
    if function is None:
        function = {}
    if not isinstance(function, Mapping):
        raise ModelError("bad_reply", UNREADABLE)
    return _Piece(
        index if isinstance(index, int) and not isinstance(index, bool) else None,
        _text(raw.get("id")),
        _text(function.get("name")),
        _arguments(function.get("arguments")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _arguments(value: Any) -> str:
    """Arguments as text, as the protocol has them; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
