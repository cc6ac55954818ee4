"""Readable steps and events, and what the format derives from them."""

import re
import unicodedata
import uuid

from items import Attribute, Item
from payloads import PAYLOAD_ATTRIBUTES, malformed, payload_of
from times import parse_time

GENESIS = "0" * 64
SCHEMA_VERSION = 1
ERROR_MESSAGE_CHARACTERS_MAX = 500
STEP_NUMBER_MAX = 99_999_999

ENDING_OF_VERDICT = {
    "SESSION_SUCCEEDED": "completed",
    "SESSION_FAILED": "failed",
    "SESSION_CANCELLED": "cancelled",
    "SESSION_TIMED_OUT": "timed_out",
    "SESSION_REJECTED": "rejected",
}
STEP_ANNOUNCEMENTS = {
    "AGENT_BACKGROUND_TASK_COMPLETED",
    "AGENT_BACKGROUND_TASK_FAILED",
    "AGENT_BACKGROUND_TASK_SUSPENDED",
    "INPUT_RECEIVED",
}
EVENT_NAMES = STEP_ANNOUNCEMENTS | set(ENDING_OF_VERDICT) | {
    "SESSION_INITIATED",
    "AGENT_INVOCATION_STARTED",
    "AGENT_INVOCATION_SUCCEEDED",
    "AGENT_INVOCATION_FAILED",
    "AGENT_ENTRYPOINT_STARTED",
    "AGENT_ENTRYPOINT_FAILED",
    "AGENT_VERSION_MISSING",
    "AGENT_BACKGROUND_TASK_STARTED",
    "AGENT_BACKGROUND_TASK_RESUMED",
    "AGENT_LOST",
    "CANCEL_REQUESTED",
    "RESUME_REQUESTED",
    "SESSION_ERASED",
}
EFFECTS = {"chat", "tools", "ask", "sleep"}
TOKEN_COUNTS = (
    "InputTokens",
    "OutputTokens",
    "UnsettledTokens",
    "MicroUsd",
    "CacheReadTokens",
    "CacheWriteTokens",
    "UnpricedTokens",
)
ANSWERED_BY = {"model", "policy", "both"}
NAME_CHARACTERS_MAX = 2048

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{32,99}")
_PRINCIPAL = re.compile(r"unknown|(?:os-user|token|aws-arn|service):[!-~]{1,%d}" % NAME_CHARACTERS_MAX)
_STEP_KEY = re.compile(r"STEP#([0-9]{8})")


def is_session_id(text: str) -> bool:
    return _SESSION_ID.fullmatch(text) is not None


def step_key(number: int) -> str:
    return f"STEP#{number:08d}"


def step_number(sk: str) -> int | None:
    """The number of a step's sort key, from 1 to 99999999."""
    match = _STEP_KEY.fullmatch(sk)
    return int(match[1]) or None if match else None


def event_instant(item: Item) -> int | None:
    """The instant in an event's sort key."""
    return parse_time(item.sk.removeprefix("EVENT#")) if item.sk.startswith("EVENT#") else None


def event_order(item: Item) -> tuple[int, str]:
    """Where a readable event is in the order of events."""
    instant = event_instant(item)
    assert instant is not None, "only readable events are ordered"
    return (instant, item.sk)


def is_readable_event(item: Item) -> bool:
    return (
        event_instant(item) is not None
        and item.text("Status") in EVENT_NAMES
        and event_number(item) is not None
        and not malformed(item)
        and (not item.has("V") or _known_version(item))
    )


def event_number(item: Item) -> int | None:
    """What an event is about; 0 for the session itself, None if it is malformed."""
    for name in ("Attempt", "Epoch", "Step"):
        if item.has(name):
            return item.u32(name)
    return 0


def is_verdict(item: Item) -> bool:
    return item.text("Status") in ENDING_OF_VERDICT


def has_seal(verdict: Item) -> bool:
    return verdict.text("EndHash") is not None and payload_of(verdict) is not None


def meaning_of_verdict(verdict: Item) -> dict[str, Attribute]:
    """The attributes in which two verdicts that say the same are equal."""
    return verdict.without(
        ("Writer", "Timestamp", "WallTime", "Hash", "Day", "ExpiresAt", "Encrypted", *PAYLOAD_ATTRIBUTES)
    )


def _known_version(item: Item) -> bool:
    version = item.number("V")
    return version is not None and version <= SCHEMA_VERSION


def is_readable_step(item: Item) -> bool:
    seq = item.u32("Seq")
    return (
        _known_version(item)
        and seq is not None
        and item.sk == step_key(seq)
        and item.u32("Epoch") is not None
        and _all_texts(item, "Runner", "PrevHash")
        and item.number("ExpiresAt") is not None
        and _is_time(item, "Timestamp")
        and not malformed(item)
        and _has_attributes_of_kind(item)
    )


def _has_attributes_of_kind(item: Item) -> bool:
    kind = item.text("Kind")
    if kind == "claim":
        return item.u32("Supersedes") is not None and _all_texts(item, "Agent", "GraphVersion")
    if payload_of(item) is None:
        return False
    if kind == "intent":
        return _has_effect(item)
    if kind == "outcome":
        return _has_effect(item) and _is_time(item, "StartedAt") and _outcome_options(item)
    if kind == "ask":
        return _has_effect(item) and _is_time(item, "QuestionExpiresAt")
    if kind == "answer":
        return item.u32("Question") is not None and _has_principal_or_none(item)
    if kind == "note":
        return _all_texts(item, "Subject") and _has_principal_or_none(item)
    return kind == "end" and _has_ending(item)


def _has_effect(item: Item) -> bool:
    return (
        _all_texts(item, "Node", "Digest")
        and item.text("Effect") in EFFECTS
        and item.u32("Call") is not None
    )


def _outcome_options(item: Item) -> bool:
    counts = all(item.u32(name) is not None for name in TOKEN_COUNTS if item.has(name))
    request = not item.has("Request") or (
        item.data("Request") is not None and item.text("Messages") is not None
    )
    return counts and request


def _has_ending(item: Item) -> bool:
    answered_by = item.text("AnsweredBy")
    return item.text("Ending") in ENDING_OF_VERDICT.values() and (
        answered_by is None or answered_by in ANSWERED_BY
    )


def _has_principal_or_none(item: Item) -> bool:
    principal = item.text("Principal")
    return principal is None or _PRINCIPAL.fullmatch(principal) is not None


def _all_texts(item: Item, *names: str) -> bool:
    return all(item.text(name) is not None for name in names)


def _is_time(item: Item, name: str) -> bool:
    text = item.text(name)
    return text is not None and parse_time(text) is not None


def announcement_of(session: str, step: Item) -> dict[str, Attribute] | None:
    """The attributes that an event has in common with the announcement of a readable step."""
    status = _announced_status(step)
    if status is None:
        return None
    number = step.u32("Seq")
    attributes: dict[str, Attribute] = {
        "V": ("N", SCHEMA_VERSION),
        "Status": ("S", status),
        "ExpiresAt": step.attributes["ExpiresAt"],
        "EventId": ("S", event_id(f"{session}/agent/{status}/{number}")),
        "Step": step.attributes["Seq"],
    }
    if step.text("Kind") == "ask":
        attributes["Detail"] = ("S", f'{{"question_id":{number}}}')
    message = step.text("ErrorMessage")
    if step.text("Kind") == "end" and message is not None:
        attributes["ErrorMessage"] = ("S", _short_message(message))
    return attributes


def _announced_status(step: Item) -> str | None:
    kind = step.text("Kind")
    if kind == "ask":
        return "AGENT_BACKGROUND_TASK_SUSPENDED"
    if kind == "answer":
        return "INPUT_RECEIVED"
    if kind != "end":
        return None
    return {
        "completed": "AGENT_BACKGROUND_TASK_COMPLETED",
        "failed": "AGENT_BACKGROUND_TASK_FAILED",
    }.get(step.text("Ending") or "")


def event_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def _short_message(message: str) -> str:
    one_line = "".join(" " if unicodedata.category(char) == "Cc" else char for char in message)
    if len(one_line) <= ERROR_MESSAGE_CHARACTERS_MAX:
        return one_line
    return one_line[: ERROR_MESSAGE_CHARACTERS_MAX - 1] + "…"
