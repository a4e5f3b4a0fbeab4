"""What is known of an English question while its words are met one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

from cicada.guards.reading import Word

_MODALS = frozenset({"can", "must", "should", "might"})
_ASKED_OF = frozenset({"your"})
"""Whose things are meant anyhow: *your refund policy* is *your policy on refunds*."""


@dataclass
class Sentence:
    """What was met of a question so far."""

    words: list[Word] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    persons: list[tuple[str, str]] = field(default_factory=list)
    negations: list[tuple[str, ...]] = field(default_factory=list)
    links: list[tuple[str, ...]] = field(default_factory=list)
    stranded: list[str] = field(default_factory=list)
    waiting_persons: list[str] = field(default_factory=list)
    waiting_negations: list[tuple[str, str]] = field(default_factory=list)
    """Each with the term before it."""
    waiting_links: list[tuple[str, str]] = field(default_factory=list)
    """Each *and* and *or* with the term before it."""
    waiting_preposition: str = ""
    """A preposition that nothing has followed yet."""
    last: str = ""
    """The term before, in the order of the sentence."""
    head: str = ""
    passive: bool = False
    phrase: int = 0
    genitives: int = 0
    marker: str = ""
    loose: bool = False
    preposition: str = ""
    joined: bool = False
    auxiliary: bool = False
    be_at: int | None = None
    """How many words came before the last form of *be*, whose participle has not been met."""
    verb_at: int | None = None
    """Where the verb of a passive stands."""
    asked_at: int | None = None
    """Where the question word stands, until the auxiliary after it (*which episode does*…) or another verb."""
    asked_object: bool = False
    """Whether the question word stands for what something is done to."""

    def add(self, term: str, shown: str, *, owner: bool = False) -> None:
        """Take in a word under the preposition of its phrase. Modals stand under none, and take nothing."""
        if term in _MODALS:
            self.words.append(Word(term, loose=True, shown=shown, phrase=self.phrase))
            return
        word = Word(term, self.marker, self.loose, self.joined, self.preposition, shown, self.phrase, self.head, owner)
        self.words.append(word)
        self.joined = False
        self.meet(term)

    def meet(self, term: str) -> None:
        """Give a term to what waits for the next one."""
        self.persons += [(person, "" if person in _ASKED_OF else term) for person in self.waiting_persons]
        self.negations += [(negation, before, term) for negation, before in self.waiting_negations]
        self.links += [(link, *sorted((before, term))) for link, before in self.waiting_links]
        self.waiting_persons, self.waiting_negations, self.waiting_links = [], [], []
        self.waiting_preposition = ""
        self.last = term

    def begin_phrase(self) -> None:
        """What follows stands under no preposition."""
        self.strand()
        self.marker, self.loose, self.preposition, self.head = "", False, "", ""
        self.phrase += 1

    def begin_preposition(self, marker: str, preposition: str) -> None:
        """What follows stands under a preposition: one with a fixed place, or a loose one."""
        self.begin_phrase()
        self.marker, self.preposition, self.loose, self.joined = marker, preposition, bool(preposition), False
        self.head, self.waiting_preposition = self.last, marker or preposition

    def strand(self) -> None:
        """Note a preposition that nothing follows; an agent's does not matter."""
        if self.waiting_preposition and self.waiting_preposition != "by":
            self.stranded.append(self.waiting_preposition)
        self.waiting_preposition = ""

    def finish(self) -> None:
        """Let what waits for another term go without."""
        self.strand()
        self.meet("")
