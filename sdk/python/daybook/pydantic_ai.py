"""Pydantic AI on the journal: model requests and tool calls are effects of the session.

::

    from daybook import agent, run
    from daybook.pydantic_ai import DaybookAgent

    assistant = DaybookAgent(pydantic_ai.Agent("openai:gpt-5", tools=[search]))

    @agent("assistant", version=1)
    async def main(ctx, question: str) -> dict:
        return {"answer": (await assistant.run(ctx, question)).output}

After a crash the agent's run begins again, and each request and call that the journal has is answered from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pydantic_ai
from pydantic_ai import ModelRetry
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from ._context import Context
from ._errors import StepError

#: What differs between a run and its replay, and says nothing about the request.
_VOLATILE = ("timestamp", "run_id", "conversation_id")


class DaybookAgent:
    """An agent of Pydantic AI whose effects are journaled. Everything else is as in Pydantic AI.

    ``critical`` are tools that are called at most once: if the process dies during the call, a person decides.
    """

    def __init__(self, agent: pydantic_ai.Agent[Any, Any], critical: Sequence[str] = ()) -> None:
        self.agent = agent
        self.critical = frozenset(critical)

    async def run(self, ctx: Context, prompt: Any = None, **options: Any) -> Any:
        """As ``Agent.run``."""
        chosen = options.pop("model", None) or self.agent.model
        if chosen is None:
            raise ValueError("the agent has no model; name it in Agent(…) or in run(…, model=…)")
        toolsets = [*self.agent.toolsets, *(options.pop("toolsets", None) or ())]
        tools = [_Toolset(toolset, ctx, self.critical) for toolset in toolsets]
        with self.agent.override(model=_Model(chosen, ctx), toolsets=tools, tools=[]):
            return await self.agent.run(prompt, **options)


class _Model(WrapperModel):
    def __init__(self, wrapped: Model | str, ctx: Context) -> None:
        super().__init__(wrapped)
        self._ctx = ctx

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        async def request(_: Any) -> Any:
            response = await self.wrapped.request(messages, model_settings, model_request_parameters)
            return ModelMessagesTypeAdapter.dump_python([response], mode="json")

        said = _lasting(ModelMessagesTypeAdapter.dump_python(list(messages), mode="json"))
        journaled = await self._ctx.step("model request", request, said)
        response = ModelMessagesTypeAdapter.validate_python(journaled)[0]
        assert isinstance(response, ModelResponse)
        return response


class _Toolset(WrapperToolset[Any]):
    def __init__(self, wrapped: AbstractToolset[Any], ctx: Context, critical: frozenset[str]) -> None:
        super().__init__(wrapped)
        self._daybook = ctx
        self._critical = critical

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        async def call(arguments: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, arguments, ctx, tool)

        try:
            return await self._daybook.step(f"tool {name}", call, tool_args, critical=name in self._critical)
        except StepError as error:
            if error.category != "ModelRetry":
                raise
            # The model is told what was wrong, and tries again.
            raise ModelRetry(str(error).removeprefix("ModelRetry: ")) from None


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(inner) for name, inner in value.items() if name not in _VOLATILE}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value
