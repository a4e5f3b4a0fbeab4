"""The gate of questions, for tests."""

from __future__ import annotations

from typing import Any

from cicada.answering.question_gate import QuestionGate
from cicada.delivery.ports import RequestLog
from cicada.usage.reservations import Amount

MOST = Amount(120_000, 400_000)
"""What one request may use."""


def open_gate(log: RequestLog, **settings: Any) -> QuestionGate:
    """A gate over items that do not exist; without limits."""
    given: dict[str, Any] = {"read": lambda _keys: {}, "most": MOST} | settings
    return QuestionGate(log, **given)
