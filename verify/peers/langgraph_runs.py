"""Ten durable steps a run with LangGraph and its SQLite saver, each checkpoint written before the next step.

    python langgraph_runs.py SECONDS FOLDER

Prints one JSON line: how many runs a second, one after the other. The saver holds one connection and one lock, so
more runs at once are no faster.
"""

import json
import sqlite3
import sys
import time
import uuid
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

STEPS = 10
OUTCOME = "x" * 300


class State(TypedDict):
    outcome: str


def graph(saver):
    steps = StateGraph(State)
    for step in range(STEPS):
        steps.add_node(f"step{step}", lambda state: {"outcome": OUTCOME})
        steps.add_edge(START if step == 0 else f"step{step - 1}", f"step{step}")
    steps.add_edge(f"step{STEPS - 1}", END)
    return steps.compile(checkpointer=saver)


def main():
    seconds, folder = float(sys.argv[1]), sys.argv[2]
    # As from_conn_string opens it: WAL, which the saver sets itself.
    connection = sqlite3.connect(f"{folder}/langgraph.db", check_same_thread=False)
    # SQLite's own default, said aloud: a commit is on the disk before the next step.
    connection.execute("PRAGMA synchronous=FULL")
    runs = graph(SqliteSaver(connection))
    began, done = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
        runs.invoke({"outcome": ""}, thread, durability="sync")
        done += 1
    rate = done / (time.monotonic() - began)
    print(json.dumps({"what": "LangGraph, SqliteSaver", "at_once": 1, "per_second": rate}))


main()
