"""Durable agents as plain Python functions.

Write a function, mark it with :func:`agent`, and call :func:`run` in ``__main__``. The function asks its
:class:`Context` for everything that touches the world: steps, tools, chats, questions, time. Daybook journals each
outcome, so a session that was killed goes on where it was.
"""

from ._agent import Agent, agent
from ._context import Context, Later, Reply
from ._errors import (
    ChatError,
    DaybookError,
    PayloadTooLarge,
    Rejected,
    StepError,
    ToolError,
    Unknown,
)
from ._run import run

__all__ = [
    "Agent",
    "ChatError",
    "Context",
    "DaybookError",
    "Later",
    "PayloadTooLarge",
    "Rejected",
    "Reply",
    "StepError",
    "ToolError",
    "Unknown",
    "agent",
    "run",
]
