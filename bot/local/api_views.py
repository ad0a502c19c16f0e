"""views.*: modals in stacks of at most three, and Home tabs."""

import secrets
from collections.abc import Callable, Mapping
from typing import Final

from bot.local import rules
from bot.local.arguments import Arguments
from bot.local.shapes import JSON, SlackError
from bot.local.views import check_view, kept_view
from bot.local.world import World


def use_trigger(world: World, arguments: Arguments) -> JSON:
    """What the trigger id stands for, or SlackError.  It is used up."""
    trigger_id = arguments.text("trigger_id") or arguments.text("interactivity_pointer")
    found = world.triggers.get(trigger_id)
    if found is None:
        raise SlackError("invalid_trigger_id" if trigger_id else "invalid_arguments")
    if found["used"]:
        raise SlackError("exchanged_trigger_id")
    if world.clock() > found["until"]:
        raise SlackError("expired_trigger_id")
    return found


def checked(world: World, arguments: Arguments, kind: str, view_id: str = "") -> JSON:
    view = check_view(arguments.decoded("view", "invalid_arguments"), kind)
    external = view.get("external_id")
    if external and any(
        item["view"]["external_id"] == external and key != view_id for key, item in world.views.items()
    ):
        raise SlackError("duplicate_external_id")
    return view


def stack(world: World, user: str) -> list[str]:
    """A person's open modals, the bottom one first."""
    return [key for key, item in world.views.items() if item["user"] == user and item["view"]["type"] == "modal"]


def show(world: World, user: str, view: JSON, below: str | None) -> JSON:
    """Put a modal on top of another (or of nothing).  Out: the view as Slack gives it back."""
    view_id = f"V{secrets.token_hex(5).upper()}"
    root = world.views[below]["view"]["root_view_id"] if below else view_id
    kept = kept_view(view, view_id, root, below)
    world.views[view_id] = {"user": user, "view": kept}
    world.log.note("view", user=user, view_id=view_id, verb="push" if below else "open")
    return kept


def change(world: World, view_id: str, view: JSON) -> JSON:
    """Replace an open view.  What was typed stays where the ids stay."""
    old = world.views[view_id]["view"]
    kept = kept_view(view, view_id, old["root_view_id"], old["previous_view_id"], old)
    world.views[view_id] = world.views[view_id] | {"view": kept, "errors": {}}
    world.log.note("view", user=world.views[view_id]["user"], view_id=view_id, verb="update")
    return kept


def open_view(world: World, arguments: Arguments) -> JSON:
    trigger = use_trigger(world, arguments)
    view = checked(world, arguments, "modal")
    _used(world, arguments)
    for key in stack(world, trigger["user"]):
        del world.views[key]  # a new modal takes the place of all that were open
    return {"view": show(world, trigger["user"], view, None)}


def push_view(world: World, arguments: Arguments) -> JSON:
    trigger = use_trigger(world, arguments)
    below = trigger["view"]
    if below not in world.views:
        raise SlackError("not_found" if below else "invalid_trigger_id")
    view = checked(world, arguments, "modal")
    if len(stack(world, trigger["user"])) >= rules.VIEW_STACK:
        raise SlackError("push_limit_reached")
    _used(world, arguments)
    return {"view": show(world, trigger["user"], view, below)}


def _used(world: World, arguments: Arguments) -> None:
    trigger_id = arguments.text("trigger_id") or arguments.text("interactivity_pointer")
    world.triggers[trigger_id] = world.triggers[trigger_id] | {"used": True}


def update_view(world: World, arguments: Arguments) -> JSON:
    view_id, external = arguments.text("view_id"), arguments.text("external_id")
    if not view_id:
        view_id = next((key for key, item in world.views.items() if item["view"]["external_id"] == external), "")
    if view_id not in world.views:
        raise SlackError("not_found")
    kind = world.views[view_id]["view"]["type"]
    view = checked(world, arguments, kind, view_id)
    if arguments.has("hash") and arguments.text("hash") != world.views[view_id]["view"]["hash"]:
        raise SlackError("hash_conflict")
    return {"view": change(world, view_id, view)}


def publish_view(world: World, arguments: Arguments) -> JSON:
    user = arguments.text("user_id", "invalid_arguments")
    if user not in world.people or world.people[user]["is_bot"]:
        raise SlackError("user_not_found")
    view = checked(world, arguments, "home", home_id(user))
    old = world.views.get(home_id(user))
    if old and arguments.has("hash") and arguments.text("hash") != old["view"]["hash"]:
        raise SlackError("hash_conflict")
    kept = kept_view(view, home_id(user), home_id(user), None)
    world.views[home_id(user)] = {"user": user, "view": kept}
    world.log.note("view", user=user, view_id=home_id(user), verb="publish")
    return {"view": kept}


def home_id(user: str) -> str:
    """The id of a person's Home tab."""
    return f"VHOME{user[1:]}"


METHODS: Final[Mapping[str, Callable[[World, Arguments], JSON]]] = {
    "views.open": open_view,
    "views.push": push_view,
    "views.update": update_view,
    "views.publish": publish_view,
}
