"""The known names that are closest to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable

MIN_LIKENESS = 0.3
"""What is less alike is no help."""
SAME_WORDS = 0.6
"""How alike a name is at least to one that has all its words and more: *Oake* to *Mira Oake*."""


def closest_names(wanted: str, known: Iterable[str], limit: int) -> list[str]:
    """The names that are most like one, best first; names are compared as they are given.

    Likeness is the Dice coefficient of the names' trigrams: 2 × those in common / those of both.
    (Adamson and Boreham, The use of an association measure based on character structure, 1974.)
    """
    grams, words = _trigrams(wanted), set(wanted.split())
    found: list[tuple[float, str]] = []
    for name in known:
        own = _trigrams(name)
        likeness = 2 * len(grams & own) / (len(grams) + len(own))
        if likeness < SAME_WORDS and likeness > 0:
            of_name = set(name.split())
            if words <= of_name or of_name <= words:
                likeness = SAME_WORDS
        if likeness >= MIN_LIKENESS:
            found.append((-likeness, name))
    return [name for _, name in sorted(found)[:limit]]


def _trigrams(name: str) -> set[str]:
    padded = f"  {name} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}
