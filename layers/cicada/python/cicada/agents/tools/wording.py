"""Whether a text has the words of another: what a model would keep as a fact must have been said."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cicada.citations.english_tables import NEGATIONS as ENGLISH_NEGATIONS
from cicada.citations.language import language_of
from cicada.citations.reading import read
from cicada.guards.other_languages import NEGATIONS
from cicada.index.lexical.stopwords import FREQUENT
from cicada.index.lexical.words import terms_of
from cicada.profiles.rules import folded
from cicada.text.tokens import normalised, tokens

MAX_TOLD = 6
"""Words that a message to a model names: enough to see what is wrong."""
_SHORT = 3
"""Letters of a word that can be another one in another language: *en*, *et*, *no*."""
PLAIN_NEGATIONS = frozenset(
    word for word in ENGLISH_NEGATIONS.union(*NEGATIONS.values()) if len(word) > _SHORT or word == "not"
)
"""Words of negation, in any language that is known, which are hardly anything else in another."""
_ENGLISH = "eng"
_PARTS = re.compile(r"[.!?;:,。！？；：，、\n]+|\b(?:but|and|that|und|aber|sondern|dass|mais|pero|sino|que|maar|dat)\b")
"""Where a text goes on with something that a negation before it does not deny."""
_EVERYTHING_BUT = re.compile(r"\b(?:any|every)(?:thing|one|body)\s+but\b", re.IGNORECASE)
"""It denies what follows it."""
_ENGLISH_EMPTY = frozenset(
    "a an the am is are was were be been being has have had do does did and that this these those it its he him his "
    "she her hers they them their i me my mine you your yours we us our of to in on at as for with by from who "
    "which".split()
)
"""Words that a fact can be told with or without: no *not*, no *before*, no *all*."""


def lacking(words: str, *texts: str) -> tuple[str, ...]:
    """The words of a text that none of the others has in any inflection; numbers and negations are words too.

    Words that carry no meaning of their own are left out, unless there are no others. What has no words at all, such as
    an emoji, is lacking as a whole where none of the texts has it as it is.
    """
    if not tokens(normalised(words)):
        return () if any(folded(words) in folded(text) for text in texts) else (words,)
    language = language_of(" ".join((*texts, words)))
    there = {term for text in texts for token in tokens(normalised(text)) for term in _terms(token, language)}
    return tuple(word for word in _content(words, language) if not there.issuperset(terms_of(word, language).parts))


def share_of(words: str, *texts: str) -> float:
    """The share, in [0, 1], of a text's words that others have: 0 where a number or a negation is missing."""
    language = language_of(" ".join((*texts, words)))
    missing = lacking(words, *texts)
    if any(word[0].isdigit() or word in _negations(language) for word in missing):
        return 0.0
    count = len(_content(words, language))
    return 1 - len(missing) / count if count else 0.0


def denied(words: str, text: str) -> bool:
    """Whether a text says of another's words that they are not so, and the other does not say *not*."""
    words, text = (_EVERYTHING_BUT.sub("not", one) for one in (words, text))
    language = language_of(f"{text} {words}")
    claimed, said = read(words, language), read(text, language)
    if any(clause.negations for clause in claimed) or _has_negation(words, language):
        return False
    terms = {term for clause in claimed for term in clause.terms}
    here = [clause for clause in said if clause.terms & terms]
    if any(terms & {*clause.negations} for clause in here):
        return not any(clause.terms >= terms and not clause.negations for clause in here)
    holding = [part for part in _PARTS.split(text) if not lacking(words, part)]
    return bool(holding) and all(_has_negation(part, language) for part in holding)


def _has_negation(text: str, language: str) -> bool:
    """In its language, and in any other: a short text does not tell its own."""
    return not (PLAIN_NEGATIONS | _negations(language)).isdisjoint(tokens(normalised(text)))


def _content(text: str, language: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(tokens(normalised(text))))
    empty = _ENGLISH_EMPTY if language == _ENGLISH else FREQUENT.get(language, frozenset())
    kept = tuple(token for token in found if token not in empty or token in _negations(language))
    return kept or found


def _terms(token: str, language: str) -> Iterable[str]:
    terms = terms_of(token, language)
    return (*terms.parts, *(term for term, _ in terms.beside))


def _negations(language: str) -> frozenset[str]:
    return ENGLISH_NEGATIONS if language == _ENGLISH else frozenset(NEGATIONS.get(language, frozenset()))
