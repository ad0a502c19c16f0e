"""A harness for tool-using agents: the model decides, the harness constrains.

The public names; each is imported when it is first used, so that `import harness_core` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_core.agents import Agent as Agent
    from harness_core.compression.strategies import CompositeCompressionStrategy as CompositeCompressionStrategy
    from harness_core.compression.strategies import CompressionStrategy as CompressionStrategy
    from harness_core.compression.strategies import HierarchicalCompressionStrategy as HierarchicalCompressionStrategy
    from harness_core.compression.strategies import KeyInfoExtractionStrategy as KeyInfoExtractionStrategy
    from harness_core.engine import HarnessEngine as HarnessEngine
    from harness_core.errors import ConfigError as ConfigError
    from harness_core.errors import DecisionRefused as DecisionRefused
    from harness_core.errors import HarnessError as HarnessError
    from harness_core.errors import ModelError as ModelError
    from harness_core.errors import StoreError as StoreError
    from harness_core.errors import ToolFailed as ToolFailed
    from harness_core.events import ActionEnd as ActionEnd
    from harness_core.events import ActionStart as ActionStart
    from harness_core.events import ContextCompressed as ContextCompressed
    from harness_core.events import ContextSize as ContextSize
    from harness_core.events import HITLDecided as HITLDecided
    from harness_core.events import HITLPending as HITLPending
    from harness_core.events import HITLSubmitted as HITLSubmitted
    from harness_core.events import HITLVoted as HITLVoted
    from harness_core.events import HookRuled as HookRuled
    from harness_core.events import Inspected as Inspected
    from harness_core.events import ModelFailed as ModelFailed
    from harness_core.events import PolicyInForce as PolicyInForce
    from harness_core.events import PromptAmended as PromptAmended
    from harness_core.events import Prompted as Prompted
    from harness_core.events import PromptHeard as PromptHeard
    from harness_core.events import ReasonDelta as ReasonDelta
    from harness_core.events import ReasonEnd as ReasonEnd
    from harness_core.events import ReasonStart as ReasonStart
    from harness_core.events import RuleChanged as RuleChanged
    from harness_core.events import RunEnd as RunEnd
    from harness_core.events import RunStart as RunStart
    from harness_core.events import StopRequested as StopRequested
    from harness_core.events import ToolCallEnd as ToolCallEnd
    from harness_core.events import ToolCallStart as ToolCallStart
    from harness_core.extensions import AgentBuilder as AgentBuilder
    from harness_core.extensions import HarnessExtension as HarnessExtension
    from harness_core.handle import HITL as HITL
    from harness_core.handle import AgentSession as AgentSession
    from harness_core.hitl import HITLDecision as HITLDecision
    from harness_core.hitl import HITLTask as HITLTask
    from harness_core.interceptors.compression import ContextCompressionInterceptor as ContextCompressionInterceptor
    from harness_core.interceptors.function import hook as hook
    from harness_core.interceptors.hitl import HITLInterceptor as HITLInterceptor
    from harness_core.interceptors.stop_loop import StopLoopInterceptor as StopLoopInterceptor
    from harness_core.options import HarnessOptions as HarnessOptions
    from harness_core.permissions.judge import HITLStrategy as HITLStrategy
    from harness_core.permissions.rule import PermissionRule as PermissionRule
    from harness_core.permissions.strategies import BashToolStrategy as BashToolStrategy
    from harness_core.permissions.strategies import WebToolStrategy as WebToolStrategy
    from harness_core.permissions.strategies import WriteToolStrategy as WriteToolStrategy
    from harness_core.session import Trace as Trace
    from harness_core.steps import Expiry as Expiry
    from harness_core.tools.sandbox import Sandbox as Sandbox
    from harness_core.tools.shell import bash_tool as bash_tool
    from harness_core.tools.spec import tool as tool
    from harness_core.verdicts import Ask as Ask
    from harness_core.verdicts import Compress as Compress
    from harness_core.verdicts import Continue as Continue
    from harness_core.verdicts import Deny as Deny
    from harness_core.verdicts import HookReject as HookReject
    from harness_core.verdicts import Inject as Inject
    from harness_core.verdicts import Observe as Observe
    from harness_core.verdicts import Rewrite as Rewrite
    from harness_core.verdicts import Stop as Stop

_WHERE = {
    "harness_core.agents": ["Agent"],
    "harness_core.compression.strategies": [
        "CompositeCompressionStrategy",
        "CompressionStrategy",
        "HierarchicalCompressionStrategy",
        "KeyInfoExtractionStrategy",
    ],
    "harness_core.engine": ["HarnessEngine"],
    "harness_core.errors": [
        "ConfigError",
        "DecisionRefused",
        "HarnessError",
        "ModelError",
        "StoreError",
        "ToolFailed",
    ],
    "harness_core.extensions": ["AgentBuilder", "HarnessExtension"],
    "harness_core.handle": ["HITL", "AgentSession"],
    "harness_core.hitl": ["HITLDecision", "HITLTask"],
    "harness_core.interceptors.compression": ["ContextCompressionInterceptor"],
    "harness_core.interceptors.function": ["hook"],
    "harness_core.interceptors.hitl": ["HITLInterceptor"],
    "harness_core.interceptors.stop_loop": ["StopLoopInterceptor"],
    "harness_core.options": ["HarnessOptions"],
    "harness_core.permissions.judge": ["HITLStrategy"],
    "harness_core.permissions.rule": ["PermissionRule"],
    "harness_core.permissions.strategies": ["BashToolStrategy", "WebToolStrategy", "WriteToolStrategy"],
    "harness_core.session": ["Trace"],
    "harness_core.steps": ["Expiry"],
    "harness_core.tools.sandbox": ["Sandbox"],
    "harness_core.tools.shell": ["bash_tool"],
    "harness_core.tools.spec": ["tool"],
    "harness_core.verdicts": [
        "Ask",
        "Compress",
        "Continue",
        "Deny",
        "HookReject",
        "Inject",
        "Observe",
        "Rewrite",
        "Stop",
    ],
}
_EVENTS = [
    "Prompted",
    "PromptAmended",
    "PromptHeard",
    "RunStart",
    "ContextSize",
    "ReasonStart",
    "ReasonDelta",
    "ReasonEnd",
    "ModelFailed",
    "Inspected",
    "HookRuled",
    "HITLPending",
    "HITLVoted",
    "HITLSubmitted",
    "HITLDecided",
    "RuleChanged",
    "PolicyInForce",
    "ActionStart",
    "ToolCallStart",
    "ToolCallEnd",
    "ActionEnd",
    "ContextCompressed",
    "StopRequested",
    "RunEnd",
]
_MODULE_OF = {name: module for module, names in {**_WHERE, "harness_core.events": _EVENTS}.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
