"""What several of the guards share: the types of their settings, and how the model knows who speaks."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from harness_core.events import RECENT

KNOWN_ONLY: Final[Any] = {"extra": "forbid"}  # a setting that is misspelt is an error

Count = Annotated[int, Field(ge=1, strict=True)]
CountOrNone = Annotated[int, Field(ge=0, strict=True)]
Repeats = Annotated[int, Field(ge=2, strict=True)]
Window = Annotated[int, Field(ge=4, le=RECENT, strict=True)]
Often = tuple[Count, ...]
Switch = Annotated[bool, Field(strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(gt=0, le=1, strict=True)]
Name = Annotated[str, Field(min_length=1, strict=True)]
Names = tuple[Name, ...]

HARNESS: Final = "[This was written by the harness, not by a person.]"
