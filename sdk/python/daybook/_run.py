"""Runs an agent for a host: the protocol over stdin and stdout."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from ._agent import Agent
from ._context import Context, Later, _HERE
from ._errors import DaybookError, Stopped, error_of
from ._json import checked, dumps

PROTOCOL = 1
KIT = "python/0.1.0"


class Pipe:
    """The host at the other end of two pipes."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        #: The highest ordinal in the journal.
        self.replay = 0
        self._reader = reader
        self._writer = writer
        self._newest = 0
        self._open: dict[int, Later] = {}
        self._results: dict[int, Any] = {}
        #: Tasks that wait, by ordinal, and the next ordinal that may be handed out.
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def write(self, *frames: dict[str, Any]) -> None:
        try:
            self._writer.write("".join(dumps(frame) + "\n" for frame in frames).encode("utf-8"))
            self._writer.flush()
        except BrokenPipeError:
            raise Stopped from None

    def has_next(self) -> bool:
        return self._newest < self.replay

    def read(self) -> dict[str, Any]:
        line = self._reader.readline()
        if not line:
            raise Stopped
        return dict(json.loads(line))

    def perform(self, laters: Sequence[Later]) -> list[Any]:
        ordinals = self.request(laters)
        while any(ordinal not in self._results for ordinal in ordinals):
            self.serve(self.read())
        return [self._results.pop(ordinal) for ordinal in ordinals]

    def request(self, laters: Sequence[Later]) -> list[int]:
        """Sends effects. Returns their ordinals."""
        frames, ordinals = [], []
        for later in laters:
            self._newest += 1
            self._open[self._newest] = later
            ordinals.append(self._newest)
            frames.append({"type": "effect", "ordinal": self._newest, **later.frame})
        if frames:
            self.write(*frames)
        return ordinals

    def serve(self, frame: dict[str, Any]) -> None:
        """Takes a frame of the host."""
        ordinal = frame.get("ordinal", 0)
        if frame["type"] == "run":
            self.work(ordinal)
        elif frame["type"] == "result":
            later = self._open.pop(ordinal)
            if "error" in frame:
                error = frame["error"]
                self._results[ordinal] = error_of(error.get("kind", ""), later.frame["kind"], error)
            else:
                self._results[ordinal] = later.convert(frame.get("ok"), ordinal)

    def work(self, ordinal: int) -> None:
        """Performs the agent's own work for an effect."""
        later = self._open[ordinal]
        try:
            value = later.work() if later.work else None
            if asyncio.iscoroutine(value):
                value = asyncio.run(value)
            value = checked(value, f"the result of `{later.frame.get('name', 'the policy')}`")
            self.write({"type": "performed", "ordinal": ordinal, "ok": value})
        except Exception as error:
            self.failed(ordinal, error)

    def failed(self, ordinal: int, error: Exception) -> None:
        traceback.print_exc(file=sys.stderr)
        raised = {"type": type(error).__name__, "message": str(error)}
        self.write({"type": "performed", "ordinal": ordinal, "error": raised})

    # Concurrent tasks: results reach them in the order of ordinals, one at a time, each when no task can run.

    async def awaited(self, later: Later) -> Any:
        return (await self.gathered([later]))[0]

    async def gathered(self, laters: Sequence[Later]) -> list[Any]:
        loop = asyncio.get_running_loop()
        futures = []
        for ordinal in self.request(laters):
            self._waiting[ordinal] = loop.create_future()
            futures.append(self._waiting[ordinal])
        results = [await future for future in futures]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    async def pump(self, main: asyncio.Task[Any]) -> None:
        """Hands out results until the agent's function has returned."""
        loop = asyncio.get_running_loop()
        while not main.done():
            await _settled(loop)
            if main.done():
                return
            if not self._waiting:
                # The function awaits something that is no effect.
                await asyncio.sleep(0.001)
                continue
            lowest = min(self._waiting)
            if lowest in self._results:
                self._waiting.pop(lowest).set_result(self._results.pop(lowest))
                continue
            frame = await loop.run_in_executor(None, self.read)
            if frame["type"] == "run":
                await self.work_async(frame["ordinal"])
            else:
                self.serve(frame)

    async def work_async(self, ordinal: int) -> None:
        later = self._open[ordinal]
        try:
            value = later.work() if later.work else None
            if asyncio.iscoroutine(value):
                value = await value
            value = checked(value, f"the result of `{later.frame.get('name', 'the policy')}`")
            self.write({"type": "performed", "ordinal": ordinal, "ok": value})
        except Exception as error:
            self.failed(ordinal, error)


async def _settled(loop: Any) -> None:
    """Waits until no other task can run."""
    ready = getattr(loop, "_ready", None)
    for _ in range(10_000):
        await asyncio.sleep(0)
        if not ready:
            return


def called(agent: Agent, host: Any, session: str, given: dict[str, Any]) -> Any:
    """Calls an agent's function with this host."""
    context = Context(host, session, agent.is_async)
    arguments = agent.arguments(given)
    if not agent.is_async:
        return agent.function(context, **arguments)

    async def main() -> Any:
        task = asyncio.ensure_future(agent.function(context, **arguments))
        pump = asyncio.ensure_future(host.pump(task))
        await asyncio.wait({task, pump}, return_when=asyncio.FIRST_COMPLETED)
        if pump.done() and not task.done():
            task.cancel()
            pump.result()
        await pump
        return task.result()

    return asyncio.run(main())


def run(agent: Agent) -> None:
    """Runs an agent for the host that started this program. Call it in ``__main__``."""
    if os.environ.get("DAYBOOK_PROTOCOL") is None and sys.stdin.isatty():
        print(
            f"This program is the agent `{agent.name}`; a host starts it.\n"
            "hint: name it in daybook.toml, then run `daybook dev`",
            file=sys.stderr,
        )
        raise SystemExit(64)
    # stdout is the host's: what the agent prints goes to stderr, its log.
    writer = os.fdopen(os.dup(1), "wb")
    reader = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        serve(agent, reader, writer)
    except Stopped:
        raise SystemExit(0) from None


def serve(agent: Agent, reader: BinaryIO, writer: BinaryIO) -> None:
    """Serves one host."""
    pipe = Pipe(reader, writer)
    first = pipe.read()
    pipe.write({"type": "hello", "protocol": PROTOCOL, "kit": KIT})
    if first.get("protocol") != PROTOCOL:
        return
    if first["type"] == "describe":
        pipe.write(agent.description())
        return
    pipe.replay = first.get("replay", 0)
    pipe.write(ended(lambda: called(agent, pipe, first["session"], first["input"])))


def ended(call: Callable[[], Any]) -> dict[str, Any]:
    """The frame `end` for what the agent's function returns or raises."""
    try:
        return {"type": "end", "result": checked(call(), "the result")}
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        kind = type(error).__name__
        raised = {"type": kind, "message": str(error)}
        if isinstance(error, DaybookError) and not str(error):
            raised["message"] = error.kind
        lines = [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(frame.filename) != _HERE]
        if lines:
            raised["at"] = f"{os.path.basename(lines[-1].filename)}:{lines[-1].lineno}"
        return {"type": "end", "error": raised}
