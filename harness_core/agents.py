"""Agents as Markdown files: a front matter that says what the agent is, and a text that is its prompt.  Pure.

    ---
    name: reviewer
    description: Reads code and says what is wrong with it.
    tools: [read, glob, grep]
    rules:
      - deny read secrets/**
    max_steps: 10
    ---
    You review code. …

The front matter is the part of YAML that needs no second look: `key: text`, `key: number`, and lists in brackets, in
lines of their own, or parted by commas. Whatever is not understood is an error, and one error names them all: a typing
error must not give an agent a tool, or lose a rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.errors import ConfigError, shown
from harness_core.given import whole
from harness_core.permissions.book import names as is_about
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.sound import fault_of

TASK: Final = "task"  # the tool that hands work to an agent
HITL: Final = "hitl"  # may stand in a list of tools: whether people can be asked is inherited
MOST_STEPS: Final = 1_000
LONGEST_DESCRIPTION: Final = 500  # characters; all of them stand in the description of one tool
LONGEST_PROMPT: Final = 50_000  # characters; it is sent with every request

_FIELDS: Final = ("name", "description", "tools", "model", "rules", "max_steps")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FENCE: Final = re.compile(r"---[ \t]*")
_FIELD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_ITEM: Final = re.compile(r"( *)-(?:[ \t]+(.*))?")
_COMMENT: Final = re.compile(r"(?:\A|[ \t]+)#.*")
_QUOTED: Final = re.compile(r"""(?:"([^"\\]*)"|'([^']*)')(?:[ \t]+#.*)?""")
_IN_BRACKETS: Final = re.compile(r"""[ \t]*("[^"\\]*"|'[^']*'|[^,\[\]{}"'#]+?)[ \t]*(?:,|\Z)""")
_PLAINLY: Final = "write `key: text` or `- text`, and put texts with odd characters in quotes"

Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agent:
    """A sub-agent. description: for the model that may hand it work. prompt: its own system prompt.

    tools: names of tools; None for all that whoever hands it work has, but `task`. model: a name, or "" for the same
    model. rules: ask and deny rules, on top of all that hold anyway. max_steps: model messages, None for as many.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    model: str = ""
    rules: tuple[PermissionRule, ...] = ()
    max_steps: int | None = None


def parse_agents(files: Mapping[str, str], tools: Collection[str]) -> tuple[Agent, ...]:
    """The agents of these files (name to text), by name. tools: all that there are.

    Raises ConfigError, naming file and field of everything that is wrong.
    """
    wrong: list[str] = []
    agents: dict[str, Agent] = {}
    for file, text in sorted(files.items()):
        faults: list[str] = []
        if agent := _agent(text, tools, faults):
            if agent.name.casefold() in agents:
                faults.append(f"`name`: {agent.name} is the name of another agent")
            agents.setdefault(agent.name.casefold(), agent)
        wrong += [f"{shown(file)}: {fault}" for fault in faults]
    if wrong:
        raise ConfigError("The agents need correcting:\n" + "\n".join(f"- {line}" for line in wrong))
    return tuple(sorted(agents.values(), key=lambda agent: agent.name))


def check_agents(agents: Sequence[Agent], tools: Collection[str]) -> None:
    """Raise ConfigError for agents that a program made and that could not come from a file."""
    wrong = [f"two agents are called {one.name}" for n, one in enumerate(agents) if one.name in _names(agents[:n])]
    for one in agents:
        rules = [PermissionRule.given(rule) for rule in one.rules]
        lost = ((rule, _of_no_tool(rule, tools)) for rule in rules)
        wrong += [f"{one.name}: “{shown(str(rule))}” can never match: {fault}" for rule, fault in lost if fault]
        if one.max_steps is not None:
            whole(f"The max_steps of {shown(one.name)}", one.max_steps)
        widening = [rule for rule in rules if rule.effect == "allow"]
        wrong += [f"{one.name}: {fault}" for fault in _unknown(one.tools or (), tools)]
        wrong += [f"{one.name}: {_widens(rule)}" for rule in widening]
        if not _NAME.fullmatch(one.name) or not one.description.strip() or not one.prompt.strip():
            wrong.append(f"{shown(one.name)}: an agent has a name (letters, digits, _, -), a description and a prompt")
    if wrong:
        raise ConfigError("The agents need correcting:\n" + "\n".join(f"- {line}" for line in wrong))


def _names(agents: Sequence[Agent]) -> set[str]:
    return {agent.name for agent in agents}


# -- what the fields mean ----------------------------------------------------------------------------------------------


def _agent(text: str, tools: Collection[str], wrong: list[str]) -> Agent | None:
    """The agent of one file; what is wrong is appended, and then it is None."""
    fields, prompt = _split(text, wrong)
    if fields is None:
        return None
    wrong += [f"`{shown(key)}` is not known; there are {', '.join(_FIELDS)}" for key in fields if key not in _FIELDS]
    wrong += [f"`{key}` is missing" for key in ("name", "description") if key not in fields]
    agent = Agent(
        name=_matching(fields, "name", _NAME, "must be letters, digits, _ and -, 64 at most", wrong),
        description=_description(fields, wrong),
        prompt=prompt.strip(),
        tools=_tools(fields, tools, wrong),
        model=_text(fields, "model", wrong),
        rules=_rules(fields, tools, wrong),
        max_steps=_steps(fields, wrong),
    )
    if not 0 < len(agent.prompt) <= LONGEST_PROMPT:
        wrong.append(f"the text below the front matter is the agent's prompt: 1 to {LONGEST_PROMPT:,} characters")
    return None if wrong else agent


def _text(fields: Mapping[str, Value], name: str, wrong: list[str]) -> str:
    value = fields.get(name, "")
    if name in fields and (not isinstance(value, str) or not value):
        wrong.append(f"`{name}` must be one text")
    return value if isinstance(value, str) else ""


def _matching(fields: Mapping[str, Value], name: str, form: re.Pattern[str], must: str, wrong: list[str]) -> str:
    text = _text(fields, name, wrong)
    if text and not form.fullmatch(text):
        wrong.append(f"`{name}` {must}, not “{shown(text)}”")
    return text


def _description(fields: Mapping[str, Value], wrong: list[str]) -> str:
    text = _text(fields, "description", wrong)
    if len(text) > LONGEST_DESCRIPTION or not text.isprintable():
        wrong.append(f"`description` must be one printable line of {LONGEST_DESCRIPTION} characters at most")
    return text


def _listed(value: Value) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _tools(fields: Mapping[str, Value], known: Collection[str], wrong: list[str]) -> tuple[str, ...] | None:
    if "tools" not in fields:
        return None
    names = _listed(fields["tools"])
    wrong += [f"`tools`: {fault}" for fault in _unknown(names, known)]
    return names


def _unknown(names: Sequence[str], known: Collection[str]) -> list[str]:
    there = sorted({*known, TASK, HITL})
    unknown = [shown(name) for name in names if name not in there]
    return [f"there is no tool {', '.join(unknown)} (there are: {', '.join(there)})"] if unknown else []


def _rules(fields: Mapping[str, Value], known: Collection[str], wrong: list[str]) -> tuple[PermissionRule, ...]:
    value = fields.get("rules", ())
    if isinstance(value, str):
        wrong.append("`rules` must be a list, a rule in each line that begins with `- `")
        return ()
    return tuple(rule for text in value if (rule := _rule(text, known, wrong)))


def _rule(text: str, known: Collection[str], wrong: list[str]) -> PermissionRule | None:
    """`deny TOOL` or `ask TOOL`, and perhaps a pattern behind it."""
    effect, _, rest = text.partition(" ")
    tool, _, pattern = rest.strip().partition(" ")
    if effect == "allow" and tool:
        wrong.append(f"`rules`: {_widens(PermissionRule.allow(tool, pattern.strip() or None))}")
        return None
    if effect not in ("ask", "deny") or not tool:
        wrong.append(f"`rules`: “{shown(text)}” must be `deny TOOL` or `ask TOOL`, with a pattern behind it or none")
        return None
    rule = PermissionRule("ask" if effect == "ask" else "deny", tool, pattern.strip() or None)
    if fault := fault_of(rule) or _of_no_tool(rule, known):
        wrong.append(f"`rules`: “{shown(text)}” can never match: {fault}")
        return None
    return rule


def _of_no_tool(rule: PermissionRule, known: Collection[str]) -> str:
    there = sorted({*known, TASK})
    found = any(is_about(rule, tool) for tool in there)
    return "" if found else f"there is no tool {shown(rule.tool)} (there are: {', '.join(there)})"


def _widens(rule: PermissionRule) -> str:
    return f"“{shown(str(rule))}” would let an agent do more than whoever hands it work: only ask and deny rules"


def _steps(fields: Mapping[str, Value], wrong: list[str]) -> int | None:
    text = _text(fields, "max_steps", wrong)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if text and not 0 < number <= MOST_STEPS:
        wrong.append(f"`max_steps` must be a number from 1 to {MOST_STEPS:,}, not “{shown(text)}”")
    return number or None


# -- the front matter --------------------------------------------------------------------------------------------------


def _split(text: str, wrong: list[str]) -> tuple[dict[str, Value] | None, str]:
    """The fields of the front matter, None if there is none, and the text below it."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    ends = [n for n, line in enumerate(lines) if n and _FENCE.fullmatch(line)]
    if not _FENCE.fullmatch(lines[0]) or not ends:
        wrong.append("there is no front matter: the file begins with a line `---`, and another one ends it")
        return None, ""
    return front_matter(lines[1 : ends[0]], wrong), "\n".join(lines[ends[0] + 1 :])


def front_matter(lines: Sequence[str], wrong: list[str]) -> dict[str, Value]:
    """The fields in these lines: a text each, or a list of texts. What is not understood is appended to `wrong`."""
    fields: dict[str, Value] = {}
    items: dict[str, str | None] = {}  # how far the items of a field are indented, that stand in lines of their own
    key = ""
    for number, line in enumerate(lines, start=2):
        if not _COMMENT.sub("", line).strip():
            continue
        if not line.isprintable():
            value: Value | None = None
        elif key in items and (item := _ITEM.fullmatch(line)) and items[key] in (None, item[1]):
            value = _scalar(item[2] or "")
            items[key] = item[1]
            fields[key] = (*fields[key], *([value] if isinstance(value, str) else []))
        elif found := _FIELD.fullmatch(line):
            key, said = found[1], (found[2] or "").strip()
            if key in fields:
                wrong.append(f"line {number}: `{shown(key)}` stands there twice")
            value = _value(said)
            if value == () and not said.startswith("["):
                items[key] = None
            fields[key] = () if value is None else value
        else:
            value = None
        if value is None:
            wrong.append(f"line {number}: “{shown(line.strip())}” is not understood: {_PLAINLY}")
    wrong += [f"`{key}` is empty: leave it out, or fill it" for key, indented in items.items() if indented is None]
    return fields


def _value(said: str) -> Value | None:
    """A text, a list in brackets, () for nothing yet; None for what is not understood."""
    said = said if said[:1] in "\"'" and said else _COMMENT.sub("", said).strip()
    if not said:
        return ()
    if not said.startswith("["):
        return _scalar(said)
    inner, items, at = said[1:-1].strip(), [], 0
    if not said.endswith("]"):
        return None
    while at < len(inner):
        found = _IN_BRACKETS.match(inner, at)
        item = _scalar(found[1]) if found else None
        if found is None or not item:
            return None
        items.append(item)
        at = found.end()
    return tuple(items)


def _scalar(said: str) -> str | None:
    """One text, quoted or plain; None where YAML would read something else."""
    if quoted := _QUOTED.fullmatch(said.strip()):
        return quoted[1] if quoted[1] is not None else quoted[2]
    plain = _COMMENT.sub("", said).strip()
    odd = not plain or plain[0] in "\"'`[]{}>|*&!%@,#?:-" or ": " in plain or plain.endswith(":")
    return None if odd or not plain.isprintable() else plain
