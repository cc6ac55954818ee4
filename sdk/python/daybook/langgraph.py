"""LangGraph on the journal: a checkpointer whose checkpoints are effects of the session.

::

    from daybook import agent, run
    from daybook.langgraph import JournalSaver, invoke

    @agent("research", version=1)
    def research(ctx, question: str) -> dict:
        graph = builder.compile(checkpointer=JournalSaver(ctx))
        return {"report": invoke(ctx, graph, {"question": question})["report"]}

After a crash ``invoke`` first reads back what the journal has. LangGraph then goes on with its newest checkpoint: nodes
whose writes are journaled do not run again, and a node that was interrupted in the middle runs again from its top, as
with every checkpointer of LangGraph. A node that must not repeat a call asks a person with ``interrupt()`` before it.
``interrupt()`` is a question of the session.

The agent may use the context before and after ``invoke``. The graph's nodes must not.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ._context import Context
from ._errors import DaybookError
from ._json import canonical, plain

#: The name of the steps in which the journal keeps what LangGraph saves.
STEP = "langgraph"


class JournalSaver(InMemorySaver):
    """A checkpointer on the journal of one session. Compile one graph with it."""

    def __init__(self, ctx: Context, **options: Any) -> None:
        super().__init__(**options)
        self._ctx = ctx
        #: LangGraph saves from several threads; the effects of a session have one order.
        self._lock = threading.Lock()
        self._answers: dict[str, Any] = {}
        #: Whether the journal has the end of the graph. What follows there belongs to the agent.
        self._is_over = False

    def load(self) -> None:
        """Reads back what the journal has of the graph."""
        while not self._is_over and self._ctx._is_recorded():
            self._read(self._ctx.step(STEP, _nothing))

    def end(self) -> None:
        """Journals that the graph is at its end."""
        if not self._is_over:
            self._ctx.step(STEP, lambda: {"end": True})
            self._is_over = True

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        with self._lock:
            self._journal("put", [_place(config), checkpoint, metadata, new_versions])
            return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        with self._lock:
            self._journal("put_writes", [_place(config), list(writes), task_id, task_path])
            super().put_writes(config, writes, task_id, task_path)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        raise NotImplementedError("daybook.langgraph needs an agent that is a plain function; call `invoke`")

    async def aput_writes(self, config: Any, writes: Sequence[Any], task_id: str, task_path: str = "") -> None:
        raise NotImplementedError("daybook.langgraph needs an agent that is a plain function; call `invoke`")

    def answer(self, interrupt: Any) -> Any:
        """A person's answer to an interrupt."""
        key = f"{interrupt.id} {canonical(plain(interrupt.value))}"
        if key not in self._answers:
            with self._lock:
                self._ctx.step(STEP, lambda: {"ask": [key, interrupt.value]})
                self._answers[key] = self._ask(interrupt.value)
        return self._answers[key]

    def _ask(self, value: Any) -> Any:
        choices = value.get("choices") if isinstance(value, dict) else None
        question = value.get("question") if isinstance(value, dict) else value
        text = question if isinstance(question, str) else canonical(plain(value))
        answer = self._ctx.ask(text, choices=choices)
        if answer["decision"] == "expired":
            raise DaybookError(f"nobody answered in time: {text}", "expired", "expired")
        return answer["text"] if answer["decision"] == "say" else answer["decision"]

    def _journal(self, what: str, arguments: list[Any]) -> None:
        kind, data = self.serde.dumps_typed(arguments)
        self._ctx.step(STEP, lambda: {what: [kind, base64.b64encode(data).decode("ascii")]})

    def _read(self, record: dict[str, Any] | None) -> None:
        """Takes over a record of the journal."""
        for what, value in (record or {}).items():
            if what == "end":
                self._is_over = True
                continue
            if what == "ask":
                key, question = value
                self._answers[key] = self._ask(question)
                continue
            arguments = self.serde.loads_typed((value[0], base64.b64decode(value[1])))
            getattr(super(), what)(*arguments)


def invoke(ctx: Context, graph: Any, given: Any, config: dict[str, Any] | None = None) -> Any:
    """Runs a graph that was compiled with a :class:`JournalSaver`, to its end. Returns its state."""
    saver = graph.checkpointer
    if not isinstance(saver, JournalSaver):
        raise TypeError("compile the graph with checkpointer=JournalSaver(ctx)")
    config = {**(config or {})}
    config["configurable"] = {"thread_id": ctx.session, **config.get("configurable", {})}
    saver.load()
    while True:
        value: Any = None
        newest = saver.get_tuple(config)
        if newest is None:
            value = given
        else:
            state = graph.get_state(config)
            # With writes that no checkpoint has yet, nothing is next either.
            if not state.next and not newest.pending_writes:
                saver.end()
                return state.values
            if state.interrupts:
                value = Command(resume={it.id: saver.answer(it) for it in state.interrupts})
        graph.invoke(value, config, durability="sync")


def _place(config: Any) -> dict[str, Any]:
    """What a saver needs of a config."""
    names = ("thread_id", "checkpoint_ns", "checkpoint_id")
    configurable = config["configurable"]
    return {"configurable": {name: configurable[name] for name in names if name in configurable}}


def _nothing() -> None:
    """What a step of the journal never calls: its outcome is there."""
