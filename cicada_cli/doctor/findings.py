"""What a check found: its status, what it is about, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ended, the best first."""

    OK = "ok"
    UNKNOWN = "unknown"
    """It could not be determined; ``permission`` names the missing permission, if that is why."""
    WARNING = "warning"
    """It works, but needs attention."""
    PROBLEM = "problem"
    """It does not work, or a deployment would fail."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """The check's name, which stays the same: ``credentials``, ``model``…"""
    status: Status
    subject: str
    """What was looked at: a model's id, a stack's name, a URL."""
    message: str
    mend: str | None = None
    """What to do; None where nothing has to be done."""
    permission: str | None = None
    """The IAM action that was missing."""

    def as_json(self) -> dict[str, Any]:
        """Plain data, without what is absent."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Reporter:
    """Makes the findings of one check about one subject."""

    check: str
    subject: str

    def ok(self, message: str) -> Finding:
        """It is as it should be."""
        return Finding(self.check, Status.OK, self.subject, message)

    def warning(self, message: str, mend: str | None = None) -> Finding:
        """Something is to be known."""
        return Finding(self.check, Status.WARNING, self.subject, message, mend)

    def problem(self, message: str, mend: str) -> Finding:
        """It does not work."""
        return Finding(self.check, Status.PROBLEM, self.subject, message, mend)

    def unknown(self, message: str, mend: str | None = None, permission: str | None = None) -> Finding:
        """It could not be told."""
        return Finding(self.check, Status.UNKNOWN, self.subject, message, mend, permission)


def worst(findings: Sequence[Finding]) -> Status:
    """The worst status; ``ok`` where nothing was found."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)
