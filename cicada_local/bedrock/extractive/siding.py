"""On which side of a theory a passage stands, by the words that both have: a stand-in's judgement, in English."""

from __future__ import annotations

import re

from cicada_local.bedrock.extractive.text import content_stems

PLAIN, IMPLIED = 0.75, 0.5
"""The share of the theory's words that a passage has at least to say so plainly, or at all."""
_CLAIM = re.compile(r"(?::\s|\bthat\b\s+|^i\s+\w+\s+)(?P<claim>[^?]+?[.!?])(?:\s|$)", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never|no|nobody|nothing|cannot)\b|n['’]t\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][a-z]+\b")


def side_of(asked: str, passage: str, place: str) -> tuple[str, str]:
    """``for``, ``against`` or ``neither``, and how strongly.

    Args:
        asked: the user's words; the theory in them is what follows a colon or *that*.
        passage: its words.
        place: where it stands, its speaker last.
    """
    found = _CLAIM.search(f"{asked}.")
    claim = found["claim"] if found else asked
    wanted, there = content_stems(claim), content_stems(f"{passage} {place.rsplit(' · ', 1)[-1]}")
    share = len(wanted & there) / len(wanted) if wanted else 0.0
    if share < IMPLIED or passage.rstrip("\"'”’").endswith("?"):
        return "neither", "weak"
    strength = "strong" if share >= PLAIN else "moderate"
    if negated(claim) != negated(passage):
        return ("against", strength) if share >= PLAIN else ("neither", "weak")
    named = content_stems(" ".join(_NAME.findall(claim)))
    return ("for", strength) if not named or named & there else ("against", "moderate")


def negated(text: str) -> bool:
    """Whether something is denied in a text."""
    return _NEGATION.search(text) is not None
