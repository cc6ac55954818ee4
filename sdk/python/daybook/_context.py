"""The context: what an agent may ask for."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ._errors import DaybookError, ToolError
from ._json import checked, plain

_HERE = os.path.dirname(os.path.abspath(__file__))


class Host(Protocol):
    """What performs effects: the host of the protocol, or a script of `daybook.testing`."""

    def perform(self, laters: Sequence[Later]) -> list[Any]:
        """Sends these effects, waits for all of them, and returns their results or exceptions."""


@dataclass
class Later:
    """An effect that is asked for when it is given to :meth:`Context.gather`, or awaited."""

    frame: dict[str, Any]
    #: The program's own work: the function of a step, or the policy of a chat.
    work: Callable[[], Any] | None = None
    #: Makes the result that the agent gets.
    convert: Callable[[Any, int], Any] = lambda value, _: value
    host: Any = field(default=None, repr=False)

    def __await__(self) -> Any:
        return self.host.awaited(self).__await__()


@dataclass
class Reply:
    """A model's reply."""

    text: str
    calls: list[dict[str, Any]]
    #: The value of the text, if the chat has a schema.
    json: Any = None
    #: ``"policy"``, or ``{"model": NAME}``.
    by: Any = None
    _ordinal: int = 0

    def message(self) -> dict[str, Any]:
        """This reply as a message of the next chat."""
        message: dict[str, Any] = {"role": "assistant", "from": self._ordinal}
        if self.text:
            message["text"] = self.text
        if self.calls:
            message["calls"] = self.calls
        return message


class _Effect:
    """An effect that can be asked for now, or with ``later``."""

    def __init__(self, make: Callable[..., Later], context: Context) -> None:
        self.later = make
        self._context = context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._context._now(self.later(*args, **kwargs))


class Context:
    """Given to an agent's function. In an ``async`` function each effect is awaited."""

    def __init__(self, host: Any, session: str, is_async: bool = False) -> None:
        self._host = host
        self._is_async = is_async
        self.session = session
        #: ``step(name, function, *args, critical=False, **kwargs)`` runs a function once and journals its result.
        self.step = _Effect(self._step, self)
        #: ``tool(server, name, **arguments)`` calls a tool of an MCP server.
        self.tool = _Effect(self._tool, self)
        #: ``chat(prompt, context=None, tools=(), schema=None, …)`` asks the model.
        self.chat = _Effect(self._chat, self)

    def gather(self, *laters: Later) -> Any:
        """Performs several effects at once. Their results are in the order of the arguments."""
        if self._is_async:
            return self._host.gathered(laters)
        return self._results(laters)

    def ask(
        self,
        question: str,
        *,
        tool: str | None = None,
        arguments: dict[str, Any] | None = None,
        schema: dict[str, Any] | None = None,
        choices: Sequence[str] | None = None,
    ) -> Any:
        """Asks a person. Returns ``{"decision", "text"?, "reason"?, "arguments"?}``.

        ``tool`` (``"server.tool"``) and ``arguments`` ask about a call: approving allows exactly that call once.
        The session waits for days at no cost; the program is stopped meanwhile.
        """
        frame: dict[str, Any] = {"kind": "ask", "question": question}
        if tool is not None:
            server, _, name = tool.rpartition(".")
            frame.update(tool=name, arguments=checked(arguments or {}, "the arguments"))
            if server:
                frame["server"] = server
        if schema is not None:
            frame["schema"] = schema
        if choices is not None:
            frame["choices"] = list(choices)
        return self._now(self._later(frame))

    def sleep(self, seconds: float) -> Any:
        """Waits. A long sleep costs nothing: the program is stopped meanwhile."""
        return self._now(self._later({"kind": "sleep", "seconds": seconds}))

    def note(self, text: str, **data: Any) -> Any:
        """Writes a note into the journal."""
        return self._now(self._later({"kind": "note", "text": text, "data": checked(data, "the note") or None}))

    def now(self) -> Any:
        """The time, the same in a replay."""
        return self._now(self._later({"kind": "now"}, convert=_time))

    def random(self) -> Any:
        """A number from 0 up to 1, the same in a replay."""
        return self._now(self._later({"kind": "random"}, convert=lambda value, _: value / 2**53))

    def uuid(self) -> Any:
        """A random UUID as a text, the same in a replay."""
        return self._now(self._later({"kind": "uuid"}))

    def run_tools(
        self,
        prompt: str,
        servers: Sequence[str],
        until: Callable[[Reply], bool] | None = None,
        *,
        system: str = "",
        rounds_max: int = 20,
        policy: Callable[[list[dict[str, Any]]], Any] | None = None,
    ) -> Reply:
        """Lets the model call tools of these servers until it calls none, or ``until`` says that it is done."""
        catalogues = self.gather(*(self.tool.later(server, "tools/list") for server in servers))
        tools = [tool for catalogue in catalogues for tool in catalogue.get("tools", [])]
        messages: list[dict[str, Any]] = [{"role": "user", "text": prompt}]
        for _ in range(rounds_max):
            reply = self.chat(messages=messages, tools=tools, system=system, policy=policy)
            if not reply.calls or (until is not None and until(reply)):
                return reply
            messages.append(reply.message())
            laters = [self.tool.later(call["server"], call["tool"], **call["arguments"]) for call in reply.calls]
            for call, result in zip(reply.calls, self._host.perform(laters)):
                content, is_error = result, isinstance(result, DaybookError)
                if is_error:
                    content = str(result)
                messages.append(
                    {"role": "tool", "id": call["id"], "tool": call["tool"], "content": content, "is_error": is_error}
                )
        raise ToolError(f"the model still calls tools after {rounds_max} rounds")

    def _step(self, name: str, function: Callable[..., Any], *args: Any, critical: bool = False, **kwargs: Any) -> Later:
        arguments = {"args": [_argument(it) for it in args], "kwargs": {k: _argument(v) for k, v in kwargs.items()}}
        arguments = checked(arguments, f"the arguments of step `{name}`") if args or kwargs else None
        frame = {"kind": "step", "name": name, "arguments": arguments, "critical": critical}
        return self._later(frame, work=lambda: function(*args, **kwargs))

    def _tool(self, server: str, tool: str, /, **arguments: Any) -> Later:
        arguments = checked(arguments, f"the arguments of `{server}.{tool}`")
        return self._later({"kind": "tool", "server": server, "tool": tool, "arguments": arguments})

    def _chat(
        self,
        prompt: str | None = None,
        context: Any = None,
        tools: Sequence[dict[str, Any]] = (),
        schema: dict[str, Any] | None = None,
        *,
        messages: Sequence[dict[str, Any]] | None = None,
        system: str = "",
        max_output_tokens: int = 1024,
        policy: Callable[[list[dict[str, Any]]], Any] | None = None,
    ) -> Later:
        said = list(messages or [])
        if prompt is not None:
            text = prompt if context is None else f"{prompt}\n\n{_text(context)}"
            said.append({"role": "user", "text": text})
        frame = {
            "kind": "chat",
            "system": system,
            "messages": checked(said, "the messages"),
            "tools": plain(list(tools)),
            "max_output_tokens": max_output_tokens,
            "schema": schema,
            "policy": policy is not None,
        }
        work = None if policy is None else lambda: policy(frame["messages"])
        return self._later(frame, work=work, convert=_reply)

    def _is_recorded(self) -> bool:
        """Whether the journal has the next effect.

        Only to read back what the kit journaled itself: the order of effects must not depend on it.
        """
        return bool(self._host.has_next())

    def _later(self, frame: dict[str, Any], work: Any = None, convert: Any = None) -> Later:
        frame["at"] = _line()
        later = Later(frame, work, host=self._host)
        if convert is not None:
            later.convert = convert
        return later

    def _now(self, later: Later) -> Any:
        if self._is_async:
            return self._host.awaited(later)
        return self._results([later])[0]

    def _results(self, laters: Sequence[Later]) -> list[Any]:
        results = self._host.perform(laters)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


def _argument(value: Any) -> Any:
    """An argument of a step. One that is no JSON counts by its type."""
    try:
        return plain(value)
    except TypeError:
        return {"type": type(value).__qualname__}


def _text(context: Any) -> str:
    from ._json import canonical

    return context if isinstance(context, str) else canonical(plain(context))


def _time(text: str, _: int) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.split(".")[0]).replace(tzinfo=datetime.timezone.utc) + (
        datetime.timedelta(microseconds=int(text.split(".")[1][:6]))
    )


def _reply(value: dict[str, Any], ordinal: int) -> Reply:
    return Reply(value.get("text", ""), value.get("calls", []), value.get("json"), value.get("by"), ordinal)


def _line() -> str:
    """The line of the agent's own code that asks for an effect."""
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _HERE:
        frame = frame.f_back  # type: ignore[assignment]
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""
