#!/usr/bin/env python3
"""Kills a stack with a thousand sessions in flight and starts it again. No session may end FAILED: a restart starts the MCP
servers of all of them at once. README.md says what it shows.
"""

import argparse
import collections
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
import uuid

import soak

# Those with MCP servers, and an input of each.
AGENTS = {name: path for name, path, _ in soak.AGENTS if name != "checkup"}
EVENTS_AT_ONCE = 10
ENDED = ("SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "REJECTED")


def put(stack, details, sessions):
    """Puts the sessions' events and returns the agent of each session."""
    names = [name for _, name in zip(range(sessions), list(AGENTS) * sessions)]
    accepted = {}
    for first in range(0, sessions, EVENTS_AT_ONCE):
        some = names[first : first + EVENTS_AT_ONCE]
        bodies = [dict(details[name], dedupe_key=str(uuid.uuid4())) for name in some]
        event = {"Source": "manual-trigger", "DetailType": "execute-agent"}
        entries = [dict(event, Detail=json.dumps(body)) for body in bodies]
        answers = stack.aws("AWSEvents.PutEvents", {"Entries": entries})["Entries"]
        accepted.update((answer["EventId"], name) for answer, name in zip(answers, some))
    return accepted


def in_flight(stack, wanted, within_s):
    """Waits until so many sessions are at work, or their number falls, and returns it."""
    most, deadline = 0, time.monotonic() + within_s
    while time.monotonic() < deadline:
        at_work = health(stack)["load"]["at_work"]
        if at_work >= wanted or at_work < most:
            return at_work
        most = at_work
        time.sleep(0.1)
    return most


def health(stack):
    try:
        return stack.get("/healthz")
    except urllib.error.HTTPError as failing:
        return json.load(failing)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--daybook", required=True, help="the program")
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--within", type=float, default=1_800, help="seconds for the sessions to end")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="restart-"))
    library = soak.built(folder)
    stack = soak.Stack(asked.daybook, folder, soak.Faults(folder / "faults"), library)
    stack.start()
    details = {name: soak.detail(stack, name, path) for name, path in AGENTS.items()}
    accepted = put(stack, details, asked.sessions)
    answers = soak.Answers(stack)
    answers.start()
    for kill in range(asked.kills):
        at_work = in_flight(stack, asked.sessions * 9 // 10, 60)
        began = time.monotonic()
        stack.restart(signal.SIGKILL, 0)
        took = time.monotonic() - began
        print(f"kill {kill + 1}: {at_work} sessions were at work; ready again after {took:.1f} s", flush=True)
    deadline = time.monotonic() + asked.within
    while True:
        rest, listed = soak.unfinished(stack, accepted)
        if not rest or time.monotonic() > deadline:
            break
        print(f"{len(rest)} sessions have not ended", flush=True)
        time.sleep(10)
    outcomes = collections.Counter((agent, listed.get(id, {}).get("status")) for id, agent in accepted.items())
    for (agent, status), count in sorted(outcomes.items(), key=str):
        print(f"  {agent:10} {status} {count}")
    problems = []
    for id, agent in accepted.items():
        session = listed.get(id, {})
        if session.get("status") not in ENDED or session["status"] in soak.BAD:
            problems.append(f"{id} ({agent}) is {session.get('status')}: {session.get('error')}")
    stack.process.send_signal(signal.SIGTERM)
    stack.process.wait(soak.READY_WITHIN_S)
    for problem in problems[:100]:
        print("PROBLEM", problem)
    print(f"{len(accepted)} sessions, {len(problems)} problems")
    if problems:
        print(f"kept: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
