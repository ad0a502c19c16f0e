"""The programs that may run unasked, and with what. What is not in these tables asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness_core.permissions import checks, filters, processes
from harness_core.permissions.cloud import CLOUD
from harness_core.permissions.flags import Program, program
from harness_core.permissions.git import GIT
from harness_core.permissions.text import listed
from harness_core.permissions.words import Word

# Policy: answers that a sane product could also give the other way.
ALLOW_CLOUD_READS: Final = True  # status and list verbs that use credentials or the network
ALLOW_OUTSIDE_READS: Final = False  # a literal path outside the workspace
ALLOW_NEGATION: Final = True  # `! grep -q x f`

_HELP: Final = " help version"
_SUM: Final = program("bt", "binary text tag zero" + _HELP, glob=True)

_FD: Final = program(
    "HIFgisapuq01t:e:d:E:S:c:j:o:",
    "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings and: "
    "absolute-path full-path print0 max-depth: min-depth: exact-depth: exclude: prune type: extension: size: "
    "changed-within: changed-before: color: max-results: one-file-system show-errors strip-cwd-prefix "
    "quiet threads: owner: no-require-git no-ignore-parent",
    "pattern",
    names=True,
)

_GREP: Final = program(
    "EFGPHhIiLlnoqrsTUVvwxyzZabce:A:B:C:m:d:",
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp: ignore-case no-ignore-case invert-match "
    "word-regexp line-regexp count color:: colour:: files-without-match files-with-matches max-count: "
    "only-matching quiet silent no-messages byte-offset with-filename no-filename line-number initial-tab null "
    "after-context: before-context: context: text binary-files: exclude: exclude-dir: include: recursive "
    "line-buffered null-data null label: group-separator: no-group-separator binary directories:" + _HELP,
    "pattern",
    glob=True,
    digits=True,
    patterns="-e --regexp",
)

PROGRAMS: Final[Mapping[str, Program]] = {
    # folders and what is known of files
    "ls": program(
        "aAbBcCdDfFgGhHiI:klmnNopqQrRsStT:uUvw:xXZ1",
        "all almost-all author escape block-size: ignore-backups color:: directory dired classify:: file-type format: "
        "full-time group-directories-first no-group human-readable si hyperlink:: indicator-style: inode ignore: hide: "
        "kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse "
        "recursive size sort: time: time-style: tabsize: width: context zero" + _HELP,
        glob=True,
        names=True,
    ),
    "stat": program("fLtc:", "format: printf: file-system dereference terse cached:" + _HELP, glob=True, names=True),
    "file": program("bikhLrN0F:", "brief mime mime-type mime-encoding extension keep-going no-dereference dereference "
                    "no-pad print0 raw separator:" + _HELP, names=True),
    "du": program(
        "0abcd:hHkmsSxt:",
        "all apparent-size bytes total max-depth: human-readable si summarize separate-dirs one-file-system null "
        "exclude: threshold: time:: time-style: inodes block-size:" + _HELP,
        glob=True,
        names=True,
    ),
    "df": program(
        "ahHikTlPt:x:m",
        "all human-readable si inodes local portability print-type type: exclude-type: total output:: block-size:"
        + _HELP,
        glob=True,
        names=True,
    ),
    "tree": program(
        "adfipshugDFrtUcnvCL:P:I:JQNx",
        "dirsfirst filesfirst noreport du prune sort: matchdirs ignore-case gitignore filelimit: inodes device",
        names=True,
        apart=True,
    ),
    "realpath": program(
        "eLmPqsz", "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero "
        "relative-to: relative-base:" + _HELP, names=True, glob=True, path_values="--relative-to --relative-base",
    ),
    "readlink": program(
        "femnqsvz", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"
        + _HELP, names=True, glob=True,
    ),
    "basename": program("as:z", "multiple suffix: zero" + _HELP, "text"),
    "dirname": program("z", "zero" + _HELP, "text"),
    "pwd": program("LP", "", "none"),
    # contents
    "cat": program(
        "AbeEnstTuv",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting" + _HELP,
        glob=True,
    ),
    "tac": program("brs:", "before regex separator:" + _HELP, glob=True),
    "head": program("c:n:qvz", "bytes: lines: quiet silent verbose zero-terminated" + _HELP, digits=True, glob=True),
    "tail": program("c:n:qvz", "bytes: lines: quiet silent verbose zero-terminated" + _HELP, digits=True, glob=True),
    "nl": program("b:d:f:h:i:l:n:ps:v:w:", "body-numbering: number-format: number-width:" + _HELP, glob=True),
    "wc": program("cmlLw", "bytes chars lines max-line-length words total:" + _HELP, glob=True, names=True),
    "hexdump": program("bcCdovxe:n:s:", "canonical one-byte-hex one-byte-char two-bytes-hex no-squeezing length: "
                       "skip:"),
    "hd": program("bcCdovxn:s:"),
    "od": program("A:t:vN:j:w::S:bcdfilosx", "address-radix: format: output-duplicates read-bytes: skip-bytes: width::"
                  " strings::" + _HELP, glob=True),
    "base64": program("dw:", "decode wrap: ignore-garbage" + _HELP),
    "base32": program("dw:", "decode wrap: ignore-garbage" + _HELP),
    "strings": program("an:t:e:fow", "all bytes: radix: encoding: print-file-name", check=checks.strings),
    "md5sum": _SUM, "sha1sum": _SUM, "sha224sum": _SUM, "sha256sum": _SUM, "sha384sum": _SUM, "sha512sum": _SUM,
    "b2sum": program("bl:t", "binary length: text tag zero" + _HELP, glob=True),
    "cksum": program("a:", "algorithm: untagged tag raw zero" + _HELP, glob=True),
    "shasum": program("ba:tU", "binary algorithm: text UNIVERSAL" + _HELP),
    "sum": program("rs", "sysv" + _HELP, glob=True),
    # search
    "grep": _GREP, "egrep": _GREP, "fgrep": _GREP,
    "rg": program(
        "abcFHiIlnNoPpqSsUuvVwx0.he:A:B:C:g:m:t:T:M:r:j:d:E:",
        "text count count-matches fixed-strings with-filename no-filename ignore-case smart-case case-sensitive "
        "line-number no-line-number files-with-matches files-without-match files null only-matching pcre2 no-pcre2 "
        "pretty quiet multiline multiline-dotall unrestricted invert-match word-regexp line-regexp regexp: "
        "after-context: before-context: context: glob: iglob: glob-case-insensitive max-count: type: type-not: "
        "type-list max-columns: max-columns-preview replace: threads: max-depth: maxdepth: max-filesize: encoding: "
        "hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-global no-ignore-dot no-config "
        "no-messages json stats sort: sortr: sort-files color: colors: column no-column heading no-heading trim "
        "vimgrep passthru crlf null-data line-buffered block-buffered one-file-system no-follow byte-offset "
        "context-separator: field-match-separator: field-context-separator: path-separator: include-zero debug trace "
        "binary no-binary mmap no-mmap engine: auto-hybrid-regex no-unicode no-require-git no-ignore-files "
        "no-ignore-exclude no-ignore-messages stop-on-nonmatch pcre2-version" + _HELP,
        "pattern", patterns="-e --regexp --files --type-list",
    ),
    # text in, text out
    "sort": program(
        "bdfghiMnrRVcCuzsmk:t:S:",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting "
        "month-sort numeric-sort random-sort reverse version-sort sort: check:: merge unique zero-terminated stable "
        "key: field-separator: buffer-size: parallel: batch-size: debug" + _HELP,
    ),
    "uniq": program(
        "cdDuizf:s:w:",
        "count repeated all-repeated:: skip-fields: group:: ignore-case skip-chars: unique zero-terminated check-chars:"
        + _HELP, most=1,
    ),
    "cut": program(
        "b:c:d:f:nsz", "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: "
        "zero-terminated" + _HELP, glob=True,
    ),
    "tr": program("cCdst", "complement delete squeeze-repeats truncate-set1" + _HELP, "text"),
    "comm": program("123z", "check-order nocheck-order output-delimiter: total zero-terminated" + _HELP, glob=True),
    "diff": program(
        "qsruU:cC:yW:wBbiaNtTpndEZI:x:e",
        "brief report-identical-files recursive unified:: context:: side-by-side width: left-column "
        "suppress-common-lines ignore-case ignore-file-name-case ignore-tab-expansion ignore-trailing-space "
        "ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: text strip-trailing-cr "
        "new-file unidirectional-new-file label: show-c-function show-function-line: minimal speed-large-files color:: "
        "exclude: no-dereference expand-tabs initial-tab tabsize: rcs normal ed line-format: old-line-format: "
        "new-line-format: unchanged-line-format: old-group-format: new-group-format: changed-group-format: "
        "unchanged-group-format:" + _HELP, glob=True, check=checks.diff,
    ),
    "cmp": program("bln:si:", "print-bytes verbose bytes: quiet silent ignore-initial:" + _HELP, most=4),
    "paste": program("d:sz", "delimiters: serial zero-terminated" + _HELP, glob=True),
    "join": program("1:2:t:a:o:ij:e:v:z", "ignore-case check-order nocheck-order header zero-terminated" + _HELP),
    "fold": program("bsw:", "bytes spaces width:" + _HELP, glob=True),
    "fmt": program("cp:stuw:g:", "crown-margin prefix: split-only tagged-paragraph uniform-spacing width: goal:",
                   glob=True),
    "column": program("ts:no:c:xN:R:T:LeH:", "table separator: output-separator: output-width: fillrows table-columns: "
                      "table-right: table-truncate: table-noextreme: keep-empty-lines table-noheadings"),
    "rev": program(), "expand": program("it:", "initial tabs:" + _HELP, glob=True),
    "unexpand": program("at:", "all first-only tabs:" + _HELP, glob=True),
    "shuf": program("n:zrei:", "head-count: zero-terminated repeat echo input-range:" + _HELP),
    "tsort": program(), "factor": program("", "", "text"),
    "numfmt": program("d:", "from: to: suffix: padding: field: delimiter: header:: format: round: grouping", "text"),
    "seq": program("w:s:f:", "equal-width separator: format:" + _HELP, "text", digits=True),
    "sed": program("nErsuze:", "quiet silent regexp-extended separate unbuffered null-data posix expression:" + _HELP,
                   "pattern", patterns="-e --expression", check=checks.sed),
    "awk": program("F:", "", "pattern", first=True, check=checks.awk),
    "gawk": program("F:", "", "pattern", first=True, check=checks.awk),
    "mawk": program("F:", "", "pattern", first=True, check=checks.awk),
    "jq": program("rcnsSeajMCR", "raw-output compact-output null-input slurp sort-keys exit-status ascii-output "
                  "join-output monochrome-output color-output raw-input tab indent: stream seq arg:2 argjson:2",
                  "pattern", check=filters.jq),
    "yq": program("rPNCMjeo:p:I:", "prettyPrint no-doc colors no-colors output-format: input-format: indent: "
                  "unwrapScalar exit-status", "pattern", check=filters.yq),
    # archives
    "zipinfo": program("12smlvhtTz", first=True),
    "zcat": program("q", check=checks.packed_names), "bzcat": program(), "xzcat": program(),
    # words and truths
    "true": program("", "", "text", glob=True), "false": program("", "", "text", glob=True),
    ":": program("", "", "text", glob=True),
    "which": program("a", "all", "text"), "whereis": program("bms", "", "text"), "type": program("atpPf", "", "text"),
    # the machine
    "id": program("ugGnrza", "user group groups name real zero" + _HELP, "text"),
    "whoami": program("", _HELP, "none"), "groups": program("", _HELP, "text"),
    "hostname": program("s", "short", "none"), "arch": program("", _HELP, "none"),
    "tty": program("s", "silent", "none"),
    "uname": program("asrvmpnio", "all kernel-name nodename kernel-release kernel-version machine processor "
                     "hardware-platform operating-system" + _HELP, "none"),
    "uptime": program("ps", "pretty since" + _HELP, "none"), "nproc": program("", "all ignore:" + _HELP, "none"),
    "free": program("bkmghwtlv", "bytes kilo mega giga kibi mebi gibi human wide total lohi si", "none"),
    "lscpu": program("Jyx", "json hex physical", "none"),
    "date": program("uRI::d:r:", "utc universal rfc-email iso-8601:: rfc-3339: date: reference: debug" + _HELP, "text",
                    path_values="-r --reference", check=checks.date),
    "fd": _FD, "fdfind": _FD, "git": GIT,
}  # fmt: skip

# Programs whose arguments do not follow getopt: each check returns the words that are paths.
OWN: Final[Mapping[str, Callable[[Sequence[Word]], list[Word]]]] = {
    "find": checks.find,
    "tar": checks.tar,
    "test": checks.test,
    "[": checks.bracket,
    "printf": checks.printf,
    "echo": checks.echo,
    "ps": processes.ps,
    "command": checks.command,
    "xxd": checks.xxd,
    "expr": checks.echo,
}

# Whole commands. Programs whose version the files of a project can choose (yarn, cargo, go …) are not here.
EXACT: Final = frozenset(
    [(name, "--version") for name in listed(
        "python python3 node npm gcc g++ cc clang clang++ curl wget docker make cmake pip pip3 bash git ruby perl "
        "java javac php deno bun uv terraform mysql redis-cli shasum "
        "ls cat grep sed awk gawk find tar sort rg fd jq yq tree aws gh psql sqlite3 rsync vim less zip env"
    )]
    + [("python", "-V"), ("python3", "-V"), ("node", "-v"), ("npm", "-v"), ("java", "-version"), ("perl", "-v"),
       ("ruby", "-v"), ("openssl", "version"), ("locale",), ("who",), ("python3", "-VV"), ("php", "-v"),
       ("make", "-v"), ("docker", "-v"), ("pip", "-V"), ("pip3", "-V"), ("curl", "-V"), ("bun", "-v"),
       ("terraform", "version"), ("terraform", "-version")]
)  # fmt: skip


_GZIP: Final = program(
    "cdltvqk123456789", "stdout to-stdout decompress uncompress list test verbose quiet keep", check=checks.packed
)
# Not: outdated, uptodate and what chooses an index, which ask the network; log, path and python. Not freeze, which runs
# the version control of what is installed from a checkout.
_PIP: Final = program(verbs={
    "list": program("lve", "local user not-required editable exclude-editable format: exclude: verbose", "none"),
    "show": program("fv", "files verbose", "text"), "check": program("", "", "none"),
})  # fmt: skip

# Programs that do much else, which rules may let them do: here is only what of it reads. Not `npm ls`: it asks the
# registry for a newer npm, and writes a log where the project's .npmrc says.
WORKERS: Final[Mapping[str, Program]] = {
    "pip": _PIP, "pip3": _PIP, "gzip": _GZIP, "gunzip": _GZIP,
    "unzip": program("lvZ1tqh", "", first=True, check=checks.unzip),
}  # fmt: skip


def known(name: str) -> Program | None:
    """The record of a program; None if it is not in the tables."""
    return PROGRAMS.get(name) or WORKERS.get(name) or (CLOUD.get(name) if ALLOW_CLOUD_READS else None)
