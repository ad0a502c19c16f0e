"""What a path means without looking at the disk: where it points, whether it is secret or protected, what rules match.

What the disk knows (where symlinks lead) comes in as a fact; see `World`.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from harness_core.permissions.text import invisible, listed


@dataclass(frozen=True, slots=True)
class World:
    """What judging needs to know beyond the call.

    workspace, home: absolute paths; the workspace is where commands start. paths: the real absolute paths of what the
    call names, in its order, all symlinks followed; None says that there are no symlinks. git_runs: what the
    repository's own configuration would run ("" for nothing), or ABOVE. addresses: what the host of a URL resolves to.
    redirects: the URLs that a fetch would be led to.
    """

    workspace: str
    home: str = "/nonexistent"
    paths: tuple[str, ...] | None = None
    git_runs: str = ""
    addresses: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()


# -- where a path points -----------------------------------------------------------------------------------------------


def absolute(path: str, folder: str) -> str:
    """The normalised absolute path. `..` is taken by the letter: what symlinks make of it is for real paths."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    return "/" + joined.lstrip("/")  # POSIX leaves two leading slashes alone


def within(path: str, folder: str) -> bool:
    """Whether an absolute, normalised path is this folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# -- secrets: what is not read without asking --------------------------------------------------------------------------

SECRET_FOLDERS: Final = listed(
    ".git .ssh .aws .azure .gnupg .kube .docker .gcloud .terraform.d .password-store .vault secrets .secrets"
)
LONGEST_NAME: Final = 255  # bytes of a file's name on the usual file systems; there is no longer one to read
LONGEST_PATH: Final = 4_096  # bytes of a path that Linux takes
_TEMPLATES: Final = (".example", ".template", ".sample", ".dist", ".tmpl")
_SOURCES: Final = listed(
    "py pyi ts tsx js jsx mjs cjs go rs java kt kts rb c h cc cpp hpp cs swift scala php html css scss vue svelte md "
    "rst adoc sql proto graphql lock"
)
_SECRET_NAMES: Final = re.compile(
    r"""
    \.env([._-].*|rc)? | .*\.env | env\.(local|production) | \.flaskenv
  | \.(npmrc|pypirc|netrc|pgpass|my\.cnf|mylogin\.cnf|htpasswd|git-credentials|dockercfg|dockerconfigjson|boto|s3cfg)
  | \.(vault-token|terraformrc|yarnrc(\.yml)?|msmtprc|smbcredentials|esmtprc|token|renviron)
  | \.(sentryclirc|fetchmailrc|muttrc|pass|ansible_vault_pass|vault_pass) | rclone\.conf | \.rclone\.conf | pip\.conf
  | nuget\.config | htpasswd | authorized_keys | local\.settings\.json | settings-security\.xml | wp-config\.php
  | wg\d*\.conf | cookies\.txt | rootkey\.csv | ssh_host_[a-z0-9]+_key
  | (.*[._-])?(deploy|access)[_-]?keys?(\.(txt|csv))?
  | (.*[._-])?(mnemonic|seed[_-]?phrase)s?(\.txt)? | .*\.keychain(-db)?
  | (.*[._-])?private[_-]?keys?(\.[a-z0-9]+)? | (.*[_-])?key\.json | auth\.json
  | _netrc | shadow-? | gshadow-? | sudoers | master\.passwd | kubeconfig.* | .*_history | \.lesshst | \.viminfo
  | .*\.(pem|key|p12|pfx|p8|jks|keystore|kdbx?|ppk|ovpn|gpg|asc|age)(\.(backup|bak))?
  | .*\.(tfstate|tfvars|pkcs12|keytab|agekey)(\.(backup|bak))?
  | ((.*[._-])?id_(rsa|dsa|ecdsa|ed25519)(_sk)?|[a-z0-9-]+_(rsa|ed25519))([._-](old|bak|backup|orig|key|\d+))?
  | wallet\.dat | key3\.db | key4\.db | logins\.json | cookies(\.sqlite)?
  | (.*[._-])?(service[_-]?account|firebase[_-]adminsdk|client[_-]secrets?|application_default_credentials)(.*)?\.json
  | (.*[._-])?(secrets?|credentials?|passwords?|passwd|api[_-]?keys?|auth[_-]?tokens?|tokens?)(\.[a-z0-9]+)*
  """,
    re.X | re.I,
)
_FOLDERS: Final = re.compile(r"(^|/)(\.config/(gh|hub|op|gcloud|rclone)|\.m2/settings|\.gradle/gradle\.properties)")
# Names that secrets go by, to see whether a glob could reach one; and names that are on every disk.
_SAMPLES: Final = SECRET_FOLDERS | listed(
    ".env .env.local .env.production .envrc .flaskenv .npmrc .netrc .pypirc .git-credentials .htpasswd .pgpass .my.cnf "
    ".vault-token .s3cfg .boto .token .terraformrc .bash_history id_rsa id_dsa id_ecdsa id_ed25519 key.pem tls.pem "
    "server.key app.key cert.p12 x.p8 x.pfx x.ppk x.jks x.keystore x.kdbx x.ovpn x.gpg x.asc x.age x.keytab "
    "secrets.yml secrets.yaml secrets.json secret.json secret credentials.json credentials token access_token "
    "tokens.json password passwords passwd api_key private_key auth.json gcp-key.json service-account.json "
    "firebase-adminsdk-x.json terraform.tfstate terraform.tfstate.backup prod.tfvars wallet.dat logins.json key4.db "
    "cookies.sqlite shadow kubeconfig prod.env"
)
_BRACES: Final = re.compile(r"\{([^{}]*)\}")  # the innermost
_MOST_CHOICES: Final = 256
_ORDINARY: Final = listed(
    "readme.md main.py index.js app.ts package.json data.json config.yml config.yaml notes.txt x.sh a.c lib.rs main.go"
)


def secret(path: str) -> bool:
    """Whether a path names a secret, or something in a folder of secrets. Templates and source code are none."""
    names = [name.casefold() for name in path.split("/") if name not in ("", ".", "..")]
    if not names:
        return False
    if any(name in SECRET_FOLDERS for name in names) or _FOLDERS.search(path.casefold()):
        return True
    return any(_secret_name(name) for name in names)


def _secret_name(name: str) -> bool:
    if len(name) > LONGEST_NAME:
        return False
    name = name.removesuffix("~").removesuffix(".swp")  # what editors leave beside it
    if name.endswith(_TEMPLATES) or not _SECRET_NAMES.fullmatch(name):
        return False
    stem, dot, ending = name.rpartition(".")
    return not (dot and stem and ending in _SOURCES and not name.startswith((".env", "wp-config")))


def may_reach_secret(pattern: str, *, dots: bool = False) -> bool:
    """Whether a glob could match the name of a secret, at any of its segments. dots: `*` matches a leading dot too."""
    segments = [segment for segment in pattern.casefold().split("/") if segment not in ("", ".")]
    if segments and _source(segments[-1]):  # in whatever folder
        segments = [segment for segment in segments if segment not in ("*", "**")]
    return any(_matches(segment, _SAMPLES, dots=dots) for segment in segments) or secret(
        re.sub(r"\[(.)\]", r"\1", pattern)
    )


def _source(name: str) -> bool:
    """Whether a name, or a glob of names, is one of source code or of a file that every project has."""
    ending = name.rpartition(".")[2]
    return not name.startswith(".") and not _secret_name(name) and (ending in _SOURCES or name in _ORDINARY)


def aims_at_secret(pattern: str) -> bool:
    """Whether a glob of a program over many files is about secrets: it, or a choice of its braces, matches some, and
    nothing ordinary.
    """
    choices = _choices(pattern)
    return choices is None or any(_aims(choice) for choice in choices)


def _choices(pattern: str) -> list[str] | None:
    """What braces leave to choose; None for more than anybody means."""
    todo, plain = [pattern], list[str]()
    while todo:
        if len(todo) + len(plain) > _MOST_CHOICES:
            return None
        text = todo.pop()
        if braces := _BRACES.search(text):
            todo += [text[: braces.start()] + choice + text[braces.end() :] for choice in braces[1].split(",")]
        else:
            plain.append(text)
    return plain


def _aims(pattern: str) -> bool:
    last = pattern.casefold().rstrip("/").rpartition("/")[2]
    if secret(pattern):
        return True
    return may_reach_secret(pattern, dots=True) and not _matches(last, _ORDINARY)


def _matches(segment: str, names: frozenset[str], *, dots: bool = False) -> bool:
    if not re.search(r"[*?\[]", segment):
        return False
    hidden = dots or re.match(r"\.|\[[.]", segment)
    loose = _without_sets(segment)
    return any(fnmatch.fnmatchcase(name, loose) and (hidden or not name.startswith(".")) for name in names)


def _without_sets(segment: str) -> str:
    """A glob in which any set of characters may be anything: bash knows classes and negations that Python does not."""
    plain = re.sub(r"\[([*?\[])\]", "?", segment)
    start, end = plain.find("["), plain.rfind("]")
    return plain if start < 0 else plain[:start] + "*" + (plain[end + 1 :] if end > start else "")


# -- protected: what is not written without an exact rule --------------------------------------------------------------

_PROTECTED: Final = re.compile(
    r"""
    \.git | \.git(modules|attributes|config|ignore_global) | \.env.* | \.vscode | \.idea | \.claude.* | \.harness.*
  | \.ssh | \.github | \.npmrc | \.mcp\.json | \.[a-z0-9_-]*rc(\.[a-z]+)? | \.(bash|zsh|sh)?_?(profile|login|logout|env)
  | \.(zprofile|zshenv|zlogin|zlogout|xprofile|xinitrc|inputrc) | \.(aws|gnupg|kube|docker|husky|devcontainer|cursor.*)
  | \.config | \.local | \.(gitlab-ci|pre-commit-config|travis)\.ya?ml | \.(circleci|buildkite|direnv|bin)
  | harness\.toml
  """,
    re.X | re.I,
)


_PROTECTED_FOLDERS: Final = SECRET_FOLDERS - {"secrets"}  # there readers are kept out; no program acts on its files


def protected(path: str) -> bool:
    """Whether writing there can change what programs do later: settings, hooks, start-up files. Any case."""
    return any(_PROTECTED.fullmatch(name) or name.casefold() in _PROTECTED_FOLDERS for name in path.split("/"))


# -- paths in arguments ------------------------------------------------------------------------------------------------


def unusual(path: str) -> str:
    """Why a path argument cannot be judged by its looks; "" if it can."""
    if not path:
        return "the path is empty"
    if len(path) > LONGEST_PATH:
        return "the path is too long"
    if fault := invisible(path):
        return fault
    if "\n" in path or "\t" in path:
        return "the path holds a control character"
    if "\\" in path or "$" in path:
        return "the path holds a backslash or a dollar sign"
    if path.startswith("~") and not (path == "~" or path.startswith("~/")):
        return "the path begins with ~ and a user's name"
    if path.endswith("/"):
        return "the path ends with a slash"
    return ""


def placed(path: str, world: World) -> str:
    """The absolute path of an argument or a rule: relative to the workspace, or to home with ~/."""
    if path == "~" or path.startswith("~/"):
        return absolute(path[1:].lstrip("/"), world.home)
    return absolute(path, world.workspace)


# -- path patterns (write, edit, read) ---------------------------------------------------------------------------------


def has_wildcard(pattern: str) -> bool:
    """Whether a path pattern has a `*` or `?` that is not escaped."""
    return bool(re.search(r"(?<!\\)(?:\\\\)*[*?]", pattern))


def unescaped(pattern: str) -> str:
    """The path that a pattern without wildcards names."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.S)


def covers(pattern: str, path: str, world: World, *, wide: bool) -> bool:
    """Whether a path pattern matches an absolute path.

    Narrow (for allow): wildcards match no name that begins with a dot, and one file without a wildcard.
    Wide (for deny and ask): any case, dots too, and everything below what is matched.
    """
    if not has_wildcard(pattern):
        target = placed(unescaped(pattern), world)
        if not wide:
            return bool(pattern) and not pattern.endswith("/") and path == target
        return within(path.casefold(), target.casefold())
    folder, rest = _rooted(pattern, world)
    expression = _expression(folder, rest, wide=wide)
    return bool(re.fullmatch(expression, path, re.S | (re.I if wide else 0)))


def _rooted(pattern: str, world: World) -> tuple[str, str]:
    if pattern.startswith("~/"):
        return world.home, pattern[2:]
    return ("/", pattern.lstrip("/")) if pattern.startswith("/") else (world.workspace, pattern)


def _expression(folder: str, pattern: str, *, wide: bool) -> str:
    parts = [segment for segment in re.sub(r"(\*\*/)+", "**/", pattern).split("/") if segment not in ("", ".")]
    if ".." in parts:
        return r"(?!)" if not wide else _expression("/", posixpath.normpath(posixpath.join(folder, pattern)), wide=True)
    name = r"[^/]+" if wide else r"(?!\.)[^/]+"
    out = re.escape(folder.rstrip("/"))
    for place, segment in enumerate(parts):
        if segment == "**":
            # Zero or more folders in between; at the end, everything below.
            out += rf"(?:/{name})*" if place < len(parts) - 1 else rf"(?:/{name})+"
        else:
            out += "/" + _segment(segment, wide=wide)
    return out + (r"(?:/.*)?" if wide else "")


def _segment(segment: str, *, wide: bool) -> str:
    dotted = "" if wide or not re.match(r"[*?]", segment) else r"(?!\.)"
    out = ""
    for escaped, char in re.findall(r"\\(.)|(.)", segment, re.S):
        if escaped:
            out += re.escape(escaped)
        elif char == "*":
            out += "[^/]*"
        else:
            out += "[^/]" if char == "?" else re.escape(char)
    return dotted + out
