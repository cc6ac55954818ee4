"""JSON as the protocol wants it: exact integers, no NaN, no lone surrogates, bounded."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import json
import uuid
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from ._errors import PayloadTooLarge

# docs/protocol.md, "Limits".
VALUE_BYTES_MAX = 4_193_280
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1


def plain(value: Any) -> Any:
    """A value as JSON has it. Dataclasses, pydantic models, enums, tuples, paths and times are converted."""
    if value is None or isinstance(value, (bool, str)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise ValueError(f"the integer {value} does not fit into 64 bits; pass it as a text")
        return value
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is not a JSON number")
        return value
    if isinstance(value, dict):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        raise TypeError("a set has no order; pass `sorted(…)`")
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, PurePath, Decimal)):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be journaled; return texts, numbers, lists, dicts or dataclasses")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not a text; JSON objects have texts as keys")
    return key


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def checked(value: Any, what: str) -> Any:
    """The JSON of a value that the host will journal."""
    value = plain(value)
    size = len(dumps(value).encode("utf-8"))
    if size > VALUE_BYTES_MAX:
        raise PayloadTooLarge(f"{what} has {size} bytes of JSON; at most {VALUE_BYTES_MAX} are journaled")
    return value


def canonical(value: Any) -> str:
    """Canonical JSON, as docs/protocol.md defines it."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _fraction(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    fields = sorted(value, key=lambda key: key.encode("utf-8"))
    return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in fields) + "}"


def _fraction(value: float) -> str:
    text = format(Decimal(repr(value + 0.0)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def identity(effect: dict[str, Any]) -> tuple[str, str]:
    """The canonical text of an effect, and its digest."""
    kind = effect["kind"]
    name, arguments = kind, None
    if kind == "step":
        name, arguments = effect["name"], effect.get("arguments")
    elif kind == "tool":
        name, arguments = f"{effect['server']}.{effect['tool']}", effect.get("arguments", {})
    elif kind == "chat":
        arguments = {
            "messages": [_message(message) for message in effect["messages"]],
            "schema": effect.get("schema"),
            "tools": [
                f"{tool['server']}.{tool['name']}" if tool.get("server") else tool["name"]
                for tool in effect.get("tools", [])
            ],
        }
    elif kind == "ask":
        arguments = {field: effect.get(field) for field in ("question", "server", "tool", "arguments")}
    elif kind == "sleep":
        arguments = {"seconds": effect["seconds"]}
    elif kind == "note":
        arguments = {"text": effect["text"], "data": effect.get("data")}
    text = canonical({"arguments": arguments, "kind": kind, "name": name})
    return text, hashlib.sha256(text.encode("utf-8")).hexdigest()


def _message(message: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in message.items() if name != "from"}
    if not kept.get("is_error", True):
        del kept["is_error"]
    if kept.get("calls") == []:
        del kept["calls"]
    return kept
