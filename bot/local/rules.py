"""Slack's numbers and words, with their sources.  The only place in this package where a limit is written."""

from typing import Final

# --- text and blocks: docs.slack.dev/reference/block-kit, and the validators of slack_sdk 3.48 ---
TEXT_OBJECT: Final = 3000  # any text object; a section's text too
FIELDS: Final = 10
FIELD_TEXT: Final = 2000
HEADER_TEXT: Final = 150
BUTTON_TEXT: Final = 75
BUTTON_VALUE: Final = 2000
URL: Final = 3000
ALT_TEXT: Final = 2000
IDENTIFIER: Final = 255  # action_id, block_id, callback_id, external_id
ACTIONS: Final = 25
CONTEXT: Final = 10
CONTEXT_ACTIONS: Final = 5
OVERFLOW: Final = 5
CHOICES: Final = 10  # checkboxes and radio buttons
OPTIONS: Final = 100
OPTION_TEXT: Final = 75
OPTION_VALUE: Final = 150
PLACEHOLDER: Final = 150
LABEL: Final = 2000  # label and hint of an input block
INPUT_TEXT: Final = 3000  # max_length of plain_text_input
CONFIRM_TITLE: Final = 100
CONFIRM_TEXT: Final = 300
CONFIRM_BUTTON: Final = 30
VISIBLE_TO: Final = 10  # visible_to_user_ids; documented for icon_button only
CARD_TEXT: Final = 150
CARD_BODY: Final = 200
CARD_ACTIONS: Final = 3
ALERT_TEXT: Final = 200
CONTAINER_BLOCKS: Final = 10
CONTAINER_TITLE: Final = 150
MARKDOWN_TOTAL: Final = 12_000  # all markdown blocks of a message together; markdown_text too
TABLE_ROWS: Final = 100
TABLE_COLUMNS: Final = 20
TABLE_TEXT: Final = 10_000

# --- messages: docs.slack.dev/reference/methods/chat.postMessage and chat.update ---
MESSAGE_BLOCKS: Final = 50
# Serialised JSON of all blocks; bolt-js#2867 saw 11,341 refused, the exact rule is not documented.
MESSAGE_BLOCKS_JSON: Final = 9000
TEXT_CUT: Final = 40_000  # chat.postMessage cuts silently above
TEXT_UNSPLIT: Final = 4040  # measured by others: 4,041 characters arrive as several messages ...
TEXT_PART: Final = 4000  # ... of this size (also java-slack-sdk#704)
UPDATE_TEXT: Final = 4000  # chat.update fails whole: msg_too_long
REACTIONS_EACH: Final = 23  # different reactions of one user on one message: reactions.add, too_many_reactions

# Notices of Slack's own take no replies: chat.postMessage, cannot_reply_to_message.
NO_REPLIES: Final = frozenset({"channel_join", "channel_leave", "channel_topic", "channel_purpose", "ephemeral"})

# --- views: docs.slack.dev/reference/views ---
VIEW_BLOCKS: Final = 100
VIEW_TITLE: Final = 24  # title, submit and close
VIEW_METADATA: Final = 3000
VIEW_BYTES: Final = 250_000
VIEW_STACK: Final = 3

# --- time: docs.slack.dev/interactivity and /apis/events-api ---
ACK_SECONDS: Final = 3.0
TRIGGER_SECONDS: Final = 3.0
RESPONSE_URL_USES: Final = 5
RESPONSE_URL_SECONDS: Final = 30 * 60.0
RETRY_SECONDS: Final = (0.0, 60.0, 300.0)  # after a time-out: at once, a minute, five minutes

# --- Socket Mode: docs.slack.dev/apis/events-api/using-socket-mode ---
SOCKETS: Final = 10
TICKET_SECONDS: Final = 30.0  # not documented; Slack's addresses are short-lived

# --- the page: ours ---
PAGE_MESSAGES: Final = 1000  # the newest of a channel; older ones are on disk, and no browser wants them all
PAGE_HEARTBEAT_SECONDS: Final = 20.0  # a laptop that slept is noticed within this

# --- assistant.threads and agents.sessions ---
LOADING_MESSAGES: Final = 10
SUGGESTED_PROMPTS: Final = 4
SESSION_TITLE: Final = 200
SESSION_STATUSES: Final = ("processing", "active", "suspended", "closed")

# The smallest manifest that such a bot can work with: what is asked for beyond it is refused with missing_scope.
BOT_SCOPES: Final = frozenset(
    [
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "groups:history",
        "groups:read",
        "im:history",
        "reactions:write",
        "users:read",
    ]
)
BOT_EVENTS: Final = frozenset(
    [
        "app_home_opened",
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "agent_session_stopped",
        "member_joined_channel",
    ]
)
COMMANDS: Final = frozenset({"/harness"})

# Scope of each method.  "history" and "read" stand for the scope of the channel's own kind.
METHOD_SCOPES: Final[dict[str, str]] = {
    "auth.test": "",
    "apps.connections.open": "connections:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.delete": "chat:write",
    "chat.getPermalink": "",
    "conversations.replies": "history",
    "conversations.history": "history",
    "conversations.info": "read",
    "conversations.members": "read",
    "conversations.open": "im:write",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "users.info": "users:read",
    "bots.info": "users:read",
    "team.info": "team:read",
    "views.open": "",
    "views.update": "",
    "views.push": "",
    "views.publish": "",
    "assistant.threads.setStatus": "assistant:write",
    "assistant.threads.setTitle": "assistant:write",
    "assistant.threads.setSuggestedPrompts": "assistant:write",
    "agents.sessions.setStatus": "chat:write",
}

# Endings that Slack's client takes for a web address though only a file was meant (main.py, run.sh) are here too.
LINK_ENDINGS: Final = "com|org|net|io|dev|ai|app|co|me|sh|py|md|rs|de|eu|uk|us|info|xyz|cloud|gov|edu|tech"

EMOJI: Final[dict[str, str]] = {  # name -> code points; the few that people use with a bot
    "x": "274c", "white_check_mark": "2705", "+1": "1f44d", "-1": "1f44e", "eyes": "1f440", "wave": "1f44b",
    "rocket": "1f680", "fire": "1f525", "tada": "1f389", "warning": "26a0-fe0f", "smile": "1f604",
    "hourglass_flowing_sand": "23f3", "bug": "1f41b", "pray": "1f64f", "heart": "2764-fe0f",
}  # fmt: skip
