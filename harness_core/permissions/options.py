"""Options and verbs that run other programs, write where nobody looks, or send what nobody sees.

Where a program has few options that do no such thing, these are listed, and whatever is not on the list counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from harness_core.permissions.git import GIT
from harness_core.permissions.text import listed

# For programs whose use is to write, what a rule for the program does not mean: options that run other programs, or
# that put a file where nobody looks. GNU and git take any beginning of a long option, so a beginning counts as well.
_LONG: Final[Mapping[str, frozenset[str]]] = {
    "git": listed(
        "output upload-pack receive-pack exec exec-path ext-diff textconv open-files-in-pager git-dir work-tree "
        "config config-env namespace super-prefix bare paginate template tool extcmd smtp-server sendmail-cmd to-cmd "
        "cc-cmd html man info web no-index output-directory reference separate-git-dir filters setup-cmd tree-filter "
        "index-filter msg-filter env-filter commit-filter parent-filter tag-name-filter editor strategy-option "
        "run-command unsafe-paths server-option global system file edit recurse-submodules gpg-sign trailer sign "
        "signed strategy edit-description show-signature verify-signatures"
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
    "bun": listed("eval print preload"), "rg": listed("pre hostname-bin"), "sort": listed("compress-program output"),
    "openssl": listed("engine provider config"), "split": listed("filter"),
}  # fmt: skip
_SHORT: Final[Mapping[str, str]] = {
    "tar": "IFTPg", "rsync": "eT", "zip": "TO", "man": "PHCB", "ssh": "FEoJLRDW",
    "scp": "SFoJ", "sftp": "SFobBD", "make": "fCI", "docker": "vH", "kubectl": "s", "psql": "oLfc", "less": "kKoO",
    "bun": "ep", "node": "epr", "sort": "oT",
    "gdb": "x", "unzip": ":K",
}  # fmt: skip
# Editors, in which every option may be a command.
_EDITORS: Final = listed("vim vi nvim view ex emacs nano gvim vimdiff")
_PAGERS: Final = _EDITORS | listed("less more")

# The options of network clients that neither read nor write files of the machine's, nor go another way: single letters,
# letters that take a value, and long ones.
_PLAIN: Final[Mapping[str, tuple[str, str, frozenset[str]]]] = {
    "curl": ("sSfLkIivgGN46Z0#", "XHAedmruwF", listed(
        "silent show-error fail fail-with-body fail-early location insecure head include verbose get request header "
        "data data-raw data-ascii data-binary data-urlencode json user-agent referer user max-time connect-timeout "
        "retry retry-delay retry-max-time retry-connrefused retry-all-errors max-redirs max-filesize compressed "
        "http1.0 http1.1 http2 ipv4 ipv6 no-progress-meter progress-bar url form form-string write-out range no-buffer "
        "globoff tlsv1.2 tlsv1.3 path-as-is parallel limit-rate speed-limit speed-time help version")),
    "wget": ("qSvdNcrkpEKHLm46", "tTUQwlARDIXn", listed(
        "quiet verbose no-verbose debug server-response spider timestamping no-clobber continue tries timeout "
        "dns-timeout connect-timeout read-timeout wait waitretry random-wait limit-rate retry-connrefused "
        "max-redirect header user-agent referer post-data method body-data no-check-certificate content-disposition "
        "recursive level no-parent page-requisites convert-links adjust-extension accept reject domains "
        "exclude-domains show-progress progress no-cache inet4-only inet6-only compression help version")),
}  # fmt: skip

_SWITCHES: Final = listed(
    "silent show-error fail fail-with-body fail-early location insecure head include verbose get retry-connrefused "
    "retry-all-errors compressed http1.0 http1.1 http2 ipv4 ipv6 no-progress-meter progress-bar no-buffer globoff "
    "tlsv1.2 tlsv1.3 path-as-is parallel quiet no-verbose debug server-response spider timestamping no-clobber "
    "continue random-wait no-check-certificate content-disposition recursive no-parent page-requisites convert-links "
    "adjust-extension show-progress no-cache inet4-only inet6-only help version"
)

# Verbs of git that a rule for all of git means. Any other may be an alias, which may be any program.
_GIT_LOOKS: Final = frozenset(verb.partition(" ")[0] for verb in GIT.verbs or ()) - {"config"}
_GIT_VERBS: Final = _GIT_LOOKS | listed(
    "add am apply archive branch bundle checkout checkout-index cherry-pick clean clone commit commit-tree fetch "
    "format-patch fsck gc init merge merge-file merge-tree mv pack-refs prune pull push read-tree rebase remote repack "
    "replace reset restore revert rm sparse-checkout stage stash switch tag update-index update-ref worktree "
    "write-tree hash-object ls-remote verify-pack diff log show status get-tar-commit-id "
    "stripspace mktree rev-list show-index patch-id"
)
_GIT_SHORT: Final[Mapping[str, str]] = {
    "grep": "O", "archive": "o", "format-patch": "o", "rebase": "xisXS", "clone": "uc", "ls-remote": "u", "am": "iS",
    "add": "ie", "commit": "eFS", "tag": "Fsuv", "merge": "sXSF", "pull": "sXS", "cherry-pick": "seXS",
    "revert": "seXS", "commit-tree": "SF",
}  # fmt: skip
_GIT_GLOBAL: Final = listed("--no-pager -P --no-optional-locks --version")
_SIGNATURE: Final = re.compile(r"%\(?(?:G|signature)")
_WHOLE: Final = frozenset({"--verify"})  # harmless, and the beginning of one that is not


def risky(name: str, words: Sequence[str]) -> str:
    """Why these words behind a program may run another one, or write where nobody looks; "" if they do not."""
    if name == "git" and (fault := _git(words)):
        return fault
    if name == "tar" and words and not words[0].startswith("-") and set(words[0]) & set(_SHORT["tar"]):
        return "an option of tar runs a program"
    for word in words:
        if word.startswith(("-", "+")) and word not in ("-", "--") and (fault := _option(name, word)):
            return fault
        if name == "curl" and (fault := _fetched(word)):
            return fault
    return ""


def takes_value(name: str, option: str) -> bool:
    """Whether the word behind this one, of a network client, is the value of an option."""
    if not option.startswith("-") or "=" in option or name not in _PLAIN:
        return False
    switches, valued, long = _PLAIN[name]
    if option.startswith("--"):
        return option[2:] in long - _SWITCHES and option != "--url"
    behind = option[1:].lstrip(switches)
    return len(behind) == 1 and behind in valued


def _fetched(word: str) -> str:
    if "%output{" in word:
        return "the format writes a file"
    scheme = re.match(r"(?:--url=)?([A-Za-z][A-Za-z0-9+.-]*):/", word)
    return f"curl reads {scheme[1]}:" if scheme and scheme[1].casefold() not in ("http", "https") else ""


def _option(name: str, text: str) -> str:
    option = text.partition("=")[0]
    fault = f"the option {option} of {name} may run a program or write"
    if text.startswith("+"):
        return f"`{text}` is a command of {name}" if name in _PAGERS else ""
    if name in _EDITORS:
        return fault
    if name in _PLAIN:
        return "" if _plain(name, text, option) else fault
    if text.startswith("--"):
        if option in _WHOLE:
            return ""
        return fault if any(long.startswith(option[2:]) for long in _LONG.get(name, frozenset())) else ""
    bare = option[1:]
    risks = bare in _LONG.get(name, frozenset()) or set(bare) & set(_SHORT.get(name, ""))
    return fault if risks else ""


def _plain(name: str, text: str, option: str) -> bool:
    switches, valued, long = _PLAIN[name]
    if text.startswith("--"):
        return option[2:] in long
    behind = text[1:].lstrip(switches)
    return not behind or behind[0] in valued


def _git(words: Sequence[str]) -> str:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] not in _GIT_GLOBAL:
            return f"the option {words[at]} of git may run a program"
        at += 1
    if at >= len(words):
        return ""
    verb, rest = words[at], words[at + 1 :]
    if verb == "notes" and rest[:1] and rest[0] in ("list", "show"):
        return ""
    if verb not in _GIT_VERBS:
        return f"git {verb} may run a program: it is no verb that is known to be git's own and to run none"
    short = set(_GIT_SHORT.get(verb, ""))
    if any(text.startswith("-") and not text.startswith("--") and set(text[1:]) & short for text in rest):
        return f"an option of git {verb} may run a program or write"
    if any(re.match(r"[a-z]+::", text) for text in rest):
        return "this kind of remote runs a program"
    if any(_SIGNATURE.search(text) for text in rest if text.startswith("-")):
        return "this format verifies signatures, which runs a program"
    return ""
