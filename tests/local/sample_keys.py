"""Keys that Slack's payloads have, taken from the json-logs of slackapi/java-slack-sdk (MIT).

`MUST`: what an ordinary payload of the kind cannot lack.  `MAY`: everything that the samples show at that place."""

ENVELOPE = frozenset(
    [
        "token",
        "team_id",
        "api_app_id",
        "event",
        "type",
        "event_id",
        "event_time",
        "authorizations",
        "is_ext_shared_channel",
        "event_context",
    ]
)
AUTHORIZATION = frozenset(["enterprise_id", "team_id", "user_id", "is_bot", "is_enterprise_install"])
BOT_PROFILE = frozenset(["id", "deleted", "name", "updated", "app_id", "icons", "team_id"])

EVENT_MUST = {
    "app_mention": "type client_msg_id user text ts team channel event_ts blocks",
    "message": "type client_msg_id team channel user text ts event_ts channel_type blocks",
    "reply": "type client_msg_id team channel user text ts event_ts channel_type blocks parent_user_id thread_ts",
    "bot": "type team channel user bot_id bot_profile app_id text ts event_ts channel_type blocks",
    "message_changed": "type subtype channel hidden message previous_message event_ts ts channel_type",
    "message_deleted": "type subtype channel hidden deleted_ts previous_message event_ts ts channel_type",
    "file_share": "type subtype text files upload display_as_bot user ts channel event_ts channel_type blocks",
    "thread_broadcast": "type subtype client_msg_id channel user root text ts thread_ts event_ts channel_type blocks",
    "channel_join": "type subtype user inviter channel channel_type text ts event_ts",
    "bot_message": "type subtype bot_id username icons channel text ts event_ts channel_type",
    "me_message": "type subtype channel user text event_ts ts channel_type",
    "member_joined_channel": "type user channel channel_type team event_ts inviter",
    "app_home_opened": "type user channel tab event_ts view",
}

INTERACTION_MUST = {
    "block_actions": "type enterprise team user api_app_id token container trigger_id channel message state"
    " response_url actions is_enterprise_install",
    "view_submission": "type enterprise team user api_app_id token trigger_id view is_enterprise_install",
    "view_closed": "type enterprise team user api_app_id token view is_enterprise_install is_cleared",
}
INTERACTION_MAY = frozenset(
    [
        "bot_access_token",
        "function_data",
        "interactivity",
        "app_unfurl",
        "view",
        "is_cleared",
        "message",
        "response_urls",
        "state",
    ]
)
COMMAND = frozenset(
    [
        "token",
        "api_app_id",
        "team_id",
        "team_domain",
        "channel_id",
        "channel_name",
        "user_id",
        "user_name",
        "command",
        "text",
        "response_url",
        "trigger_id",
        "is_enterprise_install",
    ]
)
USER = frozenset(["id", "username", "name", "team_id"])
VIEW = frozenset(
    [
        "id",
        "team_id",
        "type",
        "title",
        "submit",
        "close",
        "private_metadata",
        "callback_id",
        "external_id",
        "state",
        "hash",
        "clear_on_close",
        "notify_on_close",
        "submit_disabled",
        "root_view_id",
        "previous_view_id",
        "app_id",
        "app_installed_team_id",
        "bot_id",
        "blocks",
    ]
)

REPLY_MUST = {
    "auth.test": "ok url team user team_id user_id bot_id is_enterprise_install",
    "bots.info": "ok bot",
    "chat.delete": "ok channel ts",
    "chat.getPermalink": "ok permalink channel",
    "chat.postEphemeral": "ok message_ts",
    "chat.postMessage": "ok channel ts message",
    "chat.update": "ok channel ts text message",
    "conversations.info": "ok channel",
    "conversations.members": "ok members response_metadata",
    "conversations.open": "ok channel",
    "reactions.add": "ok",
    "reactions.remove": "ok",
    "users.info": "ok user",
    "views.open": "ok view",
}
USERS_INFO = frozenset(
    [
        "id",
        "team_id",
        "name",
        "deleted",
        "color",
        "real_name",
        "tz",
        "tz_label",
        "tz_offset",
        "profile",
        "is_admin",
        "is_owner",
        "is_primary_owner",
        "is_restricted",
        "is_ultra_restricted",
        "is_bot",
        "is_app_user",
        "updated",
        "is_email_confirmed",
    ]
)
CONVERSATIONS_INFO = frozenset(
    [
        "id",
        "name",
        "is_channel",
        "is_group",
        "is_im",
        "created",
        "is_archived",
        "is_general",
        "unlinked",
        "name_normalized",
        "is_shared",
        "creator",
        "is_ext_shared",
        "is_org_shared",
        "shared_team_ids",
        "pending_shared",
        "pending_connected_team_ids",
        "is_pending_ext_shared",
        "is_member",
        "is_private",
        "is_mpim",
        "topic",
        "purpose",
        "previous_names",
        "context_team_id",
        "updated",
    ]
)
