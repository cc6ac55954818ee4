"""Runs agents in memory: no host, no model, no server.

A :class:`Script` says how the world answers::

    from daybook.testing import Script, every_prefix

    script = Script(release_notes, {"since": "v1"})
    script.tool("repo.commits", [{"id": "a"}])
    script.chat("Notes")
    assert script.run() == {"report": "Notes"}
    every_prefix(script)
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ._agent import Agent
from ._context import Later
from ._errors import Rejected, Unknown, error_of
from ._json import checked, identity
from ._run import called


#: The kinds of errors that a script raises without naming one.
_KINDS = {Rejected: "rejected", Unknown: "unknown"}


class Diverged(AssertionError):
    """In a replay the agent asked for another effect than before."""


class Cut(BaseException):
    """The script's run ends here, as if the process were killed."""


@dataclass
class Recorded:
    """An effect and its outcome, as a journal has them."""

    effect: dict[str, Any]
    digest: str
    outcome: dict[str, Any]


@dataclass
class Script:
    """An agent, its input, and how the world answers."""

    agent: Agent
    given: dict[str, Any] = field(default_factory=dict)
    session: str = "00000000-0000-4000-8000-000000000000"
    answers: dict[str, list[Any]] = field(default_factory=dict)
    #: The effects that the newest run performed, in order.
    performed: list[dict[str, Any]] = field(default_factory=list)
    #: What the newest run journaled.
    journal: list[Recorded] = field(default_factory=list)

    def tool(self, name: str, *answers: Any) -> Script:
        """The answers of ``server.tool``, in order, after those of earlier calls; the last one repeats. An exception is raised, a function gets the arguments."""
        return self._says(f"tool {name}", answers)

    def chat(self, *answers: Any) -> Script:
        """The model's replies: texts, or ``{"text", "calls"}``."""
        return self._says("chat chat", answers)

    def answer(self, *answers: Any) -> Script:
        """A person's answers: ``"approve"``, ``"reject"``, or ``{"decision", …}``."""
        return self._says("ask ask", answers)

    def _says(self, key: str, answers: Sequence[Any]) -> Script:
        self.answers.setdefault(key, []).extend(answers)
        return self

    def run(self, journal: Sequence[Recorded] = (), effects_max: int | None = None) -> Any:
        """Runs the agent on top of a journal, and returns its result.

        With ``effects_max`` the run is cut before it performs more effects than that.
        """
        self.performed, self.journal = [], list(journal)
        host = _Host(self, len(journal), effects_max)
        result = checked(called(self.agent, host, self.session, copy.deepcopy(self.given)), "the result")
        if host.newest < len(journal):
            raise Diverged(f"the journal has {len(journal)} effects, the agent asked for {host.newest}")
        return result


def every_prefix(script: Script) -> Any:
    """Runs the agent, then once from each prefix of its journal. Each must end with the same result.

    Returns the result. No effect of a prefix may be performed again, and no other effect may be asked for.
    """
    expected = script.run()
    whole = list(script.journal)
    for length in range(len(whole) + 1):
        result = script.run(whole[:length])
        if result != expected:
            raise AssertionError(f"after {length} effects: {result!r} instead of {expected!r}")
        if len(script.performed) != len(whole) - length:
            raise AssertionError(f"after {length} effects, {len(script.performed)} were performed")
    return expected


class _Host:
    def __init__(self, script: Script, recorded: int, effects_max: int | None) -> None:
        self.script = script
        self.recorded = recorded
        self.effects_max = effects_max
        self.newest = 0
        self._waiting: dict[int, tuple[Later, asyncio.Future[Any]]] = {}

    def has_next(self) -> bool:
        return self.newest < self.recorded

    def perform(self, laters: Sequence[Later]) -> list[Any]:
        first = self.newest + 1
        self.newest += len(laters)
        return [self.one(ordinal, later) for ordinal, later in enumerate(laters, first)]

    def one(self, ordinal: int, later: Later) -> Any:
        effect = json.loads(json.dumps(later.frame))
        _, digest = identity(effect)
        if ordinal <= self.recorded:
            recorded = self.script.journal[ordinal - 1]
            if recorded.digest != digest:
                raise Diverged(f"effect {ordinal}: the journal has {recorded.effect}, the agent asks for {effect}")
            outcome = recorded.outcome
        else:
            if self.effects_max is not None and len(self.script.performed) >= self.effects_max:
                raise Cut
            self.script.performed.append(effect)
            outcome = self.outcome(ordinal, effect, later)
            self.script.journal.append(Recorded(effect, digest, outcome))
        if "error" in outcome:
            return error_of(outcome["error"]["kind"], effect["kind"], outcome["error"])
        return later.convert(copy.deepcopy(outcome["ok"]), ordinal)

    def outcome(self, ordinal: int, effect: dict[str, Any], later: Later) -> dict[str, Any]:
        kind = effect["kind"]
        try:
            return {"ok": checked(self.value(ordinal, kind, effect, later), "the outcome")}
        except Exception as error:
            if kind == "step":
                shown = {"kind": "step", "category": type(error).__name__, "message": str(error)}
            else:
                shown = {
                    "kind": getattr(error, "kind", "") or _KINDS.get(type(error), "tool"),
                    "category": getattr(error, "category", "") or "tool",
                    "message": str(error),
                }
            return {"error": shown}

    def value(self, ordinal: int, kind: str, effect: dict[str, Any], later: Later) -> Any:
        if kind == "step":
            value = later.work() if later.work else None
            return _finished(value) if asyncio.iscoroutine(value) else value
        if kind == "now":
            return f"2026-01-01T00:{ordinal // 60 % 60:02}:{ordinal % 60:02}.000000000Z"
        if kind == "random":
            return ordinal * 0x9E3779B97F4A7C15 % 2**53
        if kind == "uuid":
            return f"00000000-0000-4000-8000-{ordinal:012x}"
        if kind in ("sleep", "note"):
            return None
        name = f"{effect['server']}.{effect['tool']}" if kind == "tool" else kind
        answer = self.scripted(f"{kind} {name}", effect, later)
        if kind == "chat":
            reply = {"text": answer} if isinstance(answer, str) else dict(answer)
            if effect.get("schema") is not None and "json" not in reply:
                reply["json"] = json.loads(reply["text"])
            return {"calls": [], "by": {"model": "script"}, **reply}
        if kind == "ask":
            return {"decision": answer} if isinstance(answer, str) else answer
        return answer

    def scripted(self, key: str, effect: dict[str, Any], later: Later) -> Any:
        answers = self.script.answers.get(key)
        if not answers:
            if later.work is not None:
                return later.work()
            raise AssertionError(f"the script has no answer for {key}; it has {sorted(self.script.answers)}")
        asked = [it for it in self.script.journal if _key(it.effect) == key]
        answer = answers[min(len(asked), len(answers) - 1)]
        if isinstance(answer, BaseException):
            raise answer
        return answer(effect.get("arguments")) if callable(answer) else answer

    async def awaited(self, later: Later) -> Any:
        return (await self.gathered([later]))[0]

    async def gathered(self, laters: Sequence[Later]) -> list[Any]:
        loop = asyncio.get_running_loop()
        futures = []
        for later in laters:
            self.newest += 1
            future: asyncio.Future[Any] = loop.create_future()
            self._waiting[self.newest] = (later, future)
            futures.append(future)
        results = [await future for future in futures]
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    async def pump(self, main: asyncio.Task[Any]) -> None:
        from ._run import _settled

        while not main.done():
            await _settled(asyncio.get_running_loop())
            if self._waiting:
                lowest = min(self._waiting)
                later, future = self._waiting.pop(lowest)
                future.set_result(self.one(lowest, later))
            elif not main.done():
                await asyncio.sleep(0.001)


def _finished(coroutine: Any) -> Any:
    """The result of an `async` step. In an `async` agent a loop is running, so another thread runs the step's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def _key(effect: dict[str, Any]) -> str:
    kind = effect["kind"]
    return f"tool {effect['server']}.{effect['tool']}" if kind == "tool" else f"{kind} {kind}"


__all__ = ["Cut", "Diverged", "Recorded", "Script", "every_prefix"]
