"""A clause: the words that carry its meaning, and what turns them."""

from __future__ import annotations

from dataclasses import dataclass

ANY = "*"
"""Stands for whatever a clause says, where a negation has no word after it."""


@dataclass(frozen=True)
class Word:
    """A word that carries meaning."""

    term: str
    """What it is compared by."""
    shown: str
    """As the text has it."""
    turning: bool = False
    """Too frequent to support anything; it turns a meaning when it is exchanged."""
    name: bool = False
    """A name or the speaker."""
    owner: bool = False
    """Only says whose something is."""
    opens: bool = False
    """The sentence begins with it, so that its capital says nothing."""
    determined: bool = False
    """An article or its like stands before it: it is no verb."""


@dataclass(frozen=True)
class Clause:
    """A part of a sentence with a meaning of its own."""

    words: tuple[Word, ...]
    negations: tuple[str, ...] = ()
    """The terms that are denied; empty for one that has nothing after it."""
    levels: frozenset[str] = frozenset()
    """How many it speaks of: ``all``, ``most``, ``some``…"""
    modes: frozenset[str] = frozenset()
    """``must``, ``may``, ``perhaps``."""
    agent_at: int | None = None
    """Of a passive: the word with which who does it begins."""
    first_person: bool = False
    verb_at: int | None = None
    """Of a passive: its participle."""
    doubtful: frozenset[str] = frozenset()
    """Words that deny by their meaning (*avoid*, *lack*), or only under a condition (*unless*)."""

    @property
    def terms(self) -> frozenset[str]:
        """Of its words, those that turn among them."""
        return frozenset(word.term for word in self.words)
