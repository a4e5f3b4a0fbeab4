"""The words of a query in a text: where they stand, in whatever inflection."""

from __future__ import annotations

from cicada.text.detection import indexed_language
from cicada.text.frequent import FREQUENT
from cicada.text.letters import is_unspaced, written_word
from cicada.text.normal import normalised
from cicada.text.scripts import clusters, pairs
from cicada.text.terms import terms_of
from cicada.text.tokens import tokens

Span = tuple[int, int]
"""Start and end in characters, the end excluded."""


class QueryWords:
    """A query's content words, by the analysis that searches them."""

    def __init__(self, query: str) -> None:
        """Take the query."""
        self._tokens = tokens(normalised(query))
        self._of: dict[str, frozenset[str]] = {}

    def spans(self, text: str, language: str = "") -> list[Span]:
        """Where a text has words of the query, in order; neighbouring characters of unspaced scripts as one.

        Args:
            text: to look through.
            language: of it (ISO 639-3), as :func:`language_of` tells it of the whole that it is part of; told by the
                text alone when empty.
        """
        language = language or language_of(text)
        wanted = self._terms(language)
        found: list[Span] = []
        for match in written_word().finditer(text):
            piece = match.group()
            if is_unspaced(piece):
                found += _spans_of_run(piece, match.start(), wanted)
            elif wanted & _terms(normalised(piece), language):
                found.append(match.span())
        return found

    def matched(self, text: str, language: str = "") -> int:
        """How many different words of the query a text has; arguments as of :meth:`spans`."""
        language = language or language_of(text)
        wanted = self._terms(language)
        return len(wanted & _terms(normalised(text), language))

    def _terms(self, language: str) -> frozenset[str]:
        """The query's terms as a text in a language would have them."""
        if language not in self._of:
            common = FREQUENT.get(language, frozenset())
            content = [token for token in self._tokens if token not in common] or self._tokens
            self._of[language] = frozenset(term for token in content for term in _terms_of(token, language))
        return self._of[language]


def language_of(text: str) -> str:
    """The language that a text is analysed in (ISO 639-3)."""
    return indexed_language(tokens(normalised(text)))


def _terms(text: str, language: str) -> frozenset[str]:
    return frozenset(term for token in tokens(text) for term in _terms_of(token, language))


def _terms_of(token: str, language: str) -> tuple[str, ...]:
    """A token's terms; of a run without spaces its pairs, for single characters say little."""
    terms = terms_of(token, language)
    return terms.parts if is_unspaced(token) else (*terms.parts, *(term for term, _ in terms.beside))


def _spans_of_run(run: str, start: int, wanted: frozenset[str]) -> list[Span]:
    """The stretches of a run that are covered by pairs of the query; a run of one character is a word by itself."""
    characters = clusters(run)
    plain = [normalised(character) for character in characters]
    covered = [len(characters) == 1 and plain[0] in wanted] * len(characters)
    for at, pair in enumerate(pairs(plain)):
        if pair in wanted:
            covered[at] = covered[at + 1] = True
    found: list[Span] = []
    place = start
    for character, is_covered in zip(characters, covered, strict=True):
        end = place + len(character)
        if is_covered and found and found[-1][1] == place:
            found[-1] = (found[-1][0], end)
        elif is_covered:
            found.append((place, end))
        place = end
    return found
