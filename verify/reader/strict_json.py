"""JSON as the record format accepts it: RFC 8259, stricter than Python's own reader."""

import json
from typing import Any

DEPTH_MAX = 127


class NotJson(ValueError):
    """The text is not JSON that the record format accepts."""


def parse(text: str, unique_names: bool = False) -> Any:
    """Parses a JSON text; `unique_names` refuses objects with several members of one name."""
    pairs_hook = _unique_members if unique_names else dict
    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs_hook,
            parse_int=_whole_number,
            parse_float=_double,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from None
    _check(value, 0)
    return value


def parse_bytes(raw: bytes, unique_names: bool = False) -> Any:
    """Parses JSON in UTF-8."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    return parse(text, unique_names)


def is_whole(value: Any) -> bool:
    """Whether a parsed value is a number written as digits alone, without sign."""
    return type(value) is int and value >= 0


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJson("an object has several members of one name")
    return members


def _whole_number(text: str) -> int | float:
    # `-0` has a sign, which an `int` would lose.
    if text == "-0":
        return -0.0
    try:
        value = int(text)
        float(value)
    except (OverflowError, ValueError):
        raise NotJson("a number is beyond the range of doubles") from None
    return value


def _double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotJson("a number is beyond the range of doubles")
    return value


def _no_constant(text: str) -> Any:
    raise NotJson(f"`{text}` is not JSON")


def _check(value: Any, depth: int) -> None:
    """Refuses unpaired surrogates and deep nesting."""
    if isinstance(value, str):
        _check_text(value)
        return
    if not isinstance(value, (dict, list)):
        return
    if depth + 1 > DEPTH_MAX:
        raise NotJson("it is nested too deeply")
    if isinstance(value, dict):
        for name in value:
            _check_text(name)
    for inner in value.values() if isinstance(value, dict) else value:
        _check(inner, depth + 1)


def _check_text(text: str) -> None:
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise NotJson("a text has an unpaired surrogate")
