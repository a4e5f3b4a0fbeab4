"""How a command ends."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the client takes longer to import than most commands run
    from cicada_client import ClientError


class Exit(IntEnum):
    """The exit status of every command."""

    DONE = 0
    FAILED = 1
    """The answer ended with an error event, or what was asked for could not be done."""
    USAGE = 2
    """The command line is not valid, names no deployment, or needs what is not installed."""
    CONNECTION_LOST = 3
    INCOMPLETE = 4
    """A load is published, without documents that could not be loaded."""
    LIMIT_REACHED = 5
    """The question was refused for a limit on use."""
    BLOCKED = 6
    """A guardrail or content filter withheld the answer."""
    INTERRUPTED = 130
    """By Ctrl-C, as shells have it: 128 and the signal's number."""


class UsageError(Exception):
    """The command cannot be carried out as it was typed; the message says what to do."""


def exit_of(error: ClientError) -> Exit:
    """The status of a command that ends with this failure of the client."""
    from cicada_client import ConnectionLost, ConnectionRefused, InvalidQuestion, LimitState, RequestRefused

    match error:
        case InvalidQuestion():
            return Exit.USAGE
        case RequestRefused(limit=LimitState()):
            return Exit.LIMIT_REACHED
        case ConnectionLost() | ConnectionRefused():
            return Exit.CONNECTION_LOST
        case _:
            return Exit.FAILED
