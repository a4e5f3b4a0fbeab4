"""Sentences that repeat a passage nearly word by word, with one word exchanged for another."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from cicada.citations.claim import Claim
from cicada.citations.codes import Objection
from cicada.citations.english_tables import STOP
from cicada.citations.known import Known
from cicada.citations.other_tables import stop_words
from cicada.citations.reading import ENGLISH, term_in
from cicada.citations.terms import alike

MIN_REPEATED = 0.65
"""The share of a sentence's words that one of the passage's has in the same order, for it to repeat that one."""
MIN_REPEATED_ELSEWHERE = 0.7
"""The same outside English, of which no table has the synonyms."""
MIN_SHARED = 0.5
"""The same, whatever their order: below it no order is looked at."""
MIN_WORDS = 3
"""Repeated words that carry meaning, at least."""
_KEPT = 128
_SENTENCE = re.compile(r"[.!?;\n]+(?=\s|$)|[。！？；]|\s[|]\s")
_CLAUSES = re.compile(r",\s+(?:but|and|while|whereas|aber|und|mais|et|pero|y|ma|e|maar|en)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’.,:-][^\W_]+)*")
_SWAPPED = 2
_SOMEBODY = "\x01"
_PARTICLES = frozenset("off up out back down over away on".split())
"""Words that make another verb of the one before: *called off*."""
_PERSONS = {
    **dict.fromkeys("i me he him she her they them we us you himself herself themselves myself".split(), "\x01"),
    **dict.fromkeys("my mine his hers their theirs our ours your".split(), "\x02"),
    **dict.fromkeys("is are was were be been being am".split(), "\x03"),
    **dict.fromkeys("has have had".split(), "\x04"),
    **dict.fromkeys("a an the this that these those its".split(), "\x05"),
    "her": "\x01", "shall": "must", "cannot": "can't",
}  # fmt: skip
"""Words that change where somebody's words are told by somebody else."""


def exchanged_word(claim: Claim, cited: Sequence[Known]) -> Objection | None:
    """The one word that a claim has in place of another of a passage's sentence; None where it is told freely.

    A sentence that says something else than its source mostly has one word exchanged; one that says the same in other
    words has more of them, or another order. Synonyms and forms of one word are no exchange.
    """
    if claim.unspaced:
        return None
    parts = _CLAUSES.split(claim.told)
    for told in (claim.told, *(parts if len(parts) > 1 else ())):
        mine = _words(told)
        bag = {word.folded for word in mine}
        for theirs in (one for known in cited for one in _sentences(known.source.text)):
            if len(mine) <= MIN_WORDS or len(bag & {word.folded for word in theirs}) < len(bag) * MIN_SHARED:
                continue
            found = _exchanged(mine, theirs, claim.language)
            if found is not None:
                return Objection("contradicted", f"the passage says {found[1]}, where the sentence says {found[0]}")
    return None


class _Word:
    __slots__ = ("folded", "shown")

    def __init__(self, shown: str) -> None:
        self.shown = shown
        low = shown.lower().replace("’", "'").removesuffix("'s")
        self.folded = _PERSONS.get(low, low)


def _words(text: str) -> list[_Word]:
    return [_Word(shown) for shown in _WORD.findall(unicodedata.normalize("NFKC", text))]


@lru_cache(_KEPT)
def _sentences(text: str) -> tuple[tuple[_Word, ...], ...]:
    return tuple(tuple(_words(part)) for part in _SENTENCE.split(text) if part.strip())


def _exchanged(mine: Sequence[_Word], theirs: Sequence[_Word], language: str) -> tuple[str, str] | None:
    apart = [(one, other) for one, other in zip(mine, theirs, strict=False) if one.folded != other.folded]
    if len(mine) == len(theirs) and len(apart) == _SWAPPED:
        (one, other), (third, fourth) = apart
        if (one.folded, other.folded) == (fourth.folded, third.folded):
            return one.shown, other.shown
    stop = STOP if language == ENGLISH else stop_words(language)
    matcher = SequenceMatcher(None, [word.folded for word in mine], [word.folded for word in theirs], autojunk=False)
    codes = matcher.get_opcodes()
    equal = sum(end - start for kind, start, end, _, _ in codes if kind == "equal")
    repeated = sum(
        _carries(word, stop) for kind, start, end, _, _ in codes if kind == "equal" for word in mine[start:end]
    )
    if equal < len(mine) * (MIN_REPEATED if language == ENGLISH else MIN_REPEATED_ELSEWHERE) or repeated < MIN_WORDS:
        return None
    exchanges: list[tuple[_Word, _Word]] = []
    for kind, start, end, there, until in codes:
        if kind not in ("replace", "delete"):
            continue
        here = [word for word in mine[start:end] if _carries(word, stop)]
        rivals = [word for word in theirs[there:until] if _carries(word, stop)]
        if len(here) > len(rivals) and any(word.folded == _SOMEBODY for word in theirs[there:until]):
            here = [word for word in here if not _is_name(word)]
        if any(word.folded in _PARTICLES for word in mine[start : end + 1]):
            return None
        if not here:
            continue
        if len(here) != 1 or len(rivals) != 1:
            return None
        exchanges.append((here[0], rivals[0]))
    lone = [pair for pair in exchanges if not _same(*pair, language)]
    if len(lone) == 1 and len(exchanges) == 1:
        ((mine_alone, theirs_alone),) = lone
        if _is_name(mine_alone) and not _is_name(theirs_alone):
            return None
        return mine_alone.shown, theirs_alone.shown
    swapped = {(one.folded, other.folded) for one, other in lone}
    return next(
        ((one.shown, other.shown) for one, other in lone if (other.folded, one.folded) in swapped),
        None,
    )


def _carries(word: _Word, stop: frozenset[str]) -> bool:
    return word.folded not in stop and word.folded[0] > "\x05" and not word.folded[0].isdigit() and len(word.folded) > 1


def _is_name(word: _Word) -> bool:
    return word.shown[:1].isupper()


def _same(one: _Word, other: _Word, language: str) -> bool:
    """Whether two words are one, forms of one, or synonyms."""
    first, second = (term_in(word.folded, language) for word in (one, other))
    return first == second or alike(first, second) or first[:4] == second[:4]
