"""No test here depends on how quick the machine is; those of what Slack is quick about say so themselves."""

from __future__ import annotations

import pytest

from tests.acceptance.remote import Elsewhere


@pytest.fixture(autouse=True)
def no_hurry(request: pytest.FixtureRequest) -> None:
    """Slack waits for the bot as long as this machine needs; one elsewhere has a mind of its own."""
    if Elsewhere.from_env() is None:
        request.getfixturevalue("unhurried")
