"""What a source says, read once for all the sentences that cite it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cicada.citations.clauses import Clause, Word
from cicada.citations.language import language_of
from cicada.citations.measures import Clock, clocks
from cicada.citations.numbers import Quantity, quantities
from cicada.citations.reading import ENGLISH, read
from cicada.citations.terms import Vocabulary
from cicada.protocol.events import Source
from cicada.text.tokens import normalised, tokens


@dataclass(frozen=True)
class Known:
    """A source, read."""

    source: Source
    told_language: str | None = None
    """What it is read in, where it does not show that itself."""

    @cached_property
    def language(self) -> str:
        """Of its text, ISO 639-3."""
        if self.told_language is not None:
            return self.told_language
        return language_of(f"{self.source.text} {self.source.context or ''}")

    @cached_property
    def voice(self) -> str:
        """Whose words it is, as its clauses name it."""
        return normalised(self.source.locator.voice() or "")

    @cached_property
    def speaker(self) -> tuple[Word, ...]:
        """The words of its voice's name."""
        return tuple(word for clause in read(self.voice, self.language) for word in clause.words)

    @cached_property
    def label(self) -> str:
        """The names of its place."""
        names = self.source.locator.names()
        return " ".join(f"page {name}" if kind == "page" else name for kind, name in names.items())

    @cached_property
    def whole(self) -> str:
        """Its text, its surroundings and its place."""
        return f"{self.source.text}\n{self.source.context or ''}\n{self.label}"

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Of its own text."""
        return read(self.source.text, self.language, self.voice)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The terms of its text, its surroundings and its place."""
        place = (*read(self.label, self.language), *read(self.label, ENGLISH))
        terms = {word.term for clause in (*self.clauses, *place) for word in clause.words}
        if self.source.context:
            around = self._tokens_of(self.source.context) - self._tokens_of(self.source.text)
            more = read(" ".join(sorted(around)), self.language) if around else ()
            terms |= {word.term for clause in more for word in clause.words}
        return Vocabulary(terms)

    @staticmethod
    def _tokens_of(text: str) -> frozenset[str]:
        return frozenset(tokens(normalised(text)))

    @cached_property
    def words(self) -> frozenset[str]:
        """All words, in normal form: what a name is looked for among."""
        return frozenset(
            part
            for token in tokens(normalised(self.whole))
            for part in (token, *token.split("-"), token.removesuffix("'s"))
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that it has, in normal form."""
        return frozenset(normalised(word.shown) for clause in self.clauses for word in clause.words if word.name)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its numbers, in order."""
        return quantities(self.whole, doubtful=True)

    @cached_property
    def clocks(self) -> tuple[Clock, ...]:
        """Its times of day."""
        return clocks(self.whole)

    @cached_property
    def numbers(self) -> dict[str, frozenset[str]]:
        """Its numbers, each with the units that it stands with."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for quantity in self.quantities:
            found[quantity.value].add(quantity.unit)
        return {value: frozenset(units) for value, units in found.items()}


def rarity(word: str, sources: Sequence[Known]) -> float:
    """A word's weight in (0.5, 1]: what all the passages speak of tells less which of them says something."""
    count = sum(word in source.words for source in sources)
    return 1 - 0.5 * max(0, count - 1) / len(sources)
