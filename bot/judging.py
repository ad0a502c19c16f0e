"""`harness-bot judge`: rows of a truth table in, a verdict per row out. For people who test a policy in their own CI.

No network, no disk but the policy file, no settings: what a rule means rests on nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from bot.policy import PolicyKeeper
from harness_core.permissions.cases import BadRow, judged, parse_case
from harness_core.permissions.rule import PermissionRule
from harness_core.tools import BUILTIN
from harness_core.types import Args

LONGEST_ROW: Final = 1_000_000  # bytes of one line; more than this is no row


def arguments(parser: argparse.ArgumentParser) -> None:
    """What this command takes."""
    parser.add_argument("--policy", type=Path, metavar="FILE", help="rules that count beside those of each row")
    parser.add_argument("--channel", default="", metavar="C", help="the rules of the policy for this channel, too")
    parser.add_argument("--check", action="store_true", help="compare with each row's `expect`; exit 1 if any differs")


def main(given: argparse.Namespace) -> int:
    """Judge what comes on standard input. Returns the exit code: 1 for a bad row, or a verdict not expected.

    Raises ConfigError for a policy file that cannot be read.
    """
    rules = PolicyKeeper(given.policy).file.rules_in(given.channel, time.time()) if given.policy else ()
    return judge(sys.stdin.buffer, sys.stdout, sys.stderr, rules, check=given.check)


def judge(lines: Iterable[bytes], out: TextIO, told: TextIO, rules: Sequence[PermissionRule], *, check: bool) -> int:
    """Write one line of JSON per row, as soon as it is read. check: compare, and sum up on `told`."""
    rows = bad = different = 0
    for line in lines:
        if not line.strip():
            continue
        rows += 1
        verdict = _verdict(line, rules, check=check)
        bad += "error" in verdict
        different += "expect" in verdict
        # ASCII alone, so that no text in a row, a lone surrogate for instance, is more than JSON can carry.
        print(json.dumps(verdict), file=out, flush=True)
    if check:
        print(f"{rows} rows: {rows - bad - different} as expected, {different} not, {bad} bad", file=told)
    return 1 if bad or different else 0


def _verdict(line: bytes, rules: Sequence[PermissionRule], *, check: bool) -> dict[str, Any]:
    try:
        if len(line) > LONGEST_ROW:
            raise BadRow(f"it is longer than {LONGEST_ROW:,} bytes")
        case = parse_case(line)
        if check and case.expect is None:
            raise BadRow("it has no `expect` to compare with")
    except BadRow as error:
        return {"error": str(error)}
    ruling = judged(case, rules, read_only)
    verdict = {"verdict": ruling.effect, "reason": ruling.reason, "rule": str(ruling.rule) if ruling.rule else None}
    return verdict | ({"expect": case.expect} if check and case.expect != ruling.effect else {})


def read_only(tool: str, args: Args) -> bool:
    """What a built-in tool says of its call; of others nothing is known."""
    return tool in BUILTIN and BUILTIN[tool].read_only(args)
