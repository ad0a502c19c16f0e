"""Who and what is in a new workspace: the team, its people, its channels.  Ids never change between runs."""

from typing import Final

from bot.local.shapes import JSON

TEAM_ID: Final = "T0LOCAL001"
TEAM_NAME: Final = "Local workspace"
TEAM_DOMAIN: Final = "local-workspace"
OTHER_TEAM_ID: Final = "T0PARTNER1"
APP_ID: Final = "A0LOCAL001"
BOT_ID: Final = "B0LOCAL001"
BOT_USER: Final = "U0HARNESS1"
BOT_NAME: Final = "harness"
OTHER_APP_ID: Final = "A0OTHER001"
OTHER_BOT_ID: Final = "B0OTHER001"
OTHER_BOT: Final = "U0OTHERBOT"

ADA: Final = "U0ADA00001"
BEN: Final = "U0BEN00001"
CLEO: Final = "U0CLEO0001"
GIL: Final = "U0GIL00001"  # a guest
SAM: Final = "U0SAM00001"  # from another organisation
DEE: Final = "U0DEE00001"  # deactivated
SLACK: Final = "USLACK"  # writes system notices, is nobody

GENERAL: Final = "C0GENERAL1"
OPS: Final = "C0OPS00001"
PRIVATE: Final = "C0SECRET01"
SHARED: Final = "C0SHARED01"  # shared with another organisation
OUTSIDE: Final = "C0OUTSIDE1"  # the bot is not in it

CREATED: Final = 1_700_000_000


def person(user: str, name: str, real: str, team: str = TEAM_ID, **facts: object) -> JSON:
    """A user as users.info answers.  In: ids and names, and what differs from an ordinary member."""
    profile = {
        "title": "", "phone": "", "skype": "", "real_name": real, "real_name_normalized": real, "display_name": name,
        "display_name_normalized": name, "status_text": "", "status_emoji": "", "status_expiration": 0,
        "avatar_hash": "", "first_name": real.split()[0], "last_name": real.split()[-1], "team": team,
        "image_24": "", "image_32": "", "image_48": "", "image_72": "", "image_192": "", "image_512": "",
    }  # fmt: skip
    user_facts: JSON = {
        "id": user, "team_id": team, "name": name, "deleted": False, "color": "9f69e7", "real_name": real,
        "tz": "Europe/London", "tz_label": "Greenwich Mean Time", "tz_offset": 0, "profile": profile,
        "is_admin": False, "is_owner": False, "is_primary_owner": False, "is_restricted": False,
        "is_ultra_restricted": False, "is_bot": False, "is_app_user": False, "updated": CREATED,
        "is_email_confirmed": True, "who_can_share_contact_card": "EVERYONE",
    }  # fmt: skip
    bot = facts.pop("bot", None)
    if isinstance(bot, tuple):
        profile |= {"bot_id": bot[0], "api_app_id": bot[1], "always_active": True}
    return user_facts | facts


def seeded_people() -> list[JSON]:
    return [
        # Being one of Slack's administrators gives no rights with the bot: only Ada is one, so a test can tell.
        person(ADA, "ada", "Ada Admin", is_admin=True),
        person(BEN, "ben", "Ben Member"),
        person(CLEO, "cleo", "Cleo Member"),
        person(GIL, "gil", "Gil Guest", is_restricted=True),
        person(SAM, "sam", "Sam Stranger", team=OTHER_TEAM_ID, is_stranger=True),
        person(DEE, "dee", "Dee Deactivated", deleted=True),
        person(BOT_USER, BOT_NAME, "Harness Bot", is_bot=True, bot=(BOT_ID, APP_ID)),
        person(OTHER_BOT, "otherbot", "Other Bot", is_bot=True, bot=(OTHER_BOT_ID, OTHER_APP_ID)),
        person(SLACK, "slack", "Slack System"),
    ]


def channel(key: str, name: str, members: list[str], **facts: object) -> JSON:
    """A channel: `info` as conversations.info answers, and its members."""
    blank = {"value": "", "creator": "", "last_set": 0}
    info: JSON = {
        "id": key, "name": name, "is_channel": True, "is_group": False, "is_im": False, "is_mpim": False,
        "is_private": False, "created": CREATED, "is_archived": False, "is_general": False, "unlinked": 0,
        "name_normalized": name, "is_shared": False, "is_org_shared": False, "is_pending_ext_shared": False,
        "pending_shared": [], "context_team_id": TEAM_ID, "updated": CREATED, "parent_conversation": None,
        "creator": ADA, "is_ext_shared": False, "shared_team_ids": [TEAM_ID], "pending_connected_team_ids": [],
        "topic": blank, "purpose": blank, "previous_names": [],
    }  # fmt: skip
    return {"info": info | facts, "members": members}


def direct(user: str) -> JSON:
    """The direct messages between a person and the bot."""
    info = {
        "id": direct_id(user), "created": CREATED, "is_archived": False, "is_im": True, "is_org_shared": False,
        "context_team_id": TEAM_ID, "updated": CREATED, "user": user, "is_user_deleted": user == DEE, "priority": 0,
    }  # fmt: skip
    return {"info": info, "members": [user, BOT_USER]}


def direct_id(user: str) -> str:
    return "D" + user[1:]


def seeded_channels() -> list[JSON]:
    """The channels, and a direct-message channel with each person."""
    inside = [ADA, BEN, CLEO, GIL, OTHER_BOT]
    both_teams = [TEAM_ID, OTHER_TEAM_ID]
    return [
        channel(GENERAL, "general", [*inside, BOT_USER], is_general=True),
        channel(OPS, "ops", [*inside, BOT_USER]),
        channel(PRIVATE, "secret", [ADA, BEN, BOT_USER], is_channel=False, is_group=True, is_private=True),
        channel(SHARED, "partners", [ADA, BEN, SAM, BOT_USER], is_shared=True, is_ext_shared=True,
                shared_team_ids=both_teams, connected_team_ids=[OTHER_TEAM_ID], conversation_host_id=TEAM_ID),
        channel(OUTSIDE, "outside", [ADA, BEN, CLEO]),
        *(direct(user) for user in (ADA, BEN, CLEO, GIL, SAM, DEE)),
    ]  # fmt: skip


def kind_of(info: JSON) -> str:
    """Slack's word for the kind of a channel, as in `channel_type`: channel, group or im."""
    if info.get("is_im"):
        return "im"
    return "group" if info.get("is_private") else "channel"


SCOPE_OF_KIND: Final = {"channel": "channels", "group": "groups", "im": "im"}
