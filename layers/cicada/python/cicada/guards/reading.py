"""What a question says, in a form that two questions can be compared in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

GuardName = Literal["question_word", "numbers", "negation", "opposite", "names", "tense", "words", "relations", "roles"]
"""What two questions differ in; the first that is found, in the order of their being looked for."""


@dataclass(frozen=True)
class Word:
    """A word that carries a part of what is asked."""

    term: str
    """What it is compared by at first; synonyms have the same."""
    marker: str = ""
    """The preposition that gives it its part, if its place is fixed (*to*, *before*, *than*…); empty for none."""
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
    head: str = field(default="", compare=False)
    """The term before its preposition; empty at the beginning of a question."""
    owner: bool = field(default=False, compare=False)
    """Whether it has an apostrophe: *Mara's*."""
    genitive: bool = field(default=False, compare=False)
    """Whether it stood after an *of*."""

    @property
    def relation(self) -> str:
        """The preposition that it stands under, of whichever kind."""
        return self.marker or self.preposition


@dataclass(frozen=True)
class Reading:
    """A question, read."""

    kind: str
    """What is asked for: ``who``, ``when``, ``how many``…; ``whether`` in a question for yes or no."""
    negations: tuple[tuple[str, ...], ...]
    """Each with the terms before and after it, sorted: *not tell him to open* is not *tell him not to open*."""
    numbers: tuple[str, ...]
    """Sorted; those that a noun carries (*episode 3*) with it. Then what stands there in signs (*-5*, *$6*, *C++*)."""
    names: frozenset[str]
    """Words that are written like names, in normal form."""
    words: tuple[Word, ...]
    """In the order of who does what to whom, whatever the sentence's own was."""
    tense: frozenset[str] = frozenset()
    """``past``, ``future``, ``conditional``, ``possible``; none of them is the present."""
    persons: tuple[tuple[str, str], ...] = ()
    """*I*, *my*, *you*…, each with the term after it, sorted."""
    links: tuple[tuple[str, ...], ...] = ()
    """Each *and* and *or* with the terms on both sides of it."""
    stranded: tuple[str, ...] = ()
    """Prepositions and particles with nothing after them: *whom did she leave with*, sorted."""
    passive: bool = False
    verbatim: bool = False
    """Whether the words count in their order, as they are."""
