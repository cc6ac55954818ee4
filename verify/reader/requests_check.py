"""The texts that model requests name: each must be in an earlier step."""

import hashlib
from typing import Any, Callable

import strict_json
from items import Item
from payloads import Malformed, Parts, Undecodable, decode, payload_of

Texts = dict[str, str]
StoredParts = Callable[[Parts], bytes]


def missing_texts(steps: list[Item], stored_parts: StoredParts) -> list[tuple[Item, str]]:
    """The first missing text of each step with a request; raises CannotTell."""
    known: Texts = {}
    missing = []
    for step in steps:
        if step.text("Subject") == "model_request":
            known |= {text_hash(text): text for text in _texts_of(step, stored_parts)}
        frame = step.data("Request")
        if frame is None:
            continue
        unknown = _first_unknown(frame.hex(), step.text("Messages"), known)
        if unknown is not None:
            missing.append((step, unknown))
    return missing


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _texts_of(step: Item, stored_parts: StoredParts) -> list[str]:
    try:
        value = strict_json.parse(decode(payload_of(step), stored_parts) or "")
    except (Malformed, Undecodable, strict_json.NotJson):
        return []
    if not isinstance(value, dict) or set(value) != {"parts"}:
        return []
    parts = value["parts"]
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return []
    return parts


def _first_unknown(frame: str, messages: str | None, known: Texts) -> str | None:
    if frame not in known:
        return frame
    listed = _json_or_none(messages)
    array_text = _name(listed)
    if array_text is not None:
        if array_text not in known:
            return array_text
        listed = _json_or_none(known[array_text])
    named = _frame_names(known[frame]) + _array_names(listed)
    return next((name for name in named if name not in known), None)


def _frame_names(frame: str) -> list[str]:
    value = _json_or_none(frame)
    if not isinstance(value, dict):
        return []
    names = [_name(value.get(member)) for member in ("system", "tools", "form")]
    return [name for name in names if name is not None]


def _array_names(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [name for element in value if (name := _name(element)) is not None]


def _name(value: Any) -> str | None:
    """The text that an object names with its member `sha256`."""
    name = value.get("sha256") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def _json_or_none(text: str | None) -> Any:
    try:
        return None if text is None else strict_json.parse(text)
    except strict_json.NotJson:
        return None
