"""No test here depends on how quick the machine is; those of what Slack is quick about say so themselves."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_hurry(unhurried: None) -> None:
    """See there."""
