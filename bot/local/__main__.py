"""The workspace alone, as a server: `python -m bot.local` prints how to reach it, and serves until interrupted."""

import argparse
import asyncio
import contextlib
import signal

from bot.local.workspace import LocalWorkspace


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bot.local", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen; 0, the default, for any that is free")
    parser.add_argument("--file", default=":memory:", help="where it keeps what is said; in memory if it is left out")
    given = parser.parse_args()
    try:
        asyncio.run(serve(given.file, given.port))
    except BlockingIOError:
        parser.exit(1, f"Another process keeps {given.file}.\n")
    except OSError as error:
        parser.exit(1, f"{error.strerror or error}\n")


async def serve(file: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM. The lines can be read by a shell: the page's address is a comment."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows ends it by KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with LocalWorkspace(file, port=port) as workspace:
        for line in settings(workspace):
            print(line, flush=True)
        await stop.wait()


def settings(workspace: LocalWorkspace) -> list[str]:
    """How a bot, and tests, reach this workspace."""
    return [
        f"SLACK_API_URL={workspace.api_url}",
        f"SLACK_BOT_TOKEN={workspace.bot_token}",
        f"SLACK_APP_TOKEN={workspace.app_token}",
        f"HARNESS_TEST_CONTROL={workspace.control_url}?key={workspace.secret}",
        f"# page: {workspace.page_url}",
    ]


if __name__ == "__main__":
    main()
