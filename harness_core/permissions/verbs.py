"""Where the verbs of a program stand: behind its options, which a rule against a verb does not speak of.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from harness_core.permissions.spelling import base_name
from harness_core.permissions.text import listed

Argv = tuple[str | None, ...]

# Programs that take options in front of their verbs, beside git.
_VERBED: Final = listed(
    "docker podman nerdctl docker-compose podman-compose kubectl oc helm minikube kind argocd flux lxc incus crictl "
    "npm pnpm yarn bun uv poetry pipenv hatch pdm pipx pixi conda mamba bundle gem composer pip pip3 cargo rustup go "
    "dotnet make gradle mvn nix terraform tofu pulumi ansible vault gh glab aws gcloud az doctl heroku fly flyctl "
    "vercel netlify systemctl apt apt-get dnf yum pacman apk brew snap flatpak svn hg jj tmux"
)
# Words before a verb that runs programs, which only say what kind of thing it is about.
_GROUPS: Final = listed("compose container tool")
_DEEPEST: Final = 3  # `docker compose up`, `gh pr merge`: options may stand before each of them
_MOST_READINGS: Final = 3  # of the options before one verb
_MOST: Final = 8


def verbs(argv: Sequence[str | None], groups: AbstractSet[str] = _GROUPS) -> Iterator[int]:
    """Where the verb of a program may stand: behind its options, each of which may or may not take a value."""
    pending = {1}
    while pending:
        at = min(pending)  # so that whoever wants the first ones need not wait for all of a long command
        pending.remove(at)
        if at >= len(argv):
            return
        word = argv[at]
        if word is not None and word.startswith(("-", "+")) and word != "-":
            pending.add(at + 1)
            if "=" not in word and word != "--":
                pending.add(at + 2)
        elif word in groups:
            pending.add(at + 1)
        else:
            yield at


def without_options(argv: Argv) -> list[Argv]:
    """A program of verbs without the options before each of its first verbs, in every reading of them."""
    if base_name(argv[0]) not in _VERBED:
        return []
    found: list[Argv] = []
    pending = [(argv, 1)]
    while pending and len(found) < _MOST:
        words, depth = pending.pop()
        if depth > _DEEPEST or depth >= len(words):
            continue
        if not (words[depth] or "").startswith("-"):
            pending.append((words, depth + 1))
            continue
        places = islice(verbs(words[depth - 1 :], frozenset()), _MOST_READINGS)
        shorter = [(*words[:depth], *words[depth - 1 + place :]) for place in places]
        found += shorter
        pending += [(one, depth + 1) for one in shorter]
    return found
