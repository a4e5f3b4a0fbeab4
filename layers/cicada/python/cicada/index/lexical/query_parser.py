"""Parses a query: words, ``"phrases"`` and ``prefix*``. Nothing else is special."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cicada.index.lexical.postings import MAX_PHRASE_POSITIONS
from cicada.text.characters import is_unspaced, normalised
from cicada.text.detection import language_of
from cicada.text.frequent import FREQUENT
from cicada.text.languages import STEMMED
from cicada.text.terms import accent_folded, terms_of
from cicada.text.tokens import tokens

MAX_QUERY_CHARS = 20_000  # the rest of a longer query is ignored
MAX_QUERY_TOKENS = 512  # the rest of its words is ignored

_PHRASE = r"\"([^\"]*)\"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»"
_PREFIX = r"(?<![\w*])(\w(?:[-\w.:@]{0,62}\w)?)\*(?![\w*])"  # bounded: no query may cost its length squared
_SPECIAL = re.compile(f"{_PHRASE}|{_PREFIX}")
_UNKNOWN = ""


@dataclass(frozen=True)
class QueryTerm:
    """What a word becomes in each of the index's languages: alternative terms that count as one."""

    alternatives: tuple[bytes, ...]


@dataclass(frozen=True)
class Prefix:
    """All terms with a prefix, and the stems of the prefix itself, counting as one."""

    prefixes: tuple[bytes, ...]
    alternatives: tuple[bytes, ...]


@dataclass(frozen=True)
class Phrase:
    """Consecutive terms that count as one: the offset and the alternatives of each."""

    steps: tuple[tuple[int, tuple[bytes, ...]], ...]


Clause = QueryTerm | Prefix | Phrase


_terms = lru_cache(maxsize=8192)(terms_of)


@lru_cache(maxsize=8192)
def _looked_up(readings: tuple[tuple[str, str], ...]) -> tuple[QueryTerm, ...]:
    """The terms to look up for a token, given its form in each language."""
    places: dict[tuple[int, int], dict[bytes, None]] = {}
    for language, written in readings:
        terms = _terms(written, language)
        for at, term in enumerate(terms.parts):
            places.setdefault((len(terms.parts), at), {})[term.encode()] = None
        if not is_unspaced(written):
            for code, _ in terms.beside:
                places.setdefault((0, 0), {})[code.encode()] = None
    return tuple(QueryTerm(tuple(alternatives)) for alternatives in places.values())


class QueryAnalyzer:
    """Analyses queries to an index in which some languages are present."""

    def __init__(self, languages: Mapping[str, int]) -> None:
        """Take the number of passages in each language (ISO 639-3)."""
        self._languages = tuple(sorted(languages)) or (_UNKNOWN,)
        self._usual = max(self._languages, key=lambda language: languages.get(language, 0))

    def clauses(self, query: str) -> list[tuple[Clause, int]]:
        """The clauses of any string, and how often it has each.

        The most frequent words of the query's language are left out, unless there are no others or a phrase has them.
        A phrase's words count as words too, unless the query has phrases only: then passages need one of them.
        """
        typed = query[:MAX_QUERY_CHARS]
        clauses: list[Clause] = []
        plain: list[str] = []
        quoted: list[str] = []
        end = 0
        for match in _SPECIAL.finditer(typed):
            plain.append(typed[end : match.start()])
            end = match.end()
            *phrases, prefix = match.groups()
            text = next(text for text in (prefix, *phrases) if text is not None)
            clause = self._phrase(text) if prefix is None else self._prefix(prefix)
            if clause is None:
                plain.append(text)
            else:
                clauses.append(clause)
                quoted.append(text if prefix is None else "")
        plain.append(typed[end:])
        words = " ".join(plain)
        if any(isinstance(clause, Prefix) for clause in clauses) or tokens(normalised(words)):
            clauses += self._words(" ".join((words, *quoted)))
        return list(Counter(clauses).items())

    def _tokens(self, text: str) -> list[dict[str, str]]:
        """The tokens of a text, each in its form in each language."""
        read = tokens(normalised(text))[:MAX_QUERY_TOKENS]
        if "tur" not in self._languages:
            return [dict.fromkeys(self._languages, token) for token in read]
        turkish = tokens(normalised(text, dotless_i=True))[:MAX_QUERY_TOKENS]
        return [
            dict.fromkeys(self._languages, token) | {"tur": dotless}
            for token, dotless in zip(read, turkish, strict=False)
        ]

    def _words(self, text: str) -> Iterator[QueryTerm]:
        read = self._tokens(text)
        several = len(self._languages) > 1
        spoken = language_of(text, self._languages, self._usual) if several else self._usual
        frequent = FREQUENT.get(spoken, frozenset())
        telling = [token for token in read if token[spoken] not in frequent] or read
        for token in telling:
            yield from _looked_up(tuple(token.items()))

    def _prefix(self, text: str) -> Prefix | None:
        """None unless the text is a single token of a script with spaces."""
        read = self._tokens(text)
        if len(read) != 1 or any(map(is_unspaced, read[0].values())):
            return None
        prefixes = {accent_folded(token, language).encode() for language, token in read[0].items()}
        stems = {
            term.encode()
            for language, token in read[0].items()
            if language in STEMMED
            for term in _terms(token, language).parts
            if len(_terms(token, language).parts) == 1
        }
        return Prefix(tuple(sorted(prefixes)), tuple(sorted(stems)))

    def _phrase(self, text: str) -> Phrase | None:
        """None if the text has fewer than two terms."""
        steps: dict[int, dict[bytes, None]] = {}
        for language in self._languages:
            offset = 0
            for token in self._tokens(text):
                terms = _terms(token[language], language)
                for at, term in enumerate(terms.parts):
                    if offset + at < MAX_PHRASE_POSITIONS:
                        steps.setdefault(offset + at, {})[term.encode()] = None
                offset += terms.width
        if len(steps) < 2:
            return None
        return Phrase(tuple((offset, tuple(alternatives)) for offset, alternatives in sorted(steps.items())))
