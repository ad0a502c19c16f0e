"""In which order hooks speak, what one hears, and what all of them together come to.  Pure.

An interceptor is any object; it has a method per point that it cares about, and may have `name`, `rule_class`,
`priority` (smaller speaks first in its class) and `escape_after` (see below). Each method is a pure function of the
frozen trace and the thing at hand, and returns a verdict or None:

    session_start(trace, prompt)                the first run of a session begins with this Prompted
    user_prompt(trace, prompt)                  a Prompted that no model request has held: Rewrite(text), Stop
    before_model(trace)                         Inject, Compress, Stop
    model_error(trace, failed)                  a ModelFailed: Compress, Stop
    after_model(trace, said)                    a ReasonEnd, as it will be stored: Inject, Stop
    permission_request(trace, call)             a ToolCall about to be put to a person: Ask, Deny, Rewrite(args)
    before_tool(trace, call)                    every ToolCall: Ask, Deny, Rewrite(args)
    after_tool(trace, call, result)             a ToolCallEnd, as it will be stored: Rewrite(text), Inject
    before_stop(trace, answer)                  the model is done, and this is its answer: Continue
    run_end(trace, end)                         a RunEnd, as it will be stored
    before_compress(trace, plan)                Rewrite(plan)
    after_compress(trace, compressed)           a ContextCompressed, as it will be stored
    subagent_start(trace, call)                 a ToolCall that is about to be carried out by a sub-agent
    subagent_end(trace, call, result)           and the ToolCallEnd that came of it

Observe is accepted everywhere. What a hook needs to count, it counts from the trace: `trace.run` has what is known of
this run. It is None where there is none yet: at session_start, and at user_prompt for what a run begins with. The same
facts must give the same verdict, or a replay would tell another story; so the time, too, comes with the trace
(`trace.now`, seconds since the epoch). And a hook may be asked twice: one whose Inject was made of a result that
another rewrites is asked again about the result as it is then.

A Deny with an `escape_key` is a guess. After `escape_after` (2) refused batches for the same key the hook is overruled,
until what it refused has worked, or a person speaks: then it counts anew. Class safety cannot declare one.

Whoever wants to *do* something subscribes to the engine's events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from harness_core.calls import valid_text
from harness_core.errors import ConfigError
from harness_core.events import HookRuled, Prompted, ToolCallEnd
from harness_core.session import Trace
from harness_core.tally import gate_key
from harness_core.types import ToolCall, digest, readable, same
from harness_core.usable import usable
from harness_core.verdicts import ACCEPTS as ACCEPTS
from harness_core.verdicts import ESCAPED, FAILED, FAILS, RULE_CLASSES
from harness_core.verdicts import Ask as Ask
from harness_core.verdicts import Compress as Compress
from harness_core.verdicts import Continue as Continue
from harness_core.verdicts import Deny as Deny
from harness_core.verdicts import HookReject as HookReject
from harness_core.verdicts import Inject as Inject
from harness_core.verdicts import Observe as Observe
from harness_core.verdicts import Point as Point
from harness_core.verdicts import Rewrite as Rewrite
from harness_core.verdicts import RuleClass as RuleClass
from harness_core.verdicts import Stop as Stop
from harness_core.verdicts import Verdict as Verdict

ESCAPE_AFTER: Final = 2  # refused batches after which a gate that only guesses is overruled
FAULT: Final = "failed"  # key of a ruling's payload: in what way the hook failed
LATE: Final = "late"  # key of a ruling's payload: the arguments that a hook wanted when they were settled already


@dataclass(frozen=True, slots=True)
class Ruled:
    """What a point came to. value: the thing at hand as rewritten. verdict: what stops, refuses, asks or goes on; the
    first one. texts: what the model is to be told, in the order of the hooks. rulings: the record.
    """

    value: Any = None
    verdict: Ask | Deny | Stop | Continue | Compress | None = None
    texts: tuple[str, ...] = ()
    rulings: tuple[HookRuled, ...] = ()


def in_order(interceptors: Iterable[Any]) -> tuple[Any, ...]:
    """Hooks in the order in which they speak: by class, then priority (smaller first), then as registered."""
    return tuple(sorted(interceptors, key=lambda i: (RULE_CLASSES.index(rule_class(i)), getattr(i, "priority", 0))))


def rule_class(interceptor: Any) -> RuleClass:
    """The class that an interceptor declares; an undeclared one speaks last. Raises ConfigError for no such class."""
    declared: RuleClass = getattr(interceptor, "rule_class", "drift")
    if declared not in RULE_CLASSES:
        raise ConfigError(
            f"{name_of(interceptor)} declares the class {declared!r}; there are {', '.join(RULE_CLASSES)}."
        )
    return declared


def name_of(interceptor: Any) -> str:
    """The name under which an interceptor's rulings are recorded."""
    return valid_text(str(getattr(interceptor, "name", "") or type(interceptor).__name__))


def run_point(point: Point, interceptors: Iterable[Any], trace: Trace, *about: Any, late: bool = False) -> Ruled:
    """Ask every interceptor that has a method for this point. about: what is at hand; the last of it may be rewritten,
    unless it is too late for that: then each hook sees it as it is, and what one would have made of it is only noted.

    Rewrites pass on to the next hook, and whoever tells the model something is heard after them all; texts add up, and
    an Ask, a Compress or a Continue stays until something stronger is said; the first Deny or Stop ends it. What a
    failing hook comes to, FAILS says.
    """
    ruled, told = Ruled(about[-1] if about else None), []
    asked = [one for one in interceptors if getattr(one, point, None) is not None]
    shown = about
    for interceptor in asked:
        verdict, record = _asked(interceptor, point, trace, shown, late=late)
        if record is None:
            continue
        if isinstance(verdict, Inject) and Rewrite in ACCEPTS[point]:
            told.append((interceptor, shown, verdict, record))
            continue
        ruled = _with(ruled, verdict, record)
        if isinstance(verdict, Deny | Stop):
            break
        shown = (*shown[:-1], ruled.value) if shown else ()
    for interceptor, saw, said, record in told:
        if saw == shown:
            ruled = _with(ruled, said, record)
        else:  # a text that was made of what is no more; being a pure function, it can be asked again
            verdict, other = _asked(interceptor, point, trace, shown, late=True)
            ruled = _with(ruled, verdict, other) if other else ruled
    return ruled


def _asked(
    interceptor: Any, point: Point, trace: Trace, about: tuple[Any, ...], *, late: bool
) -> tuple[Verdict | None, HookRuled | None]:
    """What one hook rules, and the record of it; (None, None) if it says nothing."""
    try:
        said: object = getattr(interceptor, point)(trace, *about)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a hook's fault must neither become a permission nor end the engine: no exit, too
        said = error
    if said is None:
        return None, None
    verdict, record = _ruling(said, point, interceptor, trace, about)
    if late and isinstance(verdict, Rewrite):
        return None, _noted(record, about[-1])
    return verdict, record


def _ruling(
    said: object, point: Point, interceptor: Any, trace: Trace, about: tuple[Any, ...]
) -> tuple[Verdict | None, HookRuled]:
    """What a hook ruled, by what it returned or raised, and the record of it."""
    verdict, fault = usable(said, point, rule_class(interceptor), about)
    if fault:
        fault = valid_text(f"the hook {name_of(interceptor)} {fault}")
        verdict = _failed(point, interceptor, fault)
    record = _recorded(point, interceptor, trace, about, verdict, fault)
    if isinstance(verdict, Deny) and _escaped(interceptor, trace, verdict):
        return None, replace(record, verdict=ESCAPED)
    return verdict, record


def _noted(record: HookRuled, about: Any) -> HookRuled:
    """The record of a rewrite that comes too late to count."""
    args = record.payload.get("args")
    if args is not None and same(args, about.args):  # which is how it was rewritten in time
        return replace(record, verdict="Observe", payload={})
    reason = "it was settled before this hook would have changed it, so it changed nothing"
    return replace(record, verdict="Observe", reason=reason, payload={} if args is None else {LATE: args})


def _escaped(interceptor: Any, trace: Trace, verdict: Deny) -> bool:
    """Whether this gate has refused for this key often enough. The open batch does not count: its siblings are one."""
    run = trace.run
    if run is None or verdict.escape_key is None:
        return False
    known = run.refused.get(gate_key(name_of(interceptor), verdict.escape_key))
    if known is None:
        return False
    before = known.batches - (known.step == run.steps)
    return before >= max(1, getattr(interceptor, "escape_after", ESCAPE_AFTER))


def _failed(point: Point, interceptor: Any, why: str) -> Verdict | None:
    safety = rule_class(interceptor) == "safety"
    if FAILS[point] == "closed":
        return Deny(f"Refused: {why}.") if safety else Ask(why)
    return Stop(f"Stopped for safety: {why}.", reason=why) if safety else None


def _with(ruled: Ruled, verdict: Verdict | None, record: HookRuled) -> Ruled:
    ruled = replace(ruled, rulings=(*ruled.rulings, record))
    match verdict:
        case Rewrite(to=to):
            return replace(ruled, value=_rewritten(ruled.value, to))
        case Inject(text=text):
            return replace(ruled, texts=(*ruled.texts, text))
        case Deny() | Stop():
            return replace(ruled, verdict=verdict)
        case Ask() | Compress() | Continue():
            return replace(ruled, verdict=ruled.verdict or verdict)
        case _:
            return ruled


def _rewritten(value: Any, to: Any) -> Any:
    match value:
        case ToolCall():
            return replace(value, args=to)
        case Prompted():
            return replace(value, text=to)
        case ToolCallEnd():
            return replace(value, content=readable(to))
        case _:
            return to


def _recorded(
    point: Point, interceptor: Any, trace: Trace, about: tuple[Any, ...], verdict: Verdict | None, fault: str
) -> HookRuled:
    call = next((thing for thing in about if isinstance(thing, ToolCall)), None)
    return HookRuled(
        point=point,
        hook=name_of(interceptor),
        rule_class=rule_class(interceptor),
        verdict=type(verdict).__name__ if verdict else FAILED,
        reason=verdict.reason if verdict else fault,
        step=trace.run.steps if trace.run else 0,
        call_uuid=call.call_uuid if call else "",
        payload=_payload(verdict, about) | ({FAULT: fault} if fault else {}),
        escape_key=verdict.escape_key if isinstance(verdict, Deny) else None,
        suggests=verdict.suggests if isinstance(verdict, Deny | Inject | Continue) else None,
        upto=trace.seq,
    )


def _payload(verdict: Verdict | None, about: tuple[Any, ...]) -> dict[str, Any]:
    """What the record needs beside the reason, so that the facts alone tell what the ruling changed."""
    match verdict, about[-1] if about else None:
        case Rewrite(to=to), ToolCall():
            return {"args": dict(to)}
        case Rewrite(), ToolCallEnd(content=content):
            return {"original": digest(content)}
        case Rewrite(to=text), Prompted(seq=seq):
            return {"prompt": seq, "text": text}
        case Rewrite(to=to), _:
            return {"to": repr(to)}
        case ((Inject(text=text) | Continue(text=text)), _):
            return {"text": text}
        case Stop(answer=answer, limit=limit), about_prompt:
            asked = {"prompt": about_prompt.seq} if isinstance(about_prompt, Prompted) else {}
            return {"answer": answer, "limit": limit} | asked
        case _:
            return {}
