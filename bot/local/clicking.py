"""What people do with buttons, modals and the Home tab, and what the app's acknowledgement makes of it."""

from typing import Any

from bot.local import payloads, people, rules
from bot.local.api_views import change, checked, home_id, show, stack
from bot.local.arguments import Arguments
from bot.local.board import controls
from bot.local.shapes import JSON, Answer, PersonCannot, SlackError
from bot.local.speaking import may_act
from bot.local.views import chosen, complaints, stateful
from bot.local.world import World


async def click(
    world: World, user: str, channel: str, message_ts: str, action_id: str, *, block_id: str | None = None,
    value: Any = None, force: bool = False, overrides: JSON | None = None,
) -> Answer:  # fmt: skip
    """A person uses a control of a message.  `force`: from a client that still shows what is gone.

    `overrides` replaces fields of the payload (team, api_app_id), for what a foreign sender might send."""
    may_act(world, user, channel, force)
    record = world.board.find(channel, message_ts, deleted=force, ephemeral=True)
    if record is None:
        raise PersonCannot(f"no such message: {message_ts}")
    if record["only_for"] not in (None, user) and not force:
        raise PersonCannot(f"{user} does not see {message_ts}")
    part = _control(record, action_id, block_id, force)
    if user not in part.get("visible_to_user_ids", [user]) and not force:
        raise PersonCannot(f"{user} does not see {action_id}")
    acted = payloads.action(world, part, value)
    payload = payloads.message_click(world, user, record, acted) | (overrides or {})
    return await _send(world, user, payload)


def _control(record: JSON, action_id: str, block_id: str | None, force: bool) -> JSON:
    """The control a person means: one on the message now, or with `force` one that once was."""
    now = [part | {"block_id": block} for block, part in controls(record["message"].get("blocks", ()))]
    known: list[JSON] = now + (list(record["elements"].values()) if force else [])
    for part in known:
        if part["action_id"] == action_id and block_id in (None, part["block_id"]):
            return part
    if force:  # never shown at all: somebody else's making
        return {"type": "button", "action_id": action_id, "block_id": block_id or "none", "text": None}
    raise PersonCannot(f"no {action_id} on the message; there are {[part['action_id'] for part in now]}")


async def click_view(
    world: World, user: str, action_id: str, *, view_id: str | None = None, block_id: str | None = None,
    value: Any = None,
) -> Answer:  # fmt: skip
    """A person uses a control of the open modal, or of the view that is named (their Home tab, say)."""
    view_id = view_id or top(world, user)
    for block, part in controls(_view(world, user, view_id)["blocks"]):
        if part["action_id"] == action_id and block_id in (None, block):
            acted = payloads.action(world, part | {"block_id": block}, value)
            return await _send(world, user, payloads.view_click(world, user, view_id, acted))
    raise PersonCannot(f"no {action_id} in the view")


async def _send(world: World, user: str, payload: JSON) -> Answer:
    key = world.hub.offer("interactive", payload, accepts=True, user=user)
    return await world.hub.answer(key)


def top(world: World, user: str) -> str:
    """The modal that a person has before them."""
    open_views = stack(world, user)
    if not open_views:
        raise PersonCannot(f"{user} has no open modal")
    return open_views[-1]


def _view(world: World, user: str, view_id: str) -> JSON:
    if view_id not in world.views or world.views[view_id]["user"] != user:
        raise PersonCannot(f"{user} does not have {view_id} open")
    view: JSON = world.views[view_id]["view"]
    return view


async def submit(world: World, user: str, values: JSON, *, view_id: str | None = None) -> Answer:
    """A person fills in a modal and submits it.  In: values by block_id or action_id."""
    view_id = view_id or top(world, user)
    view = _view(world, user, view_id)
    filled = fill(view, values)
    errors = complaints(view["blocks"], filled)
    if errors:  # the client says so itself; nothing is sent
        _show_errors(world, view_id, errors)
        return Answer(False, next(iter(errors.values())), errors=errors)
    view["state"]["values"] = filled
    world.views.touch(view_id)
    answer = await _send(world, user, payloads.submission(world, user, view))
    if not answer.ok:
        return answer
    try:
        return _acknowledged(world, user, view_id, answer)
    except SlackError as error:
        world.log.saw(user, "modal_error", error=str(error))
        return Answer(False, error.code, answer.envelope_id, answer.payload)
    finally:
        world.file.flush()


def fill(view: JSON, values: JSON) -> JSON:
    """state.values after a person entered these values; PersonCannot where the view has no such field or option."""
    fields = stateful(view["blocks"])
    names = {name for block, part, _ in fields for name in (block, part["action_id"])}
    if not names.issuperset(values):
        raise PersonCannot(f"no such field: {sorted(set(values) - names)}, there are {sorted(names)}")
    filled: JSON = {}
    for block, part, _ in fields:
        name = block if block in values else part["action_id"]
        state = view["state"]["values"].get(block, {}).get(part["action_id"])
        if name in values:
            try:
                state = chosen(part, values[name])
            except ValueError as error:
                raise PersonCannot(str(error)) from None
        filled.setdefault(block, {})[part["action_id"]] = state
    return filled


def _acknowledged(world: World, user: str, view_id: str, answer: Answer) -> Answer:
    """Do as the app's answer to a submission says: close, clear, update, push, or show errors."""
    sent = answer.payload or {}
    if view_id not in world.views:
        return answer  # the person closed it, or the app cleared it, while the app thought
    match sent.get("response_action"):
        case None:
            shut(world, view_id)
        case "clear":
            for key in stack(world, user):
                shut(world, key)
        case "errors":
            errors = sent.get("errors") or {}
            blocks = {block["block_id"] for block in world.views[view_id]["view"]["blocks"] if block["type"] == "input"}
            if not errors or not blocks.issuperset(errors):
                raise SlackError("invalid_errors", [f"no input block: {sorted(set(errors) - blocks)}"])
            _show_errors(world, view_id, errors)
            return Answer(False, "errors", answer.envelope_id, sent, errors)
        case "update":
            change(world, view_id, checked(world, Arguments(sent), "modal", view_id))
        case "push":
            if len(stack(world, user)) >= rules.VIEW_STACK:
                raise SlackError("push_limit_reached")
            show(world, user, checked(world, Arguments(sent), "modal"), view_id)
        case other:
            raise SlackError("invalid_response_action", [str(other)])
    return answer


def _show_errors(world: World, view_id: str, errors: dict[str, str]) -> None:
    world.views[view_id] = world.views[view_id] | {"errors": errors}
    world.log.saw(world.views[view_id]["user"], "view_errors", errors=errors, view_id=view_id)


def shut(world: World, view_id: str) -> None:
    """Take a modal away."""
    if view_id in world.views:
        world.log.note("view", user=world.views[view_id]["user"], view_id=view_id, verb="close")
        del world.views[view_id]


async def close(world: World, user: str, view_id: str | None = None, *, clear: bool = False) -> Answer:
    """A person closes the modal before them (`clear`: all of them).  The app is told where it asked to be."""
    view_id = view_id or top(world, user)
    _view(world, user, view_id)
    shutting = stack(world, user)[::-1] if clear else [view_id]
    answers = [Answer(True)]
    for key in shutting:
        view = world.views[key]["view"]
        shut(world, key)
        if view["notify_on_close"]:
            answers.append(await _send(world, user, payloads.closed(world, user, view, cleared=clear)))
    world.file.flush()
    return answers[-1]


def open_home(world: World, user: str, tab: str = "home") -> None:
    """A person opens the app's Home or Messages tab."""
    channel = people.direct_id(user)
    may_act(world, user, channel, force=False)
    event: JSON = {"type": "app_home_opened", "user": user, "channel": channel, "tab": tab,
                   "event_ts": world.stamps.next()}  # fmt: skip
    if tab == "home" and home_id(user) in world.views:
        event["view"] = world.views[home_id(user)]["view"]
    world.emit(event, channel)
    world.log.changed()
