"""The agent's list of what is to be done.  It is kept in the conversation alone: each call says the whole list."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from harness_core.tools.spec import tool

TODO_ITEMS: Final = 100  # of one list
TODO_CHARS: Final = 300  # of one item


def _one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("an item is empty")
    if not text.isprintable():
        raise ValueError("an item is one line of printable text")
    return text.strip()


class Item(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    text: Annotated[str, Field(max_length=TODO_CHARS), AfterValidator(_one_line)]
    done: bool = False


# It changes nothing outside the conversation, so it runs unasked, and again after a crash.
@tool(read_only=True)
async def todo(items: Annotated[list[Item], Field(max_length=TODO_ITEMS)]) -> str:
    """Keep a list of what is to be done, for work of several steps. The list of your last call is the list.

    Give the whole list each time, in order: what you leave out is off the list.
    items: what is to be done, and whether it is done
    """
    left = sum(not item.done for item in items)
    lines = [f"{n}. [{'x' if item.done else ' '}] {item.text}" for n, item in enumerate(items, 1)]
    return "\n".join([*lines, f"{left:,} of {len(items):,} left to do."] if lines else ["The list is empty."])
