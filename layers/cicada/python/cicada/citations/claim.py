"""A claim of an answer, read as far as it is needed."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from cicada.citations.clauses import Clause, Word
from cicada.citations.english_tables import INTRODUCING
from cicada.citations.known import Known
from cicada.citations.language import common_language, language_of
from cicada.citations.numbers import Quantity, quantities
from cicada.citations.quotes import plain, quotations, without_quotations
from cicada.citations.reading import read
from cicada.index.lexical.scripts import is_unspaced

FRAME_WORDS = 2
"""Words that carry meaning, names apart, up to which what stands around a quotation only introduces it."""
_EDGES = " .,;:!?…。、"


class Claim:
    """What a sentence, or a part of one, says."""

    def __init__(self, text: str, source: Known) -> None:
        """Read a text, of which ``source`` is the passage that it cites."""
        self.text = text
        label = plain(source.label)
        self.quotes = [quote for quote in quotations(text) if plain(quote).strip(_EDGES) not in label]
        """Its quotations, titles apart."""
        self.told = without_quotations(text) if self.quotes else text
        """What it says outside of quotations."""
        self.language = language_of(self.told, source.language)
        if self.language != source.language:
            self.language = common_language(self.told, source.source.text) or self.language

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """Of what it says outside of quotations; there, without the words that introduce them."""
        clauses = read(self.told, self.language)
        if not self.quotes:
            return clauses
        told = (tuple(word for word in one.words if word.shown.lower() not in INTRODUCING) for one in clauses)
        return tuple(replace(one, words=words) for one, words in zip(clauses, told, strict=True) if words)

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """Words that can support it, each once."""
        words = {word.term: word for clause in self.clauses for word in clause.words if not word.turning}
        if self.quotes:  # what introduces a quotation cannot be told from a claim where a script has no words
            return tuple(word for word in words.values() if not is_unspaced(word.term[:1]))
        return tuple(words.values())

    @cached_property
    def only_quotes(self) -> bool:
        """Whether what stands around its quotations only introduces them: a frame is no claim."""
        told = [word for word in self.content if not (word.name or word.opens or word.term.startswith("#"))]
        return bool(self.quotes) and len(told) <= FRAME_WORDS

    @cached_property
    def unspaced(self) -> bool:
        """Whether most of its words are pairs of characters, of a script without spaces."""
        return sum(is_unspaced(word.term[:1]) for word in self.content) > len(self.content) / 2

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its numbers outside of quotations."""
        return quantities(self.told)
