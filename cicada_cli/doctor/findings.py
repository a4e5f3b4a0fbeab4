"""The finding of a check: status, subject, result and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ended, the best first."""

    OK = "ok"
    UNKNOWN = "unknown"
    """Could not be checked; ``permission`` names the permission that is missing, if any."""
    WARNING = "warning"
    """Works, but needs attention."""
    PROBLEM = "problem"
    """Does not work, or a deployment would fail."""


@dataclass(frozen=True)
class Finding:
    """The result of a check for one subject."""

    check: str
    """The stable name of the check, such as ``credentials``."""
    status: Status
    subject: str
    """What was checked: a model's id, a stack's name, a URL."""
    message: str
    mend: str | None = None
    """What to do, if anything."""
    permission: str | None = None
    """The missing IAM action."""

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON data, without absent fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Reporter:
    """Creates findings of one check about one subject."""

    check: str
    subject: str

    def ok(self, message: str) -> Finding:
        """No problem."""
        return Finding(self.check, Status.OK, self.subject, message)

    def warning(self, message: str, mend: str | None = None) -> Finding:
        """It works, but needs attention."""
        return Finding(self.check, Status.WARNING, self.subject, message, mend)

    def problem(self, message: str, mend: str) -> Finding:
        """It does not work."""
        return Finding(self.check, Status.PROBLEM, self.subject, message, mend)

    def unknown(self, message: str, mend: str | None = None, permission: str | None = None) -> Finding:
        """It could not be checked."""
        return Finding(self.check, Status.UNKNOWN, self.subject, message, mend, permission)


def worst(findings: Sequence[Finding]) -> Status:
    """The worst status; ``ok`` without findings."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)
