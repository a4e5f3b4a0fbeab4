"""What a question says, in a form that two questions can be compared in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GuardName = Literal["question_word", "numbers", "negation", "opposite", "names", "words", "roles"]
"""What two questions differ in; the first that is found, in this order of their being looked for."""


@dataclass(frozen=True)
class Word:
    """A word that carries a part of what is asked."""

    term: str
    """What it is compared by; synonyms have the same."""
    marker: str = ""
    """The preposition that gives it its part (*to*, *before*, *than*…); empty for none."""
    loose: bool = False
    """Whether it belongs to a phrase that can stand anywhere (*in the boathouse*)."""
    joined: bool = False
    """Whether it continues a list: *Mara and Tom* is *Tom and Mara*."""
    preposition: str = ""
    """The preposition of a loose phrase."""
    shown: str = field(default="", compare=False)
    """As the question has it, in normal form."""
    phrase: int = field(default=0, compare=False)
    """Words of one phrase (*the armour class*) have the same number."""


@dataclass(frozen=True)
class Reading:
    """A question, read."""

    kind: str
    """What is asked for: ``who``, ``when``, ``how many``…; ``whether`` in a question for yes or no."""
    negated: bool
    """Whether its negations leave it negative: two of them cancel each other out."""
    numbers: tuple[str, ...]
    """Sorted; those that a noun carries (*episode 3*) with it."""
    names: frozenset[str]
    """Terms that are written like names."""
    words: tuple[Word, ...]
    """In the order of who does what to whom, whatever the sentence's own was."""
