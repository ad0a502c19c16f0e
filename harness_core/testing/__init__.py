"""Stand-ins for tests: a clock, a model, tools, and builders of histories.  Shipped, since users test their agents too.

Nothing here sleeps or polls: what a test has to wait for is a milestone (`await model.asked.reach(2)`).
"""

from harness_core.testing.clock import NOON as NOON
from harness_core.testing.clock import FakeClock as FakeClock
from harness_core.testing.clock import Milestones as Milestones
from harness_core.testing.clock import Waitable as Waitable
from harness_core.testing.histories import ended as ended
from harness_core.testing.histories import history as history
from harness_core.testing.histories import pending as pending
from harness_core.testing.histories import reasoned as reasoned
from harness_core.testing.histories import submitted as submitted
from harness_core.testing.histories import task as task
from harness_core.testing.histories import tool_call as tool_call
from harness_core.testing.model import Attempts as Attempts
from harness_core.testing.model import Reply as Reply
from harness_core.testing.model import ScriptedModel as ScriptedModel
from harness_core.testing.model import call as call
from harness_core.testing.tool import ANY_ARGUMENTS as ANY_ARGUMENTS
from harness_core.testing.tool import RecordingTool as RecordingTool
from harness_core.testing.tool import ledger_runs as ledger_runs
from harness_core.testing.tool import misfit as misfit
from harness_core.testing.tool import tool_context as tool_context
