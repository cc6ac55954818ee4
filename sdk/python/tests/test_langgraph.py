"""Tests of daybook.langgraph with the real LangGraph: python sdk/python/tests/test_langgraph.py"""

import operator
import os
import sys
from typing import Annotated, TypedDict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from daybook import agent
from daybook.langgraph import JournalSaver, invoke
from daybook.testing import Script

RAN = []


class State(TypedDict):
    topic: str
    found: Annotated[list, operator.add]
    approved: str
    rounds: int


def branch(name):
    def node(state):
        RAN.append(name)
        return {"found": [f"{name} of {state['topic']}"]}

    return node


def review(state):
    RAN.append("review")
    return {"approved": interrupt({"question": f"Publish {len(state['found'])} findings?", "choices": ["approve", "reject"]})}


def think(state):
    RAN.append("think")
    return {"rounds": state.get("rounds", 0) + 1}


def builder():
    graph = StateGraph(State)
    for name in ("news", "papers", "forums"):
        graph.add_node(name, branch(name))
        graph.add_edge(START, name)
        graph.add_edge(name, "think")
    graph.add_node("think", think)
    graph.add_node("review", review)
    graph.add_conditional_edges("think", lambda state: "think" if state["rounds"] < 3 else "review")
    graph.add_edge("review", END)
    return graph


@agent("research", version=1)
def research(ctx, topic: str) -> dict:
    graph = builder().compile(checkpointer=JournalSaver(ctx))
    state = invoke(ctx, graph, {"topic": topic})
    return {"found": sorted(state["found"]), "approved": state["approved"], "rounds": state["rounds"]}


@agent("briefing", version=1)
def briefing(ctx, topic: str) -> dict:
    """Has effects of its own before and after the graph."""
    topic = ctx.step("choose", lambda: f"green {topic}")
    graph = builder().compile(checkpointer=JournalSaver(ctx))
    ctx.note("the graph begins")
    state = invoke(ctx, graph, {"topic": topic})
    sent = ctx.step("send", lambda: len(state["found"]))
    return {"approved": state["approved"], "sent": sent, "at": str(ctx.now())}


def test_effects_before_and_after_the_graph_go_on_from_every_prefix():
    script = Script(briefing, {"topic": "tea"}).answer("approve")
    expected = script.run()
    whole = list(script.journal)
    assert (expected["approved"], expected["sent"]) == ("approve", 3), expected
    assert [it.effect.get("name") for it in whole[:2] + whole[-2:]] == ["choose", None, "send", None]
    for length in range(len(whole) + 1):
        RAN.clear()
        result = script.run(whole[:length])
        # A later end of the graph is another time.
        assert {**result, "at": ""} == {**expected, "at": ""}, length
        if length >= len(whole) - 2:
            assert RAN == [] and result == expected, (length, RAN)


def test_it_goes_on_from_every_prefix():
    script = Script(research, {"topic": "tea"}).answer("approve")
    expected = {
        "found": ["forums of tea", "news of tea", "papers of tea"],
        "approved": "approve",
        "rounds": 3,
    }
    assert script.run() == expected
    whole, ran = list(script.journal), list(RAN)
    assert sorted(ran) == ["forums", "news", "papers", "review", "review", "think", "think", "think"], ran
    for length in range(len(whole) + 1):
        RAN.clear()
        assert script.run(whole[:length]) == expected, length
        assert len(RAN) <= len(ran), (length, RAN)
        if length == len(whole):
            assert RAN == [], RAN


if __name__ == "__main__":
    test_it_goes_on_from_every_prefix()
    test_effects_before_and_after_the_graph_go_on_from_every_prefix()
    print("ok")
