#!/usr/bin/env python3
"""Runs sessions of all agents for hours on one `daybook dev` that is killed, stopped, and given wrong clocks, full disks
and slow disks, and then checks that nothing is lost. README.md says what it shows.
"""

import argparse
import collections
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# An input of each shipped agent, and its share of the sessions. Incidents have a rate limit of their own.
AGENTS = [
    ("checkup", None, 6),
    ("fraud", "packs/fraud/transactions/account-takeover.json", 3),
    ("network", "packs/network/networks/mtu-mismatch", 3),
    ("assistant", None, 3),
    ("incident", "packs/incident/incidents/network-blocked", 1),
]
INCIDENTS_PER_HOUR = 1_000
# Statuses that the stack's own mishaps must not cause.
BAD = ("FAILED", "TIMED_OUT")
READY_WITHIN_S = 120
DRAIN_WITHIN_S = 1800


class Faults:
    """What faults.c does to the stack: three numbers in a file that it maps."""

    def __init__(self, path):
        path.write_bytes(bytes(24))
        self.path = path
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 24)
        self.clock_ns, self.is_full, self.slow_ms = 0, 0, 0

    def set(self, **values):
        for name, value in values.items():
            setattr(self, name, value)
        self.map[:] = struct.pack("<qqq", self.clock_ns, self.is_full, self.slow_ms)


class Stack:
    """One data folder and its `daybook dev`, again and again."""

    def __init__(self, daybook, folder, faults, library):
        self.daybook, self.folder, self.faults, self.library = daybook, folder, faults, library
        self.process, self.endpoint, self.restarts = None, None, 0

    def start(self):
        env = dict(os.environ, LD_PRELOAD=str(self.library), SOAK_FAULTS=str(self.faults.path))
        env["MAX_INCIDENTS_PER_HOUR"] = str(INCIDENTS_PER_HOUR)
        env["DAYBOOK_KEYS"] = str(self.folder / "keys")
        listen = self.endpoint.removeprefix("http://") if self.endpoint else "127.0.0.1:0"
        command = [self.daybook, "--data", str(self.folder / "data"), "dev", "--listen", listen]
        log = (self.folder / "stack.log").open("ab")
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode().split()
        if line[:1] != ["ready"]:
            raise SystemExit(f"the stack did not start: exit {self.process.wait()}; see {log.name}")
        self.endpoint = line[1]

    def restart(self, sig, pause_s):
        self.process.send_signal(sig)
        try:
            self.process.wait(READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"the stack did not end within {READY_WITHIN_S} s of {sig.name}") from None
        time.sleep(pause_s)
        self.restarts += 1
        self.start()

    def run(self, *arguments):
        command = [self.daybook, "--data", str(self.folder / "data"), *arguments]
        env = dict(os.environ, DAYBOOK_KEYS=str(self.folder / "keys"))
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    def post(self, path, body, **headers):
        request = urllib.request.Request(self.endpoint + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def aws(self, target, body):
        headers = {"x-amz-target": target, "content-type": "application/x-amz-json-1.1"}
        return self.post("/", body, **headers)

    def get(self, path):
        with urllib.request.urlopen(self.endpoint + path, timeout=60) as answer:
            return json.load(answer)

    def vitals(self):
        """Resident memory in MiB, open files, and the size of the data folder in MiB."""
        pid = self.process.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
        files = len(os.listdir(f"/proc/{pid}/fd"))
        size = 0
        for path in (self.folder / "data").rglob("*"):
            try:
                size += path.stat().st_size
            except FileNotFoundError:
                pass
        return resident, files, size / 2**20


def detail(stack, agent, path):
    """The detail that `daybook trigger` makes of an input."""
    arguments = ["--endpoint", stack.endpoint, "trigger", "--agent", agent]
    triggered = stack.run(*arguments, *(["--input", path] if path else []))
    session = [word for word in triggered.stdout.split() if len(word) == 36 and word.count("-") == 4]
    if not session:
        raise SystemExit(f"{agent} cannot be triggered: {triggered.stderr}{triggered.stdout}")
    arn = f"arn:aws:states:us-east-1:000000000000:execution:daybook:{session[0]}"
    execution = stack.aws("AWSStepFunctions.DescribeExecution", {"executionArn": arn})
    return json.loads(execution["input"])["detail"]


class Load(threading.Thread):
    """Puts events at a rate. What was accepted is remembered; what was refused or not answered is not."""

    def __init__(self, stack, details, rate, seed):
        super().__init__(daemon=True)
        self.stack, self.details, self.rate = stack, details, rate
        self.random = random.Random(seed)
        self.accepted, self.refused, self.unanswered, self.incidents = {}, 0, 0, 0
        self.stop = threading.Event()

    def run(self):
        names = [name for name, _, share in AGENTS for _ in range(share)]
        due = began = time.monotonic()
        while not self.stop.is_set():
            due = max(due + 1 / self.rate, time.monotonic() - 5)
            self.stop.wait(max(0, due - time.monotonic()))
            agent = self.random.choice(names)
            # Below the agent's rate limit, by any clock.
            allowed = 50 + (time.monotonic() - began) / 3600 * INCIDENTS_PER_HOUR / 2
            if agent == "incident" and self.incidents > allowed:
                agent = "checkup"
            self.put(agent)

    def put(self, agent):
        self.incidents += agent == "incident"
        body = dict(self.details[agent], dedupe_key=str(uuid.uuid4()))
        entry = {"Source": "manual-trigger", "DetailType": "execute-agent", "Detail": json.dumps(body)}
        try:
            answer = self.stack.aws("AWSEvents.PutEvents", {"Entries": [entry]})["Entries"][0]
        except (OSError, ValueError):
            self.unanswered += 1
            return
        if "EventId" in answer:
            self.accepted[answer["EventId"]] = agent
        else:
            self.refused += 1


class Answers(threading.Thread):
    """Answers each question once it is listed: says something to the assistant, then rejects what it asks."""

    def __init__(self, stack):
        super().__init__(daemon=True)
        self.stack, self.given, self.late = stack, 0, 0
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(1):
            try:
                listed = self.stack.get("/api/sessions?status=WAITING&limit=200")
            except (OSError, ValueError):
                continue
            for session in listed["sessions"]:
                self.answer(session)

    def answer(self, session):
        question = session.get("open_question")
        if not question:
            return
        if "approve" in question.get("choices", []):
            said = {"decision": "reject", "reason": "not now"}
        else:
            said = {"decision": "say", "text": "exit"}
        said["question_id"] = question["question_id"]
        try:
            self.stack.post(f"/api/sessions/{session['session_id']}/answer", said, **{"content-type": "application/json"})
            self.given += 1
        except urllib.error.HTTPError as error:
            error.close()
            self.late += 1
        except (OSError, ValueError):
            pass


def fault(stack, faults, chance):
    """One random fault, and its name."""
    kind = chance.choice(["kill", "kill", "stop", "term", "forward", "back", "full", "slow"])
    if kind == "kill":
        stack.restart(signal.SIGKILL, chance.uniform(0, 5))
    elif kind == "term":
        stack.restart(signal.SIGTERM, chance.uniform(0, 5))
    elif kind == "stop":
        stack.process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(1, 30))
        stack.process.send_signal(signal.SIGCONT)
    elif kind in ("forward", "back"):
        step = chance.uniform(1, 3600) * (1 if kind == "forward" else -1)
        faults.set(clock_ns=int(step * 1e9))
        time.sleep(chance.uniform(5, 40))
        if chance.random() < 0.5:
            stack.restart(signal.SIGKILL, 0)
        faults.set(clock_ns=0)
    elif kind == "full":
        faults.set(is_full=1)
        time.sleep(chance.uniform(2, 20))
        faults.set(is_full=0)
    elif kind == "slow":
        faults.set(slow_ms=int(chance.uniform(20, 400)))
        time.sleep(chance.uniform(5, 30))
        faults.set(slow_ms=0)
    return kind


def summaries(stack):
    """All listed sessions by id."""
    found, cursor = {}, None
    while True:
        after = f"&after={cursor}" if cursor else ""
        page = stack.get(f"/api/sessions?limit=200{after}")
        for session in page["sessions"]:
            found[session["session_id"]] = session
        cursor = page["more"]
        if not cursor:
            return found


def unfinished(stack, accepted):
    ended = ("SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELLED", "REJECTED")
    listed = summaries(stack)
    return [id for id in accepted if listed.get(id, {}).get("status") not in ended], listed


def judge(stack, load, answers, vitals, faults_made, out):
    """Waits for the last sessions and names what is wrong. Returns the number of problems."""
    deadline = time.monotonic() + DRAIN_WITHIN_S
    while True:
        rest, listed = unfinished(stack, load.accepted)
        if not rest or time.monotonic() > deadline:
            break
        time.sleep(5)
    problems = []
    for id in rest:
        status = listed.get(id, {}).get("status", "not listed")
        problems.append(f"{id} ({load.accepted[id]}) did not end: {status}")
    outcomes = collections.Counter()
    for id, agent in load.accepted.items():
        session = listed.get(id)
        if session is None:
            continue
        outcomes[agent, session["status"]] += 1
        if session["status"] in BAD:
            problems.append(f"{id} ({agent}) is {session['status']}: {session.get('error')}")
    stack.process.send_signal(signal.SIGTERM)
    stack.process.wait(READY_WITHIN_S)
    verified = stack.run("verify", "--all")
    if verified.returncode != 0:
        problems.append(f"verify --all exits {verified.returncode}: {verified.stdout[-2000:]}{verified.stderr[-500:]}")
    print(f"accepted {len(load.accepted)}, refused {load.refused}, unanswered {load.unanswered}", file=out)
    print(f"answers given {answers.given}, refused {answers.late}; restarts {stack.restarts}", file=out)
    print("faults:", ", ".join(f"{count} {kind}" for kind, count in sorted(faults_made.items())), file=out)
    for (agent, status), count in sorted(outcomes.items()):
        print(f"  {agent:10} {status:10} {count}", file=out)
    print("minute  MiB resident  open files  MiB on disk", file=out)
    for minute, resident, files, size in vitals[:: max(1, len(vitals) // 24)]:
        print(f"{minute:6.0f}  {resident:12.1f}  {files:10}  {size:11.1f}", file=out)
    for problem in problems[:100]:
        print("PROBLEM", problem, file=out)
    print(f"{len(problems)} problems", file=out)
    return len(problems)


def built(folder):
    """The library that makes the faults."""
    library = folder / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    return library


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--daybook", required=True, help="the program")
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--rate", type=float, default=20, help="sessions a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=30, help="mean seconds between faults")
    asked = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-"))
    library = built(folder)
    faults = Faults(folder / "faults")
    stack = Stack(asked.daybook, folder, faults, library)
    print(f"in {folder}", flush=True)
    stack.start()
    details = {name: detail(stack, name, path) for name, path, _ in AGENTS}
    load, answers = Load(stack, details, asked.rate, asked.seed), Answers(stack)
    load.start()
    answers.start()
    chance, made, vitals = random.Random(asked.seed), collections.Counter(), []
    began = time.monotonic()
    while (passed := time.monotonic() - began) < asked.hours * 3600:
        time.sleep(chance.expovariate(1 / asked.pause))
        vitals.append((passed / 60, *stack.vitals()))
        kind = fault(stack, faults, chance)
        made[kind] += 1
        waiting = len(load.accepted)
        print(f"{passed:7.0f} s  {waiting} accepted  {kind}", flush=True)
    load.stop.set()
    load.join()
    problems = judge(stack, load, answers, vitals, made, sys.stdout)
    if problems == 0:
        shutil.rmtree(folder)
    else:
        print(f"kept: {folder}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
