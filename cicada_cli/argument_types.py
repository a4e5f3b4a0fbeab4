"""Types of options, each with an error message."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from cicada.protocol.actions import MAX_TOP_K
from cicada.rights import GroupName

DURATIONS = {"m": (60, "minute"), "h": (3600, "hour"), "d": (86_400, "day")}
"""Units of a duration: seconds and name."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """Parses a whole number within bounds."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"must be a whole number from {least:,} to {most:,}")
        return int(text)

    return read


top_k = whole(1, MAX_TOP_K)


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
    return int(text)


def share(text: str) -> float:
    """A number from 0 to 1."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError("must be a number from 0 to 1")


def duration(text: str) -> int:
    """A duration, in seconds."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError("must be a duration such as 30m, 24h or 7d")
    return int(match[1]) * DURATIONS[match[2]][0]


def moment(text: str) -> datetime:
    """A time with a time zone."""
    with contextlib.suppress(ValueError):
        if (found := datetime.fromisoformat(text)).tzinfo is not None:
            return found
    raise argparse.ArgumentTypeError("must be a time with a time zone, such as 2026-11-25T10:00:00Z")


def digest(text: str) -> str:
    """The digest that log lines have of an asker."""
    if re.fullmatch("[0-9a-fA-F]{8}", text) is None:
        raise argparse.ArgumentTypeError("must be 8 hexadecimal digits, as `cicada trace` shows them")
    return text.lower()


def groups(text: str) -> tuple[str, ...]:
    """Names of groups, separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        return TypeAdapter(tuple[GroupName, ...]).validate_python(names)
    except ValidationError:
        raise argparse.ArgumentTypeError("must be names of groups, separated by commas") from None


def metadata(text: str) -> tuple[str, str]:
    """A key and its value."""
    key, separator, value = text.partition("=")
    if key and separator:
        return key, value
    raise argparse.ArgumentTypeError("must be a key and a value: KEY=VALUE")
