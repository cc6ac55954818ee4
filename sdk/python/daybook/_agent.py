"""The decorator that makes a function an agent."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

from ._schema import built, parameters, schema_of


class Agent:
    """A function that Daybook can run. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        version: str,
        critical: Sequence[str],
        at_most_once: Sequence[str],
        servers: Sequence[str],
        title: str | None,
    ) -> None:
        self.function = function
        self.name = name
        self.version = version
        self.critical = list(critical)
        self.at_most_once = list(at_most_once)
        self.servers = list(servers)
        self.title = title
        self.input_schema, self._types = parameters(function)
        self.is_async = inspect.iscoroutinefunction(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """The function's arguments for an input."""
        return {name: built(self._types.get(name, Any), value) for name, value in given.items()}

    def description(self) -> dict[str, Any]:
        """The frame `description` of the protocol."""
        frame: dict[str, Any] = {
            "type": "description",
            "name": self.name,
            "version": self.version,
            "input_schema": self.input_schema,
            "critical": self.critical,
            "at_most_once": self.at_most_once,
            "servers": self.servers,
        }
        text = inspect.getdoc(self.function)
        if text:
            frame["summary"] = text.splitlines()[0]
        if self.title:
            frame["title"] = self.title
        result = schema_of(typing.get_type_hints(self.function).get("return", Any))
        if result:
            frame["result_schema"] = result
        return frame


def agent(
    name: str,
    *,
    version: int | str,
    critical: Sequence[str] = (),
    at_most_once: Sequence[str] = (),
    servers: Sequence[str] = (),
    title: str | None = None,
) -> Callable[[Callable[..., Any]], Agent]:
    """Makes a function an agent. Its parameters after the context are the fields of the input.

    ``critical`` are tools that need a person's approval for each call, as ``server.tool``. ``title`` names a session;
    ``{field}`` stands for a field of the input. Change ``version`` with every change of the order or the arguments
    of effects: a session goes on only with the version that it began with.
    """

    def decorate(function: Callable[..., Any]) -> Agent:
        return Agent(function, name, str(version), critical, at_most_once, servers, title)

    return decorate
