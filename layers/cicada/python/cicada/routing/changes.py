"""Whether a message asks for a change of what its user keeps: profiles, notes and theories."""

from __future__ import annotations

from cicada.text.linear import LinearClassifier

LEAST_PROBABILITY = 0.5  # of the label ``change``: below it no tool that changes anything is offered to an agent
_CHANGE = "change"


def asks_for_change(message: str) -> bool:
    """Whether a message to an agent asks to keep, change, take back or delete something, and not just to look at it.

    A trained classifier decides (``python -m training.changes``). It opens and closes the door for tools that write; it
    is no permission: what is deleted is confirmed, and every change has a receipt and can be taken back.
    """
    classifier = LinearClassifier.of("cicada.routing", "changes")
    return classifier.decide(message, most_telling=0).probabilities[_CHANGE] >= LEAST_PROBABILITY
