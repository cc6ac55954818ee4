"""Errors that an agent may catch. The same error comes again in a replay."""

from __future__ import annotations

from typing import Any


class DaybookError(Exception):
    """An effect has no result."""

    def __init__(self, message: str, kind: str = "", category: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.category = category


class StepError(DaybookError):
    """The function of a step raised. ``category`` is the name of the exception's type."""


class ToolError(DaybookError):
    """A tool reported an error, or could not be called."""


class Rejected(ToolError):
    """A person rejected the call, or nobody answered in time."""


class Unknown(DaybookError):
    """The effect may have happened; its outcome is not known."""


class ChatError(DaybookError):
    """No model replied, or the reply does not match the schema."""


class PayloadTooLarge(DaybookError):
    """A value is larger than the journal takes. Write it to a file or a store, and pass its name."""


class Stopped(BaseException):
    """The host is gone, or wants nothing more."""


def error_of(kind: str, effect: str, error: dict[str, Any]) -> DaybookError:
    """The exception for an error of the host. ``effect`` is the kind of the effect."""
    message = str(error.get("message", ""))
    category = str(error.get("category", ""))
    cls: type[DaybookError]
    if kind in ("rejected", "expired"):
        cls = Rejected
    elif kind == "unknown":
        cls = Unknown
    elif kind == "step":
        return StepError(f"{category}: {message}", kind, category)
    elif effect == "chat":
        cls = ChatError
    else:
        cls = ToolError
    return cls(message, kind, category)
