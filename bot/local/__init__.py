"""A local, Slack-shaped workspace in this process: the demo, the target of tests, the load rig."""

from bot.local import people
from bot.local.shapes import Answer, Call, PersonCannot, SlackError
from bot.local.workspace import LocalWorkspace
from bot.local.world import Settings

__all__ = ["Answer", "Call", "LocalWorkspace", "PersonCannot", "Settings", "SlackError", "people"]
