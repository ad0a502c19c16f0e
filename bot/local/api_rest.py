"""auth, apps, users, bots, team, assistant and agents: small methods that mostly tell or set one thing."""

from collections.abc import Callable, Mapping
from typing import Final

from bot.local import people, rules
from bot.local.arguments import Arguments
from bot.local.shapes import JSON, SlackError
from bot.local.world import World


def auth_test(world: World, arguments: Arguments) -> JSON:
    return {
        "url": f"https://{people.TEAM_DOMAIN}.slack.com/", "team": people.TEAM_NAME, "user": people.BOT_NAME,
        "team_id": people.TEAM_ID, "user_id": people.BOT_USER, "bot_id": people.BOT_ID,
        "is_enterprise_install": False,
    }  # fmt: skip


def connections_open(world: World, arguments: Arguments) -> JSON:
    address = world.address.replace("http://", "ws://")
    return {"url": f"{address}/_socket?ticket={world.hub.ticket()}&app_id={people.APP_ID}"}


def users_info(world: World, arguments: Arguments) -> JSON:
    user = arguments.text("user", "user_not_found")
    if user not in world.people:
        raise SlackError("user_not_found")
    return {"user": world.people[user]}


def bots_info(world: World, arguments: Arguments) -> JSON:
    wanted = arguments.text("bot", "bot_not_found")
    for user in world.people.values():
        if user["is_bot"] and user["profile"]["bot_id"] == wanted:
            icons = dict.fromkeys(("image_36", "image_48", "image_72"), "")
            return {"bot": {
                "id": wanted, "deleted": user["deleted"], "name": user["name"], "updated": user["updated"],
                "app_id": user["profile"]["api_app_id"], "user_id": user["id"], "icons": icons,
            }}  # fmt: skip
    raise SlackError("bot_not_found")


def team_info(world: World, arguments: Arguments) -> JSON:
    icon = {"image_default": True} | {f"image_{size}": "" for size in (34, 44, 68, 88, 102, 132, 230)}
    return {"team": {
        "id": people.TEAM_ID, "name": people.TEAM_NAME, "url": f"https://{people.TEAM_DOMAIN}.slack.com/",
        "domain": people.TEAM_DOMAIN, "email_domain": "", "icon": icon, "is_verified": False,
        "avatar_base_url": "", "discoverable": "invite_only",
    }}  # fmt: skip


def set_status(world: World, arguments: Arguments) -> JSON:
    loading = arguments.decoded("loading_messages", "invalid_arguments") or []
    if len(loading) > rules.LOADING_MESSAGES:
        raise SlackError(
            "invalid_arguments", ["[ERROR] no more than 10 items allowed [json-pointer:/loading_messages]"]
        )
    return _thread(world, arguments, status=arguments.text("status"), loading_messages=loading)


def set_title(world: World, arguments: Arguments) -> JSON:
    return _thread(world, arguments, title=arguments.text("title", "invalid_arguments"))


def set_prompts(world: World, arguments: Arguments) -> JSON:
    prompts = arguments.decoded("prompts", "invalid_arguments")
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= rules.SUGGESTED_PROMPTS:
        raise SlackError("invalid_arguments", ["[ERROR] must be 1 to 4 items [json-pointer:/prompts]"])
    if any(not prompt.get("title") or not prompt.get("message") for prompt in prompts):
        raise SlackError("invalid_arguments", ["[ERROR] missing required field [json-pointer:/prompts]"])
    if not arguments.has("thread_ts"):
        return {}  # prompts of the empty Messages tab: slack_sdk 3.43 made the thread optional
    return _thread(world, arguments, prompts=prompts)


def _thread(world: World, arguments: Arguments, **facts: object) -> JSON:
    key = arguments.text("channel_id", "channel_not_found")
    if key not in world.channels or not world.is_in(people.BOT_USER, key):
        raise SlackError("channel_not_found")
    thread = arguments.text("thread_ts")
    if not world.board.known(key, thread):
        raise SlackError("invalid_thread_ts")
    session = world.sessions.setdefault(f"{key}:{thread}", {})
    session |= facts
    world.log.changed()
    return {}


def session_status(world: World, arguments: Arguments) -> JSON:
    if world.settings.agents != "ok":
        raise SlackError(world.settings.agents)
    status = arguments.text("status", "invalid_arguments")
    if status not in rules.SESSION_STATUSES or len(arguments.text("title")) > rules.SESSION_TITLE:
        raise SlackError("invalid_arguments", ["[ERROR] invalid status or title [json-pointer:/status]"])
    key = arguments.text("channel_id") or arguments.text("channel", "channel_not_found")
    if key not in world.channels:
        raise SlackError("channel_not_found")
    session = world.sessions.setdefault(f"{key}:{arguments.text('thread_ts')}", {})
    session |= {"session_status": status}
    world.log.changed()
    return {}


METHODS: Final[Mapping[str, Callable[[World, Arguments], JSON]]] = {
    "auth.test": auth_test,
    "apps.connections.open": connections_open,
    "users.info": users_info,
    "bots.info": bots_info,
    "team.info": team_info,
    "assistant.threads.setStatus": set_status,
    "assistant.threads.setTitle": set_title,
    "assistant.threads.setSuggestedPrompts": set_prompts,
    "agents.sessions.setStatus": session_status,
}
