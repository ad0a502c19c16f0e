"""git: verbs that only look at history and state, each with the options that cannot run, write or fetch anything."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from harness_core.permissions.flags import Given, Program, Refused, program

# What the repository's own configuration must not hold, or even a look can run a program. For `git config --includes
# --get-regexp`, in the repository's and the worktree's scope. core.fsmonitor and hooks are switched off by the runner.
GIT_RUNS: Final = (
    r"^(diff|filter)\..*\.(command|textconv|clean|smudge|process)$|^diff\.external$|^gpg\.|^log\.showsignature$"
    r"|^core\.(sshcommand|alternaterefscommand|gitproxy|worktree)$|^extensions\.partialclone$"
    r"|^remote\..*\.(promisor|uploadpack|vcs)$|^pretty\.|^format\.pretty$"
)
# In place of a key: what git shows then is not in the workspace alone.
ABOVE: Final = "(begins above the workspace)"
_VERIFIES: Final = re.compile(r"%[-+ ]?G|signature")  # a sign behind % says what goes before the text, if there is any

_DIFF: Final = (
    "patch no-patch raw stat:: numstat shortstat dirstat:: summary name-only name-status color:: no-color word-diff:: "
    "word-diff-regex: color-words:: color-moved:: no-renames find-renames:: find-copies:: find-copies-harder check "
    "full-index binary abbrev:: diff-filter: pickaxe-all pickaxe-regex text ignore-space-change ignore-all-space "
    "ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol unified: inter-hunk-context: function-context exit-code "
    "quiet no-ext-diff no-textconv no-prefix src-prefix: dst-prefix: line-prefix: relative:: no-relative "
    "find-object: indent-heuristic no-indent-heuristic minimal patience histogram "
    "diff-algorithm: compact-summary cached staged merge-base patch-with-stat cc combined-all-paths reverse"
)
_DIFF_SHORT: Final = "puzRabwWsU:M::C::B::S:G:mcrt"
_LOG: Final = _DIFF + (
    " oneline graph all branches:: tags:: remotes:: glob: decorate:: no-decorate decorate-refs: pretty:: format: "
    "abbrev-commit no-abbrev-commit since: after: until: before: author: committer: grep: all-match invert-grep "
    "regexp-ignore-case extended-regexp fixed-strings perl-regexp max-count: skip: merges no-merges first-parent "
    "follow date: relative-date topo-order date-order author-date-order left-right cherry-pick cherry-mark cherry "
    "boundary walk-reflogs simplify-by-decoration full-history ancestry-path children parents source mailmap "
    "no-mailmap no-notes show-pulls min-parents: max-parents: count left-only right-only log-size full-diff objects "
    "no-walk numbered notes:: expand-tabs:: no-expand-tabs no-abbrev exclude: since-as-filter: "
    "decorate-refs-exclude: show-linear-break::"
)
_LOG_SHORT: Final = _DIFF_SHORT + "n:giEFPqL:"


def _formatted(what: Given) -> None:
    for _, value in what.options:
        if value and _VERIFIES.search(value.text):
            raise Refused("this format verifies signatures, which runs a program")


# With one of these, names are patterns of what to list; without, they are made or changed.
_FILTERS: Final = ("--list", "-l", "--merged", "--no-merged", "--contains", "--no-contains", "--points-at")


def _listed(what: Given) -> None:
    _formatted(what)
    if what.operands and not what.has(*_FILTERS):
        raise Refused("with a name it changes branches or tags")


def _reflog(what: Given) -> None:
    _formatted(what)
    if what.operands and what.operands[0].text not in ("show", "exists", "list"):
        # `git reflog main` shows, `git reflog expire` deletes; a later git may learn more verbs.
        raise Refused("only `git reflog` and `git reflog show` are known to be read-only")


_REFS: Final = (
    "list merged:: no-merged:: contains:: no-contains:: points-at: sort: format: column:: no-column color:: "
    "no-color ignore-case"
)

# Settings that are no secrets: others hold tokens, or the headers that are sent with every request.
_SETTING: Final = re.compile(
    r"user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|fetch\.prune"
    r"|core\.(autocrlf|eol|safecrlf|filemode|ignorecase|bare|editor|pager|excludesfile|hookspath|quotepath|longpaths"
    r"|symlinks|fsmonitor|attributesfile)|merge\.(tool|ff|conflictstyle)|rebase\.(autostash|autosquash)"
    r"|(commit|tag)\.gpgsign|diff\.(tool|renames|algorithm)|branch\.[\w./-]+\.(remote|merge|rebase)"
    r"|remote\.[\w./-]+\.(url|pushurl|fetch)|remote\.pushdefault",
    re.I | re.A,
)


def _setting(what: Given) -> None:
    if len(what.operands) != 1 or not _SETTING.fullmatch(what.operands[0].text):
        raise Refused("only one setting that is known to be no secret is read unasked")


_VERBS: Final[Mapping[str, Program]] = {
    "status": program(
        "sbvzu::",
        "short branch porcelain:: long verbose untracked-files:: ignored:: show-stash ahead-behind no-ahead-behind "
        "renames no-renames find-renames:: column:: no-column",
    ),
    "log": program(_LOG_SHORT, _LOG, digits=True, check=_formatted),
    "show": program(_LOG_SHORT, _LOG, digits=True, check=_formatted),
    "whatchanged": program(_LOG_SHORT, _LOG, digits=True, check=_formatted),
    "shortlog": program("snecEPFiL:S:G:", _LOG + " summary email group:", check=_formatted),
    "diff": program(_DIFF_SHORT, _DIFF, check=_formatted),
    "diff-tree": program(_DIFF_SHORT, _DIFF + " root no-commit-id pretty:: always", check=_formatted),
    "diff-index": program(_DIFF_SHORT, _DIFF),
    "diff-files": program(_DIFF_SHORT, _DIFF),
    "range-diff": program(_DIFF_SHORT, _DIFF),
    "rev-list": program(_LOG_SHORT, _LOG, digits=True, check=_formatted),
    "rev-parse": program(
        "q",
        "abbrev-ref:: show-toplevel verify short:: git-dir absolute-git-dir git-common-dir is-inside-work-tree "
        "is-inside-git-dir is-bare-repository show-prefix show-cdup symbolic symbolic-full-name quiet all branches:: "
        "tags:: remotes:: git-path: show-superproject-working-tree is-shallow-repository",
    ),
    "ls-files": program(
        "cdmosiutzkvx:",
        "cached deleted modified others ignored stage unmerged killed exclude: exclude-standard full-name "
        "error-unmatch directory no-empty-directory abbrev:: eol deduplicate",
        names=True,
    ),
    "ls-tree": program("rtldz", "name-only name-status full-name full-tree abbrev:: long object-only"),
    "blame": program(
        "L:wsefnpltbcM::C::",
        "line-porcelain porcelain show-name show-email show-number since: date: abbrev: ignore-rev: root incremental",
    ),
    "describe": program("", "tags always all long abbrev: match: exclude: contains dirty:: first-parent candidates: "
                        "exact-match broken::"),
    "branch": program("arvli", _REFS + " show-current all remotes verbose abbrev::", check=_listed),
    "tag": program("ln::i", _REFS, check=_listed),
    "remote": program("v", "verbose", "none"),
    "remote get-url": program("", "all push", most=1),
    "stash list": program(_LOG_SHORT, _LOG, digits=True, check=_formatted),
    "stash show": program(_DIFF_SHORT, _DIFF),
    "reflog": program(_LOG_SHORT, _LOG, digits=True, check=_reflog),
    "merge-base": program("a", "all is-ancestor fork-point octopus independent"),
    "show-ref": program("qds::", "heads tags head hash:: verify abbrev:: dereference quiet"),
    "show-branch": program("ar", "all remotes current topo-order date-order sha1-name no-name"),
    "for-each-ref": program("", "sort: format: count: points-at: merged:: no-merged:: contains:: no-contains:: "
                            "ignore-case", check=_formatted),
    "grep": program(
        "nilLcwvEFGPhHoqzaIre:A:B:C:pWm:",
        "line-number column ignore-case files-with-matches name-only files-without-match count word-regexp "
        "invert-match cached untracked exclude-standard extended-regexp basic-regexp fixed-strings perl-regexp and or "
        "not all-match heading break color:: no-color max-depth: threads: show-function function-context recursive "
        "no-recursive full-name max-count: text only-matching quiet null context: after-context: before-context:",
        "pattern",
        digits=True,
        patterns="-e",
    ),
    "check-ignore": program("vnq", "verbose non-matching quiet no-index"),
    "check-attr": program("az", "all cached"),
    "worktree list": program("vz", "porcelain verbose", "none"),
    "count-objects": program("vH", "verbose human-readable", "none"),
    "cat-file": program("tpse", most=1),
    "cat-file blob": program(most=1), "cat-file commit": program(most=1), "cat-file tree": program(most=1),
    "config": program("", "get get-all local global system bool int path", "text", check=_setting),
    "config get": program("", "all local global system", "text", check=_setting),
    "name-rev": program("", "name-only tags refs: all always"),
    "cherry": program("v", "verbose abbrev::"),
    "symbolic-ref": program("q", "short quiet", most=1),
    "version": program("", "build-options", "none"),
}  # fmt: skip

GIT: Final = program("P", "no-pager no-optional-locks", verbs=_VERBS)
