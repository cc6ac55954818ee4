"""The kit without a host: vectors of the protocol, schemas, scripts, and the pipe."""

import asyncio
import dataclasses
import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from daybook import Context, DaybookError, PayloadTooLarge, Rejected, StepError, ToolError, Unknown, agent  # noqa: E402
from daybook._json import checked, identity, plain  # noqa: E402
from daybook._run import serve  # noqa: E402
from daybook.testing import Diverged, Script, every_prefix  # noqa: E402

VECTORS = Path(__file__).parent.parent.parent / "protocol-vectors.json"


@agent("release-notes", version=1, critical=["fs.write_file"], servers=["repo", "fs"], title="Since {since}")
def release_notes(ctx: Context, since: str, out: str = "a.md") -> dict:
    """Writes release notes."""
    commits = ctx.tool("repo", "commits", since=since)
    details = ctx.gather(*(ctx.tool.later("repo", "commit", id=c["id"]) for c in commits))
    notes = ctx.chat("Write release notes.", context=details)
    ctx.tool("fs", "write_file", path=out, text=notes.text)
    return {"report": notes.text, "at": ctx.now().isoformat(), "luck": ctx.random(), "id": ctx.uuid()}


def scripted() -> Script:
    script = Script(release_notes, {"since": "v1"})
    script.tool("repo.commits", [{"id": "a"}, {"id": "b"}])
    script.tool("repo.commit", lambda arguments: {"text": "change " + arguments["id"]})
    script.tool("fs.write_file", {"written": True})
    return script.chat("Two changes.")


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Kit(unittest.TestCase):
    def test_digests_match_the_vectors_of_the_protocol(self) -> None:
        for vector in json.loads(VECTORS.read_text("utf-8")):
            self.assertEqual(identity(vector["effect"]), (vector["canonical"], vector["digest"]))

    def test_an_agent_reaches_the_same_end_from_every_prefix(self) -> None:
        script = scripted()
        self.assertEqual(every_prefix(script)["report"], "Two changes.")

    def test_an_agent_that_asks_for_something_else_diverges(self) -> None:
        script = scripted()
        script.run()
        journal = list(script.journal)
        script.given = {"since": "v2"}
        with self.assertRaises(Diverged):
            script.run(journal)

    def test_a_description_has_schemas_from_annotations(self) -> None:
        @agent("points", version=2)
        def points(ctx: Context, points: list[Point], name: str | None = None) -> Point:
            self.assertIsInstance(points[0], Point)
            return points[0]

        described = points.description()
        item = described["input_schema"]["properties"]["points"]["items"]
        self.assertEqual(item["required"], ["x"])
        self.assertEqual(described["input_schema"]["required"], ["points"])
        self.assertEqual(described["version"], "2")
        self.assertEqual(Script(points, {"points": [{"x": 1}]}).run(), {"x": 1, "y": 0.5})

    def test_errors_of_effects_are_raised_and_can_be_caught(self) -> None:
        def fails() -> None:
            raise ValueError("no")

        @agent("catcher", version=1)
        def catcher(ctx: Context) -> list:
            seen = []
            try:
                ctx.step("fails", fails)
            except StepError as error:
                seen.append(error.category)
            try:
                ctx.tool("a", "b")
            except ToolError as error:
                seen.append(str(error))
            try:
                ctx.tool("a", "c")
            except Rejected:
                seen.append("rejected")
            return seen

        script = Script(catcher).tool("a.b", ToolError("broken")).tool("a.c", Rejected("no", "rejected"))
        self.assertEqual(every_prefix(script), ["ValueError", "broken", "rejected"])

    def test_a_script_raises_what_the_host_would(self) -> None:
        @agent("caller", version=1)
        def caller(ctx: Context) -> dict:
            found = []
            for _ in range(3):
                try:
                    found.append(ctx.tool("bank", "pay"))
                except (Rejected, Unknown) as error:
                    found.append(type(error).__name__)
            return {"found": found}

        script = Script(caller).tool("bank.pay", Rejected("not today")).tool("bank.pay", Unknown("lost"), "paid")
        self.assertEqual(every_prefix(script), {"found": ["Rejected", "Unknown", "paid"]})

    def test_concurrent_tasks_replay_in_the_same_order(self) -> None:
        @agent("tasks", version=1)
        async def tasks(ctx: Context) -> list:
            async def chain(name: str, length: int) -> list:
                return [await ctx.tool("t", "call", name=name, n=n) for n in range(length)]

            return list(await asyncio.gather(chain("a", 5), chain("b", 3), chain("c", 4)))

        script = Script(tasks).tool("t.call", lambda arguments: arguments["n"])
        self.assertEqual(every_prefix(script)[0], [0, 1, 2, 3, 4])

    def test_a_tool_loop_calls_what_the_model_asks_for(self) -> None:
        @agent("loop", version=1, servers=["repo"])
        def loop(ctx: Context) -> str:
            return ctx.run_tools("How many?", ["repo"]).text

        call = {"id": "1", "server": "repo", "tool": "count", "arguments": {}}
        tools = {"tools": [{"server": "repo", "name": "count", "description": "", "input_schema": {}}]}
        script = Script(loop).tool("repo.tools/list", tools).tool("repo.count", 3)
        script.chat({"calls": [call]}, "Three.")
        self.assertEqual(every_prefix(script), "Three.")

    def test_values_that_json_cannot_hold_are_refused(self) -> None:
        for value in (2**64, float("nan"), {1: 2}, {1, 2}, object()):
            with self.assertRaises((TypeError, ValueError)):
                plain(value)
        with self.assertRaises(PayloadTooLarge):
            checked("x" * 5_000_000, "the result")
        self.assertTrue(issubclass(PayloadTooLarge, DaybookError))

    def test_a_host_at_the_other_end_of_a_pipe_is_served(self) -> None:
        @agent("piped", version=1)
        def piped(ctx: Context, n: int) -> int:
            return ctx.step("double", lambda: 2 * n)

        (to_read, to_write), (from_read, from_write) = os.pipe(), os.pipe()
        host = os.fdopen(to_write, "wb")
        start = {"type": "start", "protocol": 1, "session": "s", "agent": "piped", "version": "1", "input": {"n": 4}}
        frames = [start, {"type": "run", "ordinal": 1}, {"type": "result", "ordinal": 1, "ok": 8}]
        host.write("".join(json.dumps(frame) + "\n" for frame in frames).encode())
        host.flush()
        with os.fdopen(to_read, "rb") as reader, os.fdopen(from_write, "wb") as writer:
            serve(piped, reader, writer)
        with host, os.fdopen(from_read, "rb") as answers:
            said = [json.loads(line) for line in answers]
        self.assertEqual([frame["type"] for frame in said], ["hello", "effect", "performed", "end"])
        self.assertEqual(said[3]["result"], 8)
        self.assertRegex(said[1]["at"], r"^test_kit\.py:\d+$")


if __name__ == "__main__":
    unittest.main()
