"""The program of the suite that every kit passes; `it.mjs` is the same in JavaScript."""

import os
import sys
import time

from daybook import Context, StepError, agent, run

# Found before the kit moves it.
HOST = os.dup(1)


@agent("it", version=1)
def it(ctx: Context, case: str, log: str, count: int = 0) -> dict:
    def did(line):
        with open(log, "a") as file:
            file.write(f"{line}\n")

    def work(n):
        did(f"work {n}")
        return {"n": n, "half": n / 2}

    def fail():
        did("fail")
        raise ValueError("no such thing")

    def hang(seconds):
        did(f"pid {os.getpid()}")
        time.sleep(seconds)

    def slow(seconds):
        hang(seconds)
        return "yes"

    if case == "everything":
        first = ctx.step("first", work, 1)
        both = ctx.gather(ctx.step.later("second", work, 2), ctx.step.later("third", work, 3))
        try:
            caught = ctx.step("fails", fail)
        except StepError as error:
            caught = str(error)
        reply = ctx.chat("Say hello.", context=both, policy=lambda messages: "hello")
        ctx.note("halfway", seen=2)
        at, luck, uid = ctx.now(), ctx.random(), ctx.uuid()
        answer = ctx.ask("Go on?", choices=["approve", "reject"])
        ctx.sleep(0.01)
        last = ctx.step("last", work, 4, critical=True)
        assert at.year > 2000 and 0 <= luck < 1
        said = [first, both, caught, reply.text, answer["decision"], last]
        return {"said": said, "uid": uid}
    if case == "count":
        return {"sum": sum(ctx.step("n", lambda i: i, i) for i in range(count))}
    if case == "gather":
        found = ctx.gather(*(ctx.step.later("n", lambda i: i, i) for i in range(count)))
        return {"found": found}
    if case == "large":
        return {"length": len(ctx.step("large", lambda: "x" * count))}
    if case == "chats":
        for _ in range(count):
            ctx.chat("Say hello.", policy=lambda messages: "hello")
        return {}
    if case == "critical":
        done = ctx.step("slow", slow, count, critical=True)
        return {"done": done}
    if case == "hang in a step":
        ctx.step("hang", hang, count)
        ctx.step("after", work, 1)
        return {}
    ctx.step("before", work, 1)
    if case == "exit":
        print("the end is near", file=sys.stderr, flush=True)
        os._exit(3)
    if case == "hang":
        time.sleep(600)
    if case == "garbage":
        os.write(HOST, b"hello\n")
        time.sleep(600)
    if case == "flood":
        os.write(HOST, b"x" * 5_000_000)
        time.sleep(600)
    if case == "fork":
        if os.fork() == 0:
            did(f"pid {os.getpid()}")
            time.sleep(600)
        while not any(line.startswith("pid") for line in open(log)):
            time.sleep(0.01)
        os._exit(4)
    raise ValueError(f"no such case: {case}")


if __name__ == "__main__":
    run(it)
