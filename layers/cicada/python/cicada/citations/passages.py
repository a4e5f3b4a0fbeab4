"""What a source says, read once for all the sentences that cite it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from cicada.corpus.passages import NoteLocator
from cicada.protocol.events import Source
from cicada.text.normal import normalised
from cicada.text.numbers import Quantity, quantities
from cicada.text.sentences import sentences
from cicada.text.words import words_of


@dataclass(frozen=True)
class Passage:
    """A source, read."""

    source: Source

    @cached_property
    def voice(self) -> str:
        """Whose words it is, in normal form; empty where nobody's."""
        return normalised(self.source.locator.voice() or "")

    @cached_property
    def label(self) -> str:
        """The names of its place."""
        names = self.source.locator.names()
        return " ".join(f"page {name}" if kind == "page" else name for kind, name in names.items())

    @cached_property
    def statements(self) -> list[str]:
        """What is said as a whole: its sentences; of a note its value, and each of its lines."""
        text, locator = self.source.text, self.source.locator
        if not isinstance(locator, NoteLocator):
            return sentences(text)
        lines = text.removeprefix(locator.lead()).splitlines(keepends=True)
        return [sentence for line in lines for sentence in sentences(line)]

    @cached_property
    def whole(self) -> str:
        """Its text, its surroundings and its place."""
        return f"{self.source.text}\n{self.source.context or ''}\n{self.label}"

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of it, its surroundings and its place, in normal form."""
        return frozenset(words_of(self.whole))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its numbers."""
        return quantities(self.whole, doubtful=True)
