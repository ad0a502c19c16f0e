"""What an approval may leave behind: the exact text, or, as a second and explicit choice, a prefix.

A prefix is shown as it is stored. It is never offered for what runs other programs or talks to the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from harness_core.permissions.book import book, names
from harness_core.permissions.flags import Refused
from harness_core.permissions.paths import World
from harness_core.permissions.patterns import covered, escaped, exact_text, words_of
from harness_core.permissions.reach import beyond
from harness_core.permissions.readonly import look
from harness_core.permissions.rule import PermissionRule
from harness_core.permissions.rules import speaking
from harness_core.permissions.shell import Command, read
from harness_core.permissions.spelling import base_name
from harness_core.permissions.subjects import KINDS, subject_of
from harness_core.permissions.text import listed
from harness_core.permissions.wrappers import INTERPRETERS, STATEFUL, runs_another, unnumbered
from harness_core.types import Args

# How many words name what is allowed, for programs of many verbs. Others are named by their name alone.
_DEPTH: Final[Mapping[str, int]] = {
    "git": 2, "npm": 2, "npm run": 3, "npm test": 2, "yarn run": 3, "pnpm run": 3, "docker": 2, "docker compose": 3,
    "kubectl": 2, "cargo": 2, "go": 2, "make": 2, "gh": 3, "systemctl": 2, "terraform": 2, "helm": 2, "dotnet": 2,
    "mvn": 2, "just": 2, "task": 2,
    **dict.fromkeys(listed(
        "gradle sbt lein mix stack cabal zig swift flutter dart rake rails flask django-admin alembic prisma nx turbo "
        "lerna dvc hg svn jupyter vagrant pulumi packer pre-commit composer ruff meson"
    ), 2),
}  # fmt: skip
_ANYTHING: Final = INTERPRETERS | listed(
    "wish R julia java scala groovy swift erl elixir iex sbcl awk gawk mawk ed ex vi vim nvim emacs gdb lldb npx uvx "
    "bunx pipx"
)
_NEVER: Final = _ANYTHING | listed(
    "python2 python3 pypy3 sed nano less more man bc m4 gnuplot sqlite3 psql mysql mongosh redis-cli duckdb uv poetry "
    "pnpm yarn pipenv hatch rye bundle mise asdf direnv pip pip3 gem cpan apt apt-get brew curl wget http https xh nc "
    "ncat netcat socat telnet ftp sftp scp ssh rsync rclone aria2c lynx w3m dig nslookup host ping whois mail sendmail "
    "aws gcloud az bq doctl heroku vercel vault op pass gpg openssl rm rmdir mv dd shred mkfs truncate chmod chown "
    "chgrp ln kill killall pkill mount umount crontab at batch tee find fd fdfind tar zip unzip 7z cpio ar "
    "install rename traceroute ssh-keygen ssh-add netlify firebase serverless consul nomad ansible ansible-playbook "
    "ip iptables nft fdisk parted sysctl modprobe insmod useradd userdel usermod groupadd passwd chpasswd visudo "
    "setfacl reboot shutdown poweroff halt init telinit journalctl logrotate open xdg-open start cmake fastlane "
    "streamlit"
)
# Verbs that run whatever they are given, or take from or send to the network.
_NEVER_VERBS: Final = listed(
    "exec x dlx explore publish login token config alias run push fetch pull clone submodule bisect rebase "
    "filter-branch difftool mergetool remote ls-remote credential install i ci link api ssh cp debug port-forward "
    "proxy attach generate runner console dbconsole shell repl eval script ssh execute nbconvert"
)
_PLAIN: Final = re.compile(r"[a-z][a-z0-9:._-]*")


def offer_prefixes(command: str, world: World) -> tuple[str, ...]:
    """One prefix pattern for each part that does not run unasked anyway; () if one of them may have none."""
    reading = read(command)
    if reading.problem:
        return ()
    found: dict[str, None] = {}
    for place, part in enumerate(reading.commands):
        if _reads(part, world, first=place == 0):
            continue
        pattern = _prefix(part, world)
        if pattern is None:
            return ()
        found[pattern] = None
    return tuple(found)


def offered(tool: str, args: Args, world: World) -> tuple[PermissionRule, ...]:
    """The rules that may be offered beside the one for exactly this call, one per part; () if none would let it run."""
    command = subject_of("bash", args) if KINDS.get(tool) == "bash" else None
    if command is None:
        return ()
    rules = tuple(PermissionRule.allow(tool, pattern) for pattern in offer_prefixes(command, world))
    by_words = World(world.workspace, world.home)
    # What would not let even this call run is no offer.
    return rules if would_run(rules, tool, [args], by_words) else ()


def would_run(rules: Sequence[PermissionRule], tool: str, calls: Iterable[Args], world: World) -> Sequence[Args]:
    """Those of the calls of a tool that these allow rules together let run, by themselves. Symlinks are not known."""
    mine = book(rules, tool)
    return [args for args in calls if speaking(mine, "allow", args, world)]


def lets_anything(rule: PermissionRule) -> str:
    """Why an allow rule comes to allowing whatever a model thinks of; "" if it does not."""
    if rule.effect != "allow" or rule.arguments is not None or not names(rule, "bash"):
        return ""
    if rule.pattern is None:
        return "it would let every command run"
    if exact_text(rule.pattern) is not None:
        return ""
    name = base_name(next(iter(words_of(rule.pattern).words), ""))
    if unnumbered(name) in _ANYTHING or (runs_another(name) and name not in _DEPTH):
        return f"{name} runs whatever it is given"
    return ""


def wider_than_offered(rule: PermissionRule) -> str:
    """What somebody who makes an allow rule for commands should know of its reach; "" for what would be offered."""
    if rule.effect != "allow" or not rule.pattern or not names(rule, "bash") or exact_text(rule.pattern) is not None:
        return ""
    name, *rest = words_of(rule.pattern).words
    depth = _DEPTH.get(f"{name} {rest[0]}" if rest else name, _DEPTH.get(name, 1))
    if len(rest) + 1 < depth:
        return f"it covers every verb of {name}"
    if name in _NEVER or (depth > 1 and rest[depth - 2] in _NEVER_VERBS):
        return f"{' '.join((name, *rest[: depth - 1]))} can do much harm, or send out what it reads"
    return ""


def _reads(part: Command, world: World, *, first: bool) -> bool:
    try:
        look(part, (world.workspace,), world, first=first)
    except Refused:
        return False
    return True


def _prefix(part: Command, world: World) -> str | None:
    name, *rest = (word.text for word in part.words)
    if not _PLAIN.fullmatch(name) or name in _NEVER or name in STATEFUL or (runs_another(name) and name not in _DEPTH):
        return None
    if part.redirects or part.negated:
        return None
    pair = f"{name} {rest[0]}" if rest else name
    depth = _DEPTH.get(pair, _DEPTH.get(name, 1))
    words = part.argv[:depth]
    if len(words) < depth or not all(_PLAIN.fullmatch(word) for word in words):
        return None
    if words[-1] == "add" and name != "git":
        return None  # of a package
    if depth > 1 and words[-1] in _NEVER_VERBS:
        return None
    pattern = " ".join((*map(escaped, words), "*"))
    places = covered(pattern, part)
    if places is None or beyond(part, places, (world.workspace,), world, lambda inner, folders: False):
        return None
    return pattern
