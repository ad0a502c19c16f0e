"""Imports point down, what is pure touches nothing, and each half knows the other's public side alone.

Modules are read, not imported. A new module is put on its floor here; a new exception is listed here with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final, Literal, TypeGuard

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]

Where = Literal["top", "function", "types"]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class Floor:
    """What stands side by side. `package.*` is the package and all in it, unless a module is named on its own."""

    name: str
    modules: str
    pure: bool = False


# From the top down: a module imports from its own floor and from those below.
FLOORS: Final = (
    Floor("bot: the command line, the demo", "bot.__main__ bot.demo bot.judging bot.loaded bot.replaying"),
    Floor("bot: the bot beside a Slack of its own", "bot.local_bot"),
    Floor("bot: where the parts are put together", "bot.app"),
    Floor("bot: a Slack in this process, for local_bot alone", "bot.local.*"),
    Floor(
        "bot: what reacts",
        "bot.listeners.* bot.inbox bot.decisions bot.commands bot.rule_commands bot.widening bot.presenter "
        "bot.board bot.drafts bot.moods bot.redraws bot.later bot.turns bot.foresight bot.threads bot.web "
        "bot.quarrels",
    ),
    Floor("bot: people and settings as they are now", "bot.people bot.settings bot.check bot.folders bot.policy"),
    Floor("bot: what talks to Slack, and to the log", "bot.slack_api bot.wire bot.pace bot.chronicle bot.logs"),
    Floor("bot: what was shown", "bot.posts bot.facts", pure=True),
    Floor(
        "bot: payloads in, pictures out",
        "bot.inbound bot.interactions bot.story bot.blocks bot.modals bot.edits bot.rule_asked bot.timeline "
        "bot.reports bot.why",
        pure=True,
    ),
    Floor(
        "bot: cards, people, settings",
        "bot.view bot.shown bot.mrkdwn bot.packing bot.heard bot.approvers bot.config bot.rule_words",
        pure=True,
    ),
    Floor(
        "bot: words and numbers",
        "bot bot.sessions bot.words bot.inline bot.kit bot.ids bot.typed bot.fields bot.limits",
        pure=True,
    ),
    Floor("core: public names, and what tests of others need", "harness_core harness_core.testing.*"),
    Floor(
        "core: the outside world",
        "harness_core.store.* harness_core.models.* harness_core.tools.* harness_core.own_hooks",
    ),
    Floor("core: the engine", "harness_core.engine"),
    Floor(
        "core: what the engine works with",
        "harness_core.handle harness_core.serving harness_core.crew harness_core.observers",
    ),
    Floor("core: steps, done", "harness_core.perform"),
    Floor("core: what a step is done with", "harness_core.asking harness_core.tooling harness_core.shortening"),
    Floor(
        "core: what is recorded and shown, what is in force",
        "harness_core.recorder harness_core.policies harness_core.subagents",
    ),
    Floor("core: who watches", "harness_core.live"),
    Floor(
        "core: the journal in hand, options, parts, waiting",
        "harness_core.journal harness_core.agent_files harness_core.extensions harness_core.options harness_core.parts "
        "harness_core.background",
    ),
    Floor("core: protocols, the real time", "harness_core.ports harness_core.clock"),
    Floor("core: rules that stand in each other's way", "harness_core.conflicts", pure=True),
    Floor("core: what would have come next", "harness_core.replay harness_core.recording", pure=True),
    Floor("core: what a policy is, for the record", "harness_core.policy_record", pure=True),
    Floor("core: what next", "harness_core.react", pure=True),
    Floor("core: what next before the model is asked", "harness_core.reasoning", pure=True),
    Floor("core: what next at a limit", "harness_core.ending", pure=True),
    Floor(
        "core: what next in an open batch",
        "harness_core.batch harness_core.standing harness_core.delegate harness_core.guarding harness_core.steps",
        pure=True,
    ),
    Floor(
        "core: the rules we ship, and those in a file",
        "harness_core.interceptors.* harness_core.guards harness_core.policy_file harness_core.agents",
        pure=True,
    ),
    Floor("core: may it, should it", "harness_core.permissions.* harness_core.compression.*", pure=True),
    Floor("core: hook points", "harness_core.hooks harness_core.usable", pure=True),
    Floor("core: what is", "harness_core.session", pure=True),
    Floor("core: its parts", "harness_core.tally harness_core.inbox harness_core.open_batch", pure=True),
    Floor("core: what is, as a value", "harness_core.trace", pure=True),
    Floor("core: facts as JSON", "harness_core.codec", pure=True),
    Floor("core: what happened, in facts and in words", "harness_core.events harness_core.results", pure=True),
    Floor("core: what is stored in facts", "harness_core.hitl harness_core.permissions.rule", pure=True),
    Floor(
        "core: values",
        "harness_core.calls harness_core.frozen harness_core.glyphs harness_core.journal_ids harness_core.masking "
        "harness_core.secret_labels "
        "harness_core.secret_shapes harness_core.types "
        "harness_core.verdicts harness_core.given "
        "harness_core.errors",
        pure=True,
    ),
)

# Imported while a function runs, and so from further up than the floors allow.
LAZY: Final = {
    ("harness_core.parts", "harness_core.tools"): "the built-in tools, where an option names one",
    ("harness_core.parts", "harness_core.tools.task"): "the tool that hands work to agents, where there are any",
    ("harness_core.parts", "harness_core.store.sqlite"): "the store of whoever gives none",
    ("harness_core.parts", "harness_core.models.practice"): "the model of whoever names none",
    ("harness_core.parts", "harness_core.models.tokens"): "the counter of whoever gives none",
    ("bot.app", "harness_core.models.openai"): "a real model, where the settings name one",
}
# Imported for annotations alone.
FOR_TYPES: Final = {
    "harness_core": "the public names are imported when they are first used",
    "harness_core.extensions": "an extension is handed the engine that it adds to",
    "harness_core.handle": "the engine gives out handles, and a handle asks its engine",
    "bot.local.control": "the workspace serves its control verbs, which act on the workspace",
    "bot.local.plain_page": "the workspace serves its page, which shows the workspace",
}
# What bot may know of harness_core.
PUBLIC: Final = words(
    "harness_core harness_core.agents harness_core.codec harness_core.engine harness_core.errors harness_core.events "
    "harness_core.guards harness_core.guarding "
    "harness_core.glyphs harness_core.handle harness_core.hitl harness_core.hooks harness_core.masking "
    "harness_core.options "
    "harness_core.clock harness_core.parts harness_core.permissions.book harness_core.permissions.cases "
    "harness_core.permissions.everywhere "
    "harness_core.permissions.grammar harness_core.permissions.offer harness_core.permissions.paths "
    "harness_core.permissions.rule harness_core.permissions.sound harness_core.policy_file harness_core.ports "
    "harness_core.session harness_core.steps harness_core.tools.sandbox harness_core.types harness_core.replay "
    "harness_core.conflicts harness_core.journal_ids"
)
# Who puts the parts together, or plays with the whole; and what only those may know.
PARTS: Final = words(
    "harness_core.store.sqlite harness_core.models.practice harness_core.models.openai harness_core.tools "
    "harness_core.tools.own harness_core.tools.shell harness_core.store.reading harness_core.own_hooks "
    "harness_core.permissions.judge harness_core.policies "
    "harness_core.delegate harness_core.subagents"
)
COMPOSERS: Final = frozenset(
    {"bot.app", "bot.local_bot", "bot.loaded", "bot.demo", "bot.judging", "bot.replaying", "bot.__main__"}
)

# All that pure modules import of others: none of it knows the time, chance, a disk or a network.
HARMLESS: Final = words(
    "__future__ base64 binascii bisect collections collections.abc copy dataclasses datetime difflib enum fnmatch "
    "functools hashlib heapq html ipaddress itertools json math operator posixpath re shlex string textwrap tomllib "
    "types typing unicodedata urllib.parse markdown_it markdown_it.rules_inline markdown_it.token pydantic "
    "pydantic_core tree_sitter tree_sitter_bash"
)
# More than that, for a reason.
HARMLESS_HERE: Final = {
    ("harness_core.interceptors.function", "inspect"): "looks at the signature of a function, before it is ever called",
    ("harness_core.given", "inspect"): "tells a plain function from one that must be awaited",
    ("bot", "sys"): "says that Python is too old, before anything else is read",
    ("bot.config", "pathlib"): "settings hold folders, which are only named there",
}
CALLS_THAT_TOUCH: Final = words("open print input exec eval compile breakpoint __import__")
METHODS_THAT_TOUCH: Final = words("now utcnow today read_text read_bytes write_text write_bytes resolve cwd")


@dataclass(frozen=True, slots=True)
class Import:
    """One name taken from one module, and where the statement stands."""

    module: str
    name: str
    where: Where


def imports_of(source: str, modules: Iterable[str]) -> Iterator[Import]:
    """Every import in this source. `from package import module` counts as an import of the module."""
    pending: list[tuple[ast.AST, Where]] = [(ast.parse(source), "top")]
    while pending:
        node, where = pending.pop()
        inside: Where = "function" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else where
        for child in ast.iter_child_nodes(node):
            pending.append((child, "types" if _for_types(node) and child in node.body else inside))
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", where) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: name the whole module, not one beside this"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(inner, "", where) if inner in modules else Import(str(node.module), alias.name, where)


def _for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@cache
def sources() -> Mapping[str, str]:
    """The text of every module of both halves, by its dotted name."""
    files = sorted(file for half in ("bot", "harness_core") for file in (ROOT / half).rglob("*.py"))
    return {_dotted(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def _dotted(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> Mapping[str, frozenset[Import]]:
    return {module: frozenset(imports_of(source, sources())) for module, source in sources().items()}


def edges(*wheres: str) -> list[tuple[str, str]]:
    """Who imports whom within the project, for statements that stand there."""
    return sorted(
        {
            (module, one.module)
            for module, found in imports().items()
            for one in found
            if one.where in wheres and ours(one)
        }
    )


def ours(one: Import) -> bool:
    return one.module in sources()


def floor_of(module: str) -> int:
    """The place of its floor in FLOORS: by its own name if that is there, else by its nearest package; -1 for none."""
    for candidate in (module, *(f"{package}.*" for package in _packages(module))):
        for place, floor in enumerate(FLOORS):
            if candidate in floor.modules.split():
                return place
    return -1


def _packages(module: str) -> Iterator[str]:
    while module:
        yield module
        module = module.rpartition(".")[0]


def pure_modules() -> list[str]:
    return [module for module in sources() if floor_of(module) >= 0 and FLOORS[floor_of(module)].pure]


def touches(source: str) -> list[str]:
    """What a module does that only an impure one may: async definitions, and calls that reach the world."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.AsyncFunctionDef(name=name):
                found.append(f"line {node.lineno}: async def {name}")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS_THAT_TOUCH:
                found.append(f"line {node.lineno}: {name}()")
            case ast.Call(func=ast.Attribute(attr=name)) if name in METHODS_THAT_TOUCH:
                found.append(f"line {node.lineno}: .{name}()")
    return found


def test_every_module_has_a_floor() -> None:
    assert [module for module in sources() if floor_of(module) < 0] == [], "put it on its floor in FLOORS"


def test_imports_point_down() -> None:
    up = [(a, b) for a, b in edges("top") if floor_of(a) > floor_of(b) >= 0]

    assert up == []


def test_nothing_imports_in_a_circle() -> None:
    above: dict[str, set[str]] = {}
    for module, other in edges("top", "function"):
        above.setdefault(module, set()).add(other)

    try:
        TopologicalSorter(above).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_imports_for_annotations_alone_are_listed() -> None:
    assert {module for module, found in imports().items() if any(one.where == "types" for one in found)} == {*FOR_TYPES}


def test_imports_stand_at_the_top_of_the_file_but_for_those_that_are_listed() -> None:
    lazy = {(module, one.module) for module, found in imports().items() for one in found if one.where == "function"}

    assert lazy == {*LAZY}


def test_only_the_public_names_are_imported_by_a_text() -> None:
    by_text = {
        module for module, found in imports().items() if any(one.module.startswith("importlib") for one in found)
    }

    assert by_text <= {"harness_core", "harness_core.tools.modules"}


@pytest.mark.parametrize("module", pure_modules())
def test_a_pure_module_touches_nothing(module: str) -> None:
    foreign = {one.module for one in imports()[module] if not ours(one)}
    beyond = {name for name in foreign - HARMLESS if (module, name) not in HARMLESS_HERE}
    impure = {one.module for one in imports()[module] if ours(one)} - {*pure_modules()}

    assert (sorted(beyond), sorted(impure), touches(sources()[module])) == ([], [], [])


def test_the_core_knows_nothing_of_slack() -> None:
    def slack(name: str) -> bool:
        return name.split(".")[0] in ("bot", "slack_sdk", "slack_bolt")

    knowing = [
        (module, one.module)
        for module, found in imports().items()
        for one in found
        if module.startswith("harness_core") and slack(one.module)
    ]

    assert knowing == []


def test_what_touches_the_world_for_the_core_knows_its_protocols_and_not_its_engine() -> None:
    adapters = ("harness_core.store", "harness_core.models", "harness_core.tools")
    ports = floor_of("harness_core.ports")
    beyond = [
        (a, b)
        for a, b in edges("top", "function", "types")
        if a.startswith(adapters) and not b.startswith(adapters) and floor_of(b) < ports
    ]

    assert beyond == []


def test_the_bot_knows_the_public_side_of_the_core_alone() -> None:
    inside = [
        (a, b)
        for a, b in edges("top", "function", "types")
        if a.startswith("bot") and b.startswith("harness_core")
        if b not in PUBLIC and not (a in COMPOSERS and b in PARTS)
    ]

    assert inside == []


def test_the_local_workspace_stands_alone() -> None:
    def local(name: str) -> bool:
        return name == "bot.local" or name.startswith("bot.local.")

    across = {(a, b) for a, b in edges("top", "function", "types") if local(a) != local(b)}

    assert {(a, b) for a, b in across if a not in COMPOSERS} == set()


def test_the_stand_ins_of_tests_are_in_no_product_module() -> None:
    assert [
        a
        for a, b in edges("top", "function", "types")
        if b.startswith("harness_core.testing") and not a.startswith("harness_core.testing")
    ] == []


def test_names_with_an_underscore_stay_in_their_module() -> None:
    private = [
        (module, f"{one.module}.{one.name}")
        for module, found in imports().items()
        for one in found
        if ours(one) and one.name.startswith("_")
    ]

    assert private == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os.path", Import("os.path", "", "top")),
        ("from a import b", Import("a.b", "", "top")),
        ("from a.b import c as d", Import("a.b", "c", "top")),
        ("try:\n    import x\nexcept ImportError:\n    pass", Import("x", "", "top")),
        ("def f():\n    if 1:\n        from a import c", Import("a", "c", "function")),
        ("class A:\n    async def f(self):\n        import x", Import("x", "", "function")),
        ("if TYPE_CHECKING:\n    import x", Import("x", "", "types")),
        ("if typing.TYPE_CHECKING:\n    pass\nelse:\n    import x", Import("x", "", "top")),
    ],
)
def test_every_way_to_import_is_seen(source: str, found: Import) -> None:
    assert list(imports_of(source, {"a", "a.b"})) == [found]


@pytest.mark.parametrize("source", ["async def f(): ...", "x = open('a')", "datetime.now()", "Path('a').read_text()"])
def test_what_touches_the_world_is_seen(source: str) -> None:
    assert len(touches(source)) == 1


def test_the_nearest_name_places_a_module() -> None:
    assert floor_of("harness_core.permissions.rule") > floor_of("harness_core.permissions.judge") >= 0
    assert floor_of("unheard.of") == -1
