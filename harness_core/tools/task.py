"""The tool that hands work to a sub-agent.  What it says of itself names the agents; the engine carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from harness_core.agents import TASK, Agent
from harness_core.errors import ToolFailed
from harness_core.tools.clip import short
from harness_core.tools.spec import FunctionTool, tool

PROMPT_CHARS: Final = 20_000  # of what is handed over

_ABOUT: Final = """\
Hand a piece of work to another agent, and get its answer. It has its own tools and sees nothing of this conversation, \
so the prompt must say all that it needs, and what to answer. The agents:
{agents}
agent: the name of the agent
prompt: what it is to do"""


def task_tool(agents: Sequence[Agent]) -> FunctionTool:
    """The tool for these agents, of which there must be one or more. The same agents give the same bytes.

    A call of it runs unasked unless a rule says otherwise, since each call of the agent is judged by itself. Rules and
    the sensitive mark know it as `task`.
    """
    names = [agent.name for agent in agents]

    def known(name: str) -> str:
        if name not in names:
            raise ValueError(f"there is no agent “{short(name)}”; there are: {', '.join(names)}")
        return name

    def said(prompt: str) -> str:
        if not prompt.strip():
            raise ValueError("nothing is asked for")
        return prompt

    async def task(agent: str, prompt: str) -> str:
        raise ToolFailed("Nothing was done: whoever runs this tool by itself hands no work to agents.")

    listed = "\n".join(f"- {agent.name}: {agent.description}" for agent in agents)
    task.__doc__ = _ABOUT.format(agents=listed)
    which: Any = Annotated[str, AfterValidator(known), Field(json_schema_extra={"enum": [*names]})]
    what: Any = Annotated[str, Field(max_length=PROMPT_CHARS), AfterValidator(said)]
    task.__annotations__ = {"agent": which, "prompt": what, "return": str}  # the names are known only now
    return tool(name=TASK, read_only=True, repeatable=False, subject="agent")(task)
