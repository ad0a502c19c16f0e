"""JSON objects and arrays that nobody can change: what hooks and strategies are shown is what is on record.

They are dicts and lists to whoever reads them or writes them as JSON; a copy of one can be changed like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Never


def _refuse(self: object, *args: object, **more: object) -> Never:
    raise TypeError("this is on record and cannot be changed; make a copy")


class FrozenDict(dict[str, Any]):
    """An object."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def copy(self) -> dict[str, Any]:
        """One that can be changed."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """An array."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def copy(self) -> list[Any]:
        """One that can be changed."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def freeze(thing: Any, *names: str) -> None:
    """Make what stands in these fields of a value, that nobody else has seen yet, something that nobody can change."""
    for name in names:
        try:
            object.__setattr__(thing, name, frozen(getattr(thing, name)))
        except RecursionError:  # nested too deeply to be stored, so whoever checks it will refuse it
            continue


def shallow(value: Any) -> Any:
    """A dict as one that cannot be changed, whatever is in it; anything else as it is."""
    return FrozenDict(value) if type(value) is dict else value


def frozen(value: Any) -> Any:
    """The same JSON value, which cannot be changed. What is frozen already is not copied."""
    match value:
        case FrozenDict() | FrozenList():
            return value
        case Mapping():
            return FrozenDict((key, frozen(inner)) for key, inner in value.items())
        case list() | tuple():
            return FrozenList(map(frozen, value))
        case _:
            return value
