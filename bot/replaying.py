"""`harness-bot trace`, `replay` and `backtest`: what happened in recorded sessions, and what would have.

The database is only read, so that all of it works while the bot runs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bot.check import Line
from bot.config import Settings
from bot.facts import CODEC, WORKSPACE
from bot.folders import DATABASE, own_workspace
from bot.ids import thread_of
from bot.policy import PolicyKeeper, default_path
from bot.quarrels import dead_ends_in
from bot.reports import backtest_json, backtested, replayed, ruling_json
from bot.sessions import find_session
from bot.settings import InForce, adjusted, changed
from bot.timeline import moment, timeline
from harness_core.delegate import hired
from harness_core.errors import ConfigError, StoreError
from harness_core.events import Event
from harness_core.guarding import guarded
from harness_core.hooks import in_order
from harness_core.journal_ids import depth_of, outer_of, root_of
from harness_core.options import DEFAULT_TOOLS, HarnessOptions
from harness_core.own_hooks import load_hooks
from harness_core.parts import agents_among
from harness_core.permissions.judge import Gate
from harness_core.policies import HOME, default_compression
from harness_core.policy_file import PolicyFile
from harness_core.replay import Ruling, replay, with_rules_of
from harness_core.steps import Policy
from harness_core.store.reading import JournalReader
from harness_core.subagents import narrowed, tools_of
from harness_core.tools import tool_table
from harness_core.tools.own import load_tools

NEWEST: Final = 20  # sessions that are listed


def reader(settings: Settings) -> JournalReader:
    """The recorded journals. Raises StoreError if there are none."""
    return JournalReader(settings.data / DATABASE, CODEC)


# -- trace -------------------------------------------------------------------------------------------------------------


def trace_arguments(parser: argparse.ArgumentParser) -> None:
    """What `trace` takes."""
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help="id, permalink or channel:ts")


def trace(settings: Settings, given: argparse.Namespace) -> int:
    """Print what happened in a session, or which there are. Returns the exit code."""
    with reader(settings) as journals:
        known = journals.sessions()
        if not given.session:
            for one in known[:NEWEST]:
                print(f"{moment(one.newest)}  {one.facts:>6} facts  {one.session_id}")
            if len(known) > NEWEST:
                print(f"and {len(known) - NEWEST} older ones")
            if not known:
                print(f"Nobody has said anything yet: {settings.data / DATABASE} holds no session.")
            return 0
        session_id = find_session(given.session, [one.session_id for one in known])
        facts = journals.read(session_id)
    print(heading(session_id, facts))
    for line in timeline(facts):
        print(line)
    return 0


def heading(session_id: str, facts: tuple[Event, ...]) -> str:
    """The first line about a session, and the head of the table."""
    until = f"{moment(facts[0].at)} to {moment(facts[-1].at)} UTC" if facts else "nothing"
    return f"{session_id}: {len(facts)} facts, {until}\n  seq  time      step  what happened"


# -- replay ------------------------------------------------------------------------------------------------------------


def replay_arguments(parser: argparse.ArgumentParser) -> None:
    """What `replay` takes."""
    parser.add_argument("session", metavar="SESSION", help="id, permalink or channel:ts")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="in place of the policy file in force")
    parser.add_argument("--json", action="store_true", help="one line of JSON per verdict")


def replay_one(settings: Settings, given: argparse.Namespace) -> int:
    """Print one recorded session under the policy in force, or another. Returns the exit code."""
    with reader(settings) as journals:
        session_id = find_session(given.session, [one.session_id for one in journals.sessions()])
        policy = Policies(settings, given.policy, in_force(journals)).of(session_id, journals)
        rulings = replay(_facts(journals, session_id), policy)
    if given.json:
        for ruling in rulings:
            print(json.dumps(ruling_json(session_id, ruling)))
        return 0
    print(f"{session_id}: {'under ' + str(given.policy) if given.policy else 'under the policy in force'}")
    for line in replayed(rulings):
        print(line)
    return 0


# -- backtest ----------------------------------------------------------------------------------------------------------


def backtest_arguments(parser: argparse.ArgumentParser) -> None:
    """What `backtest` takes."""
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="in place of the one in force")
    parser.add_argument("--channel", default="", metavar="C", help="only threads of this channel")
    parser.add_argument("--since", type=_since, default=0.0, metavar="DATE", help="only calls since then (UTC)")
    parser.add_argument("--json", action="store_true", help="one object of JSON, with every call")


def _since(text: str) -> float:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-03-01") from error
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()


def backtest(settings: Settings, given: argparse.Namespace) -> int:
    """Print what another policy would have changed in all recorded sessions. Returns the exit code."""
    with reader(settings) as journals:
        policies = Policies(settings, given.policy, in_force(journals))
        listed = [one.session_id for one in journals.sessions() if one.newest >= given.since]
        found = {
            session_id: [
                one
                for one in replay(_facts(journals, session_id), policies.of(session_id, journals))
                if one.at >= given.since
            ]
            for session_id in listed
            if given.channel in ("", _channel(session_id))
        }
    unused = _unused(policies.file, found)
    if given.json:
        print(json.dumps(backtest_json(found, unused)))
        return 0
    for line in backtested(found, unused):
        print(line)
    return 0


def _facts(journals: JournalReader, session_id: str) -> tuple[Event, ...]:
    """What is recorded of a session; of a sub-agent's, with the rules of those that it worked in."""
    outer, _ = outer_of(session_id)
    facts = journals.read(session_id)
    return with_rules_of(_facts(journals, outer), facts) if outer else facts


def _channel(session_id: str) -> str:
    thread = thread_of(root_of(session_id))
    return thread.channel if thread else ""


def _unused(file: PolicyFile, found: Mapping[str, Sequence[Ruling]]) -> list[str]:
    """The rules of the file that decided none of these calls."""
    spoke = {ruling.hook for rulings in found.values() for ruling in rulings}
    return list(dict.fromkeys(str(one.rule) for one in file.rules if f"rule {one.rule}" not in spoke))


# -- the policy to ask -------------------------------------------------------------------------------------------------


class Policies:
    """What is in force now for each session, with a policy file in place of the one that is. Raises ConfigError."""

    def __init__(self, settings: Settings, path: Path | None, in_force: InForce) -> None:
        own = load_tools(settings.tools) if settings.tools else ()
        tools = {tool.spec.name: tool for tool in tool_table([*DEFAULT_TOOLS, *own])}
        self._agents = {agent.name: agent for agent in agents_among(settings.agents or (), tools)}
        keeper = PolicyKeeper(path or settings.policy or default_path(), tools)
        self.path, self.file, self.guards, self.in_force = keeper.path, keeper.file, keeper.guards, in_force
        hooks = in_order(load_hooks(settings.hooks) if settings.hooks else ())
        options = HarnessOptions()
        self.base = Policy(
            Gate(tools, hooks=hooks, home=HOME),
            max_steps=options.max_steps,
            max_seconds=options.max_seconds,
            model_attempts=options.model_retries,
            compression=default_compression(options),
        )
        self._tools = tools
        self._workspace, self._own = settings.workspace, own_workspace(settings.data)
        self.now = time.time()

    def of(self, session_id: str, journals: JournalReader) -> Policy:
        """The policy of one session; of a sub-agent's, with its agent's own rules and limits as they are now, if there
        still is that agent.
        """
        outer, call_uuid = outer_of(session_id)
        if not outer:
            return self._of_thread(session_id)
        policy, name = self.of(outer, journals), hired(journals.read(outer), call_uuid)
        if (agent := self._agents.get(str(name))) is None:
            return policy
        return narrowed(policy, (), agent, tools_of(agent, self._tools, depth_of(session_id)))

    def _of_thread(self, session_id: str) -> Policy:
        """Where its folder is counts; whether it is there does not."""
        workspace = os.path.realpath(self._workspace or self._own(root_of(session_id)))
        policy = replace(self.base, gate=replace(self.base.gate, workspace=workspace))
        return adjusted(guarded(policy, self.guards), root_of(session_id), self.in_force, self.file, self.now)


def in_force(journals: JournalReader) -> InForce:
    """What people have set in Slack."""
    return changed(InForce(), journals.read(WORKSPACE))


def check_rules(settings: Settings) -> Line:
    """Whether the rules leave a way for all that guards and hooks demand."""
    try:
        recorded = InForce()
        if (settings.data / DATABASE).exists():
            with reader(settings) as journals:
                recorded = in_force(journals)
        policies = Policies(settings, None, recorded)
    except (ConfigError, StoreError) as error:
        return Line("rules", str(error))
    dead = dead_ends_in(policies.base, policies.guards, policies.file, policies.in_force, policies.now)
    what = "rules: nothing that they forbid is demanded" if not dead else "rules: what is demanded is forbidden"
    return Line(what, "\n".join(f"{one}. Change the rule or the guard." for one in dead))
