"""What a source says, read once for all the sentences that cite it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cicada.answering.citations.clauses import Clause, Word
from cicada.answering.citations.numbers import quantities
from cicada.answering.citations.reading import ENGLISH, read
from cicada.answering.citations.terms import Vocabulary
from cicada.index.lexical.detection import SAMPLE_TOKENS, detect
from cicada.index.lexical.languages import STEMMED, UNSTEMMED_SCRIPTS
from cicada.index.lexical.stopwords import EVIDENCE
from cicada.index.lexical.tokens import normalised, tokens
from cicada.protocol.events import Source

_MIN_LEAD = 0.6
"""By how much more a text's frequent words must speak for a language than for the one that it would be read in."""
_NOT_ENGLISH = re.compile(r"[¿¡ßà-öø-ÿœ]", re.IGNORECASE)


def language_of(text: str, otherwise: str = ENGLISH) -> str:
    """The language (ISO 639-3) that a text shows itself to be in; ``otherwise`` where it does not.

    A sentence has few words to tell by: a smaller lead is enough than where a whole document is indexed.
    """
    found = tokens(normalised(text))[:SAMPLE_TOKENS]
    by_script = detect(found)
    evidence: defaultdict[str, float] = defaultdict(float)
    telling: defaultdict[str, set[str]] = defaultdict(set)
    for token in found:
        for language, weight in EVIDENCE.get(token, {}).items():
            evidence[language] += weight
            telling[language].add(token)
    if by_script not in (ENGLISH, otherwise) and by_script not in evidence:
        return by_script
    best = max(evidence, key=lambda language: evidence[language], default=otherwise)
    marked = _NOT_ENGLISH.search(text) is not None
    needed = evidence[otherwise] + (_MIN_LEAD / 2 if marked else _MIN_LEAD)
    enough = evidence[best] >= needed and (marked or len(telling[best]) > 1)  # one word may be a name
    if enough or by_script != ENGLISH:
        return best if enough else by_script
    return otherwise if _is_latin(otherwise) else ENGLISH


def _is_latin(language: str) -> bool:
    script = STEMMED[language].script if language in STEMMED else UNSTEMMED_SCRIPTS.get(language, "latin")
    return script == "latin"


@dataclass(frozen=True)
class Known:
    """A source, read."""

    source: Source

    @cached_property
    def language(self) -> str:
        """Of its text, ISO 639-3."""
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
    def numbers(self) -> dict[str, frozenset[str]]:
        """Its numbers, each with the units that it stands with."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for quantity in quantities(self.whole, doubtful=True):
            found[quantity.value].add(quantity.unit)
        return {value: frozenset(units) for value, units in found.items()}


def rarity(word: str, sources: Sequence[Known]) -> float:
    """A word's weight in (0.5, 1]: what all the passages speak of tells less which of them says something."""
    count = sum(word in source.words for source in sources)
    return 1 - 0.5 * max(0, count - 1) / len(sources)
