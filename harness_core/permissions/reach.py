"""How far a wildcard allow rule reaches: never to options that run programs or write, secrets, or inner commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from harness_core.permissions.checks import awk, sed
from harness_core.permissions.flags import Given, Refused
from harness_core.permissions.paths import World
from harness_core.permissions.programs import OWN, PROGRAMS
from harness_core.permissions.readonly import look, path_fault, pieces
from harness_core.permissions.shell import Command, read
from harness_core.permissions.text import listed
from harness_core.permissions.words import Word
from harness_core.permissions.wrappers import SHELLS, STATEFUL, runs_another

# For programs whose use is to write, what a rule for the program does not mean: options that run other programs, or
# that put a file where nobody looks. GNU and git take any beginning of a long option, so a beginning counts as well.
_LONG: Final[Mapping[str, frozenset[str]]] = {
    "git": listed(
        "output upload-pack receive-pack exec exec-path ext-diff textconv open-files-in-pager git-dir work-tree "
        "config config-env namespace super-prefix bare paginate template tool extcmd smtp-server sendmail-cmd to-cmd "
        "cc-cmd html man info web no-index output-directory reference separate-git-dir filters setup-cmd tree-filter "
        "index-filter msg-filter env-filter commit-filter parent-filter tag-name-filter editor strategy-option "
        "run-command unsafe-paths server-option global system file edit recurse-submodules gpg-sign trailer"
    ),
    "tar": listed(
        "to-command use-compress-program checkpoint-action info-script new-volume-script rsh-command rmt-command "
        "files-from absolute-names listed-incremental index-file volno-file exclude-from remove-files force-local"
    ),
    "rsync": listed(
        "rsh rsync-path temp-dir partial-dir write-batch only-write-batch read-batch log-file files-from early-input "
        "password-file"
    ),
    "zip": listed("unzip-command test logfile-path temp-path"),
    "curl": listed(
        "config output output-dir dump-header trace trace-ascii cookie-jar netrc-file upload-file unix-socket proxy "
        "stderr libcurl hsts alt-svc engine"
    ),
    "wget": listed(
        "use-askpass execute output-file append-output output-document directory-prefix config input-file post-file "
        "body-file rejected-log"
    ),
    "man": listed("pager html preprocessor config-file browser"),
    "make": listed("file makefile directory eval include-dir"),
    "gcc": listed("wrapper specs"),
    "go": listed("exec toolexec vettool"),
    "cargo": listed("config manifest-path"),
    "npm": listed("script-shell node-options prefix userconfig globalconfig"),
    "pip": listed("config-settings global-option target root prefix"),
    "docker": listed(
        "volume privileged mount device pid ipc userns cap-add security-opt host config context"
    ),
    "kubectl": listed("kubeconfig server token as exec-command"),
    "psql": listed("output log-file file"),
    "less": listed("lesskey-file log-file"), "emacs": listed("eval load"),
    "gdb": listed("command eval-command ex"), "bat": listed("pager config-file diff"), "fzf": listed("bind preview"),
    "openssl": listed("engine provider config"), "split": listed("filter"),
}  # fmt: skip
_SHORT: Final[Mapping[str, str]] = {
    "tar": "IFTPg", "rsync": "eT", "zip": "TO", "curl": "KoODcTx", "wget": "eoaOPi", "man": "PHCB", "ssh": "FEoJLRDW",
    "scp": "SFoJ", "sftp": "SFobBD", "make": "fCI", "docker": "vH", "kubectl": "s", "psql": "oLfc", "less": "kKoO",
    "vim": "cSsuW", "nvim": "cSsuW", "vi": "cSsuW", "gdb": "x",
}  # fmt: skip
_GIT_VERBS: Final = listed(
    "config bisect submodule filter-branch difftool mergetool daemon upload-pack receive-pack send-email instaweb "
    "help credential shell remote-ext remote-fd fast-import hook maintenance web--browse update-server-info"
)
_PAGERS: Final = listed("less more vi vim nvim view ex emacs nano")
_URL: Final = re.compile(r"(https?|ssh|git|s3)://", re.I)
_GLOBAL_GIT: Final = listed("--no-pager -P --no-optional-locks --version")
_SED_SUBSTITUTE: Final = re.compile(
    r"\s*(?:\d+(?:,(?:\d+|\$))?)?\s*s([/|#,:!])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gIip0-9]*\s*",
    re.S,
)

# Package managers with verbs that run any program. npm's own `run` names a script of the project, and is none of them.
_RUNNERS: Final[Mapping[str, frozenset[str]]] = {
    "uv": listed("run tool"), "poetry": listed("run"), "pipenv": listed("run"), "hatch": listed("run"),
    "rye": listed("run"), "mise": listed("exec x"), "bundle": listed("exec"), "pnpm": listed("exec dlx"),
    "yarn": listed("exec dlx"), "npm": listed("exec x explore"), "direnv": listed("exec"), "conda": listed("run"),
    "bun": listed("x"), "nix": listed("run shell develop"),
}  # fmt: skip

Decide = Callable[[Command, Sequence[str]], bool]


def beyond(part: Command, places: Sequence[int], folders: Sequence[str], world: World, decide: Decide) -> str:
    """Why a wildcard rule does not cover this part; "" if it does.

    places: the words that wildcards stand for. decide: whether an inner command is allowed by itself.
    """
    name = part.words[0].text
    base = name.rpartition("/")[2]
    if base in STATEFUL - {"cd", "eval", "exec"}:
        return f"{base} changes what later commands mean"
    if len(part.words) > 1 and part.words[1].text in _RUNNERS.get(base, frozenset()):
        return _runner(part, folders, decide)
    if runs_another(base) and base not in _RUNNERS and base != "docker":
        return _inner(part, folders, world, decide)
    for place in places:
        if fault := _word(part.words[place], folders, world):
            return fault
    return _options(base, part, folders, world)


def _word(word: Word, folders: Sequence[str], world: World) -> str:
    if word.text.casefold().startswith(("ext::", "fd::", "file:")) or ("::" in word.text and "ext::" in word.text):
        return f"`{word.text}` may run a program"
    for piece in pieces(word.text):
        if _URL.match(word.text) and piece != word.text:
            continue
        if fault := path_fault(Word(piece), folders, world):
            return fault
    return ""


def _options(name: str, part: Command, folders: Sequence[str], world: World) -> str:
    words = part.words[1:]
    try:
        if name == "sed":
            _sed(part, folders, world)
        elif name in ("awk", "gawk", "mawk"):
            _awk(words)
        elif (name in PROGRAMS or name in OWN) and name not in ("git", "tar", "cd"):
            look(part, folders, world)
        elif name == "git":
            _git(words)
    except Refused as refused:
        return str(refused)
    for word in words:
        if word.text.startswith(("-", "+")) and (fault := _dangerous(name, word.text)):
            return fault
    if name == "tar" and words and not words[0].text.startswith("-") and set(words[0].text) & set(_SHORT["tar"]):
        return "an option of tar runs a program"
    return ""


def _dangerous(name: str, text: str) -> str:
    if text.startswith("+"):
        return f"`{text}` is a command of {name}" if name in _PAGERS else ""
    option = text.partition("=")[0]
    if text.startswith("--"):
        typed = option[2:]
        if typed and any(long.startswith(typed) or typed == long for long in _LONG.get(name, frozenset())):
            return f"the option {option} of {name} may run a program or write"
        return ""
    bare = option[1:]
    if bare in _LONG.get(name, frozenset()) or set(bare) & set(_SHORT.get(name, "")):
        return f"the option {option} of {name} may run a program or write"
    return ""


def _git(words: Sequence[Word]) -> None:
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text not in _GLOBAL_GIT:
            raise Refused(f"the option {words[at].text} of git may run a program")
        at += 1
    if at >= len(words):
        return
    verb, rest = words[at].text, [word.text for word in words[at + 1 :]]
    if verb in _GIT_VERBS:
        raise Refused(f"git {verb} may run a program")
    short = {"grep": "O", "archive": "o", "format-patch": "o", "rebase": "xi", "clone": "uc", "ls-remote": "u",
             "am": "i", "add": "ie", "commit": "eF", "tag": "F", "notes": "F"}.get(verb, "")  # fmt: skip
    if any(text.startswith("-") and not text.startswith("--") and set(text[1:]) & set(short) for text in rest):
        raise Refused(f"an option of git {verb} may run a program or write")
    if any(re.match(r"[a-z]+::", text) for text in rest):
        raise Refused("this kind of remote runs a program")


def _sed(part: Command, folders: Sequence[str], world: World) -> None:
    """Substitutions to standard output, and whatever runs unasked anyway."""
    scripts = [w for w in part.words[1:] if not w.text.startswith("-")][:1]
    if scripts and _SED_SUBSTITUTE.fullmatch(scripts[0].text):
        stand_in = tuple(Word("p") if word is scripts[0] else word for word in part.words)
        sed(Given(operands=(Word("p"),)))
        look(replace(part, words=stand_in), folders, world)
        return
    look(part, folders, world)


def _awk(words: Sequence[Word]) -> None:
    scripts = [word for word in words if not word.text.startswith("-")]
    if any(word.text.startswith("-") and not re.fullmatch(r"-F.?|-v", word.text) for word in words):
        raise Refused("an option of awk may run a program or write")
    try:
        awk(Given(operands=tuple(scripts)))
    except Refused:
        if any(re.search(r"[|>@&]|system|getline|ENVIRON|/inet|close|printf?\s*\(.*>", word.text) for word in scripts):
            raise


# -- inner commands ----------------------------------------------------------------------------------------------------

# Options that change nothing about what the inner command is; a number after `:` is how many words they take.
_HARMLESS: Final[Mapping[str, Mapping[str, int]]] = {
    "timeout": {"-k": 1, "-s": 1, "--foreground": 0, "--preserve-status": 0, "-v": 0, "--verbose": 0},
    "nice": {"-n": 1}, "ionice": {"-c": 1, "-n": 1}, "nohup": {}, "time": {"-p": 0}, "env": {}, "setsid": {"-w": 0},
    "stdbuf": {"-oL": 0, "-o0": 0, "-eL": 0, "-e0": 0, "-iL": 0, "-i0": 0}, "command": {}, "sudo": {"-n": 0},
    "doas": {"-n": 0}, "busybox": {}, "toybox": {},
}  # fmt: skip


def _inner(part: Command, folders: Sequence[str], world: World, decide: Decide) -> str:
    """The inner command of a wrapper must be allowed itself."""
    name = part.words[0].text
    refusal = f"what {name} runs is not allowed by itself"
    if name in SHELLS:
        return _shell(part, folders, refusal, decide)
    if name not in _HARMLESS:
        return refusal
    at = 1
    while at < len(part.words) and part.words[at].text.startswith("-"):
        option = part.words[at].text
        if option.startswith("--") and "=" in option and name == "timeout":
            at += 1
        elif option in _HARMLESS[name]:
            at += 1 + _HARMLESS[name][option]
        else:
            return refusal
    at += 1 if name == "timeout" else 0
    words = part.words[at:]
    if not words or not words[0].bare or "=" in words[0].text:
        return refusal
    return (
        ""
        if decide(replace(part, words=words, redirects=(), source=" ".join(w.text for w in words)), folders)
        else refusal
    )


def _runner(part: Command, folders: Sequence[str], decide: Decide) -> str:
    words = part.words[2:]
    if words and words[0].bare and not words[0].text.startswith("-"):
        inner = replace(part, words=words, redirects=(), source=" ".join(word.text for word in words))
        if decide(inner, folders):
            return ""
    return f"what {part.words[0].text} {part.words[1].text} runs is not allowed by itself"


def _shell(part: Command, folders: Sequence[str], refusal: str, decide: Decide) -> str:
    words = part.words[1:]
    if words and not words[0].text.startswith("-"):
        # A script file is what a rule for a shell means; without a folder or an ending it may be any program in PATH.
        return "" if "/" in words[0].text or "." in words[0].text else refusal
    if len(words) != 2 or words[0].text not in ("-c", "-ec", "-euc", "-eu"):
        return refusal
    reading = read(words[1].text)
    if reading.problem or any(inner.redirects for inner in reading.commands):
        return refusal
    return "" if all(decide(inner, folders) for inner in reading.commands) else refusal
