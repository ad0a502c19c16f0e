"""The command line: run the bot, or play the demo."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bot import check, demo, judging, loaded, logs, replaying
from bot.app import Bot, model_of
from bot.approvers import Access
from bot.config import VARIABLES, Settings, in_force
from bot.folders import WORKSPACES
from bot.local_bot import LocalBot
from bot.sessions import NoSuchSession
from bot.slack_api import SlackRefused, SlackUnreachable
from harness_core.errors import ConfigError, StoreError
from harness_core.masking import mask

USAGE: Final = "Runs the harness bot: in Slack with the two Slack tokens set, else in a local workspace."


COMMANDS: Final = {
    "run": "run the bot (the default)",
    "demo": "play one conversation without a browser",
    "check": "say of each setting whether it works, or what to do",
    "config": "show the settings in force and where they come from",
    "judge": "judge rows of a truth table on standard input, one line of JSON per row",
    "trace": "say what happened in a session, or which sessions there are",
    "replay": "say what the policy in force, or another, makes of a recorded session",
    "backtest": "say what another policy would have changed in all recorded sessions, per rule",
}
ARGUMENTS: Final[Mapping[str, Callable[[argparse.ArgumentParser], None]]] = {
    "judge": judging.arguments,
    "trace": replaying.trace_arguments,
    "replay": replaying.replay_arguments,
    "backtest": replaying.backtest_arguments,
}
# Commands that only read what was recorded.
RECORDED: Final[Mapping[str, Callable[[Settings, argparse.Namespace], int]]] = {
    "trace": replaying.trace,
    "replay": replaying.replay_one,
    "backtest": replaying.backtest,
}


def main(argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run a command. Returns the exit code: 0 fine, 1 it failed, 2 the settings need correcting."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.command == "judge":
            return judging.main(arguments)
        settings = Settings.from_env(os.environ if env is None else env)
        quiet = settings.log_level in ("warning", "error")
        logs.configure(settings.log, "info" if arguments.verbose and quiet else settings.log_level)
        if arguments.command == "demo":
            return demo.main(settings)
        if recorded := RECORDED.get(arguments.command):
            return recorded(settings, arguments)
        if arguments.command == "config":
            return _config(os.environ if env is None else env, settings)
        if arguments.command == "check":
            return asyncio.run(_check(settings))
        if (folder := check.folder(settings.data)).advice:
            raise ConfigError(f"{folder.what}: {folder.advice}")
        asyncio.run(_run(settings))
        return 0
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (SlackRefused, SlackUnreachable) as error:
        where = settings.slack.api_url if settings.slack else "the local workspace"
        print(mask(f"{error} (at {where}). `harness-bot check` says what to do."), file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever reads our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered must go somewhere
        return 0
    except (NoSuchSession, StoreError, OSError) as error:
        print(mask(str(error)), file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="harness-bot", description=USAGE)
    verbose = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    for one in (parser, verbose):  # before the command or after it
        one.add_argument("-v", "--verbose", action="store_true", help="log what happens, not only what goes wrong")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, what in COMMANDS.items():
        command = commands.add_parser(name, help=what, description=what, parents=[verbose])
        if takes := ARGUMENTS.get(name):
            takes(command)
    return parser


def _config(env: Mapping[str, str], settings: Settings) -> int:
    widest = max(len(name) for name, *_ in VARIABLES)
    for name, value, source in in_force(env):
        print(f"{name:<{widest}}  {source:<11}  {mask(value)}")
    for line in loaded.shown(settings):
        print(mask(line))
    return 0


async def _check(settings: Settings) -> int:
    model, fine = model_of(settings), True
    for line in loaded.check_loaded(settings):
        print(mask(str(line)))
        fine = fine and not line.advice
    async for line in check.check(settings, model):
        print(mask(str(line)), flush=True)
        fine = fine and not line.advice
    return 0 if fine else 1


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if settings.slack is None:
        async with LocalBot(settings) as local:
            for line in (*_local_lines(local), *_lines(settings), "Ctrl-C stops."):
                print(line, flush=True)
            await stop.wait()
        return
    async with Bot(settings, settings.slack, Access(settings.admins, settings.approvers)) as bot:
        for line in (f"Connected to Slack as {bot.us.bot_user_id} in {bot.us.team_id}.", *_lines(settings)):
            print(line, flush=True)
        if bot.book.claim_code and not (await bot.book.access()).admins:
            print(f"Nobody administers the bot yet. In Slack: /harness claim {bot.book.claim_code}", flush=True)
        await stop.wait()


def _local_lines(local: LocalBot) -> Sequence[str]:
    return (
        "Slack: no tokens (SLACK_BOT_TOKEN, SLACK_APP_TOKEN), so this is a local workspace on this machine.",
        f"Open:  {local.workspace.page_url}",
    )


def _lines(settings: Settings) -> Sequence[str]:
    folder = settings.workspace or settings.data / WORKSPACES
    per = "one folder for all sessions" if settings.workspace else "a folder per session"
    practice = "the practice model, which follows a few plain requests and needs no network (no HARNESS_MODEL)"
    model = settings.model.name or practice
    return (
        f"Model: {model}.",
        f"Tools: approved commands really run on this machine, in {folder.resolve()} ({per}).",
        f"Data:  {settings.data.resolve()}",
    )


if __name__ == "__main__":
    sys.exit(main())
