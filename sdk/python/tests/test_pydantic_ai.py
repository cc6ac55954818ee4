"""Tests of daybook.pydantic_ai with the real Pydantic AI: python sdk/python/tests/test_pydantic_ai.py"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import pydantic_ai
from pydantic_ai import ModelRetry
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from daybook import agent
from daybook.pydantic_ai import DaybookAgent
from daybook.testing import every_prefix, Script

DONE = []


def model(messages, info):
    DONE.append("request")
    turn = sum(message.kind == "response" for message in messages)
    if turn == 0:
        return ModelResponse(parts=[ToolCallPart("search", {"query": "tea"}), ToolCallPart("search", {"query": "milk"})])
    if turn == 1:
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": -1})])
    if turn == 2:
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5})])
    returned = [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]
    return ModelResponse(parts=[TextPart(", ".join(returned))])


inner = pydantic_ai.Agent(FunctionModel(model), retries=2)


@inner.tool_plain
def search(query: str) -> str:
    """Searches."""
    DONE.append(f"search {query}")
    return f"found {query}"


@inner.tool_plain
def pay(amount: int) -> str:
    """Pays."""
    DONE.append(f"pay {amount}")
    if amount < 0:
        raise ModelRetry("the amount is negative")
    return f"paid {amount}"


assistant = DaybookAgent(inner, critical=["pay"])


@agent("assistant", version=1)
async def main(ctx, question: str) -> dict:
    return {"answer": (await assistant.run(ctx, question)).output}


def test_it_resumes_from_every_prefix_and_repeats_nothing():
    script = Script(main, {"question": "tea?"})
    expected = {"answer": "found tea, found milk, the amount is negative, paid 5"}
    assert every_prefix(script) == expected
    DONE.clear()
    script.run()
    whole, done = list(script.journal), list(DONE)
    assert sorted(done) == sorted(["request"] * 4 + ["search tea", "search milk", "pay -1", "pay 5"]), done
    DONE.clear()
    assert script.run(whole) == expected and DONE == [], DONE


if __name__ == "__main__":
    test_it_resumes_from_every_prefix_and_repeats_nothing()
    print("ok")
