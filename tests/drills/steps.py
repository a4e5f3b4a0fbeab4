"""What several scenes do and expect."""

from __future__ import annotations

from tests.drills.deployment import Asked, Deployment
from tests.drills.scene import expect
from tests.e2e.reading import SIMPLE

QUESTIONS = (
    SIMPLE,
    "Who read the gauge at the tower?",
    "What does Petra find in the boathouse?",
    "Who owns the red oilskin?",
    "When does the ferry leave?",
    "What did Tamsin find at the gauge tower?",
)


def ends_with(asked: Asked, code: str) -> None:
    """An asker was told of an error."""
    expect(asked.end.get("code") == code, f"an error {code}; seen: {asked.saw}")


def answered_by_rag(deployed: Deployment) -> None:
    """An answer comes from the sources again, at the first strategy."""
    deployed.ask_until(SIMPLE, lambda end: end.get("answeredBy") == "rag" and not end.get("failed"))
