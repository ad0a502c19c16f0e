"""`harness-bot trace`: what was recorded, for whoever wants to know what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.__main__ import main
from tests.bot.recorded import OTHER, THREAD, record


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    await record(tmp_path)
    return tmp_path


def run(data: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments, {"HARNESS_DATA": str(data)})
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_trace_tells_what_happened_when_and_by_whom(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(data, capsys, "trace", THREAD)

    assert code == 0
    told = [line[23:] for line in out.splitlines()[2:]]
    assert told[0] == "U0REQUEST said: make the report"
    assert "the model calls bash (2-1): touch report.txt" in told
    assert any("bash (2-1) waits for a person, #" in line and "touch is not one of" in line for line in told)
    assert any("approved by U0REVIEWER, via button" in line for line in told)
    assert told[-1] == "run r51c2 ended: completed: The report is there."
    assert out.splitlines()[2].split()[:2] == ["1", "09:30:00"]


def test_without_a_session_the_newest_are_listed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(data, capsys, "trace")

    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()] == [OTHER, THREAD]
    assert out.startswith("2026-03-01 09:31:")


@pytest.mark.parametrize(
    "named",
    [
        "C2:1772357500.000200",
        "https://acme.slack.com/archives/C2/p1772357500000200",
        "https://acme.slack.com/archives/C2/p1772357999000200?thread_ts=1772357500.000200&cid=C2",
        "1772357500",
    ],
)
def test_a_session_is_named_as_people_can_name_it(data: Path, capsys: pytest.CaptureFixture[str], named: str) -> None:
    code, out, _ = run(data, capsys, "trace", named)

    assert (code, out.partition(": ")[0]) == (0, OTHER)


def test_a_session_that_there_is_not_is_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(data, capsys, "trace", "C3:1772357400.000100")

    assert (code, out) == (1, "")
    assert "There is no session 'C3:1772357400.000100'" in err


def test_where_nothing_was_recorded_it_says_so_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(tmp_path, capsys, "trace")

    assert (code, out) == (1, "")
    assert "nothing was recorded there yet" in err
    assert list(tmp_path.iterdir()) == []
