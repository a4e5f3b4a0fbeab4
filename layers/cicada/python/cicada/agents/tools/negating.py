"""What to search for to find what speaks for a statement, and what speaks against it: by rule, from its words."""

from __future__ import annotations

import re

from cicada.citations.english_terms import OPPOSITES, english_term
from cicada.citations.language import language_of
from cicada.citations.reading import ENGLISH, read
from cicada.guards.other_languages import NEGATIONS

MAX_QUERIES = 3
"""A side."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_AUXILIARY = re.compile(
    r"\b(?:am|is|are|was|were|has|have|had|can|could|will|would|does|do|did|must|should|may|might)\b", re.IGNORECASE
)
_NEGATED = re.compile(r"\s*\b(?:not|never|no longer|cannot)\b|(?<=[a-z])n['’]t\b", re.IGNORECASE)
_SOMEBODY_ELSE = "someone else"


def supporting_queries(statement: str) -> tuple[str, ...]:
    """The statement, and the words that carry its meaning alone."""
    language = language_of(statement)
    content = " ".join(word.shown for clause in read(statement, language) for word in clause.words)
    return _distinct(statement, content)


def contradicting_queries(statement: str) -> tuple[str, ...]:
    """What a passage would say if the statement were wrong.

    Its denial (of a denial: the same without it), a word exchanged for its opposite, and somebody else in the place of
    who is named. The last two in English only, where opposites are known.
    """
    language = language_of(statement)
    if language != ENGLISH:
        return _distinct(_denied_elsewhere(statement, language))
    return _distinct(_denied(statement), *_opposed(statement), *_by_others(statement))


def _denied(statement: str) -> str:
    without = _NEGATED.sub("", statement)
    if without != statement:
        return without
    auxiliary = _AUXILIARY.search(statement)
    if auxiliary is None:
        return f"It is not true that {statement}"
    return f"{statement[: auxiliary.end()]} not{statement[auxiliary.end() :]}"


def _denied_elsewhere(statement: str, language: str) -> str:
    negations = NEGATIONS.get(language, frozenset())
    words = statement.split()
    kept = [word for word in words if word.lower().strip(".,;:!?") not in negations]
    if len(kept) < len(words):
        return " ".join(kept)
    if not negations:
        return _denied(statement)
    return " ".join((statement, min(negations, key=lambda word: (len(word), word))))


def _opposed(statement: str) -> tuple[str, ...]:
    """The statement with the first word that has an opposite exchanged for it."""
    meaning = {word.shown for clause in read(statement, ENGLISH) for word in clause.words if not word.turning}
    for found in _WORD.finditer(statement):
        if found.group() not in meaning:
            continue
        term = english_term(found.group().lower())
        opposites = sorted(other for pair in OPPOSITES if term in pair for other in pair if other != term)
        if opposites:
            return (f"{statement[: found.start()]}{opposites[0]}{statement[found.end() :]}",)
    return ()


def _by_others(statement: str) -> tuple[str, ...]:
    words = (word for clause in read(statement, ENGLISH) for word in clause.words)
    names = (word.shown for word in words if word.name or (word.opens and statement.startswith(word.shown)))
    first = next(names, None)
    if first is None:
        return ()
    return (re.sub(rf"\b{re.escape(first)}\b(?:\s+[^\W\d_a-z]\w+)*", _SOMEBODY_ELSE, statement, count=1),)


def _distinct(*queries: str) -> tuple[str, ...]:
    kept = dict.fromkeys(" ".join(query.split()) for query in queries if query.strip())
    return tuple(kept)[:MAX_QUERIES]
