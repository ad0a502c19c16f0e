"""Looks at services, containers, clusters and clouds. They use credentials or the network, so they are a policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from harness_core.permissions.flags import Given, Program, Refused, program
from harness_core.permissions.text import listed

_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:-]*")
# Objects whose fields are no secrets by design. Not configmaps, not secrets, not what a plug-in defines.
_KINDS: Final = listed(
    "pod pods po service services svc deployment deployments deploy node nodes no namespace namespaces ns ingress "
    "ingresses ing replicaset replicasets rs statefulset statefulsets sts daemonset daemonsets ds job jobs cronjob "
    "cronjobs cj event events ev pv pvc persistentvolumes persistentvolumeclaims hpa endpoints ep all"
)


def _names(what: Given) -> None:
    if not all(_PLAIN.fullmatch(operand.text) for operand in what.operands):
        raise Refused("a name in it is not plain")


def _kinds(what: Given) -> None:
    if not what.operands:
        raise Refused("it names no kind of object")
    kind, *names = (operand.text for operand in what.operands)
    parts = [part.partition("/")[0] for part in kind.split(",")]
    if not set(parts) <= _KINDS or not all(_PLAIN.fullmatch(name) for name in names):
        raise Refused("this kind of object may hold secrets")
    if any(
        option in ("-o", "--output") and value and value.text not in ("wide", "name") for option, value in what.options
    ):
        raise Refused("whole objects hold environments, and these secrets")


def _region(what: Given) -> None:
    # It becomes part of the name of the host that is asked, with a signed request.
    if any(option == "--region" and value and not _REGION.fullmatch(value.text) for option, value in what.options):
        raise Refused("this is no name of a region")


def _bucket(what: Given) -> None:
    _region(what)
    if not all(re.fullmatch(r"s3://[A-Za-z0-9._/-]*", operand.text) for operand in what.operands):
        raise Refused("this is no name of a bucket")


_UNIT: Final = program("aln:", "no-pager all type: state: failed plain no-legend full user", "text", check=_names)
_LIST: Final = program("aqln:f:s", "all quiet latest no-trunc filter: format: size digests", "none")
_GET: Final = program(
    "n:Al:o:", "namespace: all-namespaces selector: output: show-labels no-headers sort-by: field-selector:", "text",
    check=_kinds,
)  # fmt: skip
_AWS: Final = program(
    "", "region: output: query: no-cli-pager human-readable summarize recursive", "none", check=_region
)
_GCLOUD: Final = program("", "project: zone: region: limit: filter: format:", "none")
_GH: Final = program("L:s:", "limit: state: json: comments", "text", check=_names)

CLOUD: Final[Mapping[str, Program]] = {
    "systemctl": program("", "no-pager user", verbs=dict.fromkeys(
        ("status", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files", "list-timers",
         "list-sockets", "list-dependencies", "list-jobs", "is-system-running", "get-default"), _UNIT)),
    "docker": program(verbs=dict.fromkeys(
        ("ps", "images", "container ls", "image ls", "network ls", "volume ls"), _LIST)
        | dict.fromkeys(("version", "info", "context ls", "compose ls"), program("", "", "none"))),
    "kubectl": program("n:", "namespace:", verbs={
        "get": _GET, "describe": _GET, "top": _GET,
        "version": program("", "client", "none"), "config current-context": program("", "", "none"),
        "config get-contexts": program("", "", "none"), "cluster-info": program("", "", "none"),
        "api-resources": program("o:", "namespaced:: output:", "none"), "api-versions": program("", "", "none"),
        "explain": program("", "recursive", "text", check=_names)}),
    "aws": program("", "region: no-cli-pager", verbs={
        "s3 ls": program("", "region: human-readable summarize recursive", "text", check=_bucket),
        "sts get-caller-identity": _AWS, "ec2 describe-instances": _AWS, "ec2 describe-regions": _AWS}),
    "gcloud": program("", "project:", verbs=dict.fromkeys(
        ("compute instances list", "projects list", "container clusters list", "compute zones list"), _GCLOUD)),
    "gh": program(verbs=dict.fromkeys(
        ("pr list", "pr view", "pr status", "pr checks", "pr diff", "issue list", "issue view", "issue status",
         "run list", "run view", "release list", "release view", "repo view", "workflow list", "label list"), _GH)),
}  # fmt: skip
