"""How a passage bears on a statement: on which side it stands, and how strongly."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cicada.agents.tools.deeds import Deed, Told, deed_in, names_missing
from cicada.citations.checking import Checker
from cicada.citations.clauses import Word
from cicada.citations.english_terms import OPPOSITES
from cicada.citations.known import Known
from cicada.citations.language import language_of
from cicada.citations.reading import ENGLISH, read
from cicada.corpus.passages import ScriptLocator
from cicada.profiles.record import Side
from cicada.profiles.rules import claim_of, clipped
from cicada.protocol.events import Reason, Source
from cicada.text.tokens import normalised

STRONG = 0.7
MODERATE = 0.4
"""Strengths from which evidence is called so; what is below is weak, and no verdict rests on it alone."""
OFF_ITS_SEARCH = 0.8
"""By what the strength of a passage is multiplied that the search for its own side did not find."""
GATHERING = "gather_evidence"
_SENTENCES = re.compile(r"[^.!?。！？؟]*[^\s.!?。！？؟][^.!?。！？؟]*[.!?。！？؟]*[\"'”’»)]*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_STATEMENT_CHARS = 60
"""Of a statement, as a reason names it."""
_DIGEST_CHARS = 16
_AT_MOST_MODERATE = STRONG - 0.01
_AT_MOST_WEAK = MODERATE - 0.01
_SIDES: tuple[Side, Side] = ("for", "against")


@dataclass(frozen=True)
class Found:
    """A passage, and how well each side's search found it."""

    source: Source
    scores: Mapping[Side, float]
    """Calibrated, in [0, 1]; a side that did not find it is absent."""


@dataclass(frozen=True)
class Weighed:
    """A passage and what it says of a statement."""

    source: Source
    side: Side | None
    """None where it is near to the statement and says neither."""
    strength: float
    """In [0, 1]; 0 without a side."""


def weigh(statement: str, found: Found) -> Weighed:
    """On which side a passage stands: one, or none; never both.

    The side is read from the passage by the rules that check citations: a passage that holds what the statement says
    speaks for it, one that denies it, says the opposite or says it of somebody else speaks against it. Its own words
    and its speaker count, not its neighbours or its chapter's title: half of the statement's words beside names, and
    two at least where there are two, must be among them, and for a passage that speaks for it every name, too. A
    question says neither, and so does a passage that denies something where the statement does not, or the other way
    round, and is no contradiction. In English the deed is compared besides, as :mod:`cicada.agents.tools.deeds` reads
    it: without the statement's verb, or one that says the same, a passage is weak; where somebody else does it, it
    speaks against the statement, moderately at most; where nobody is told who does it, it says neither. Its strength
    is the calibrated score of the search, times the share of the statement's words that it has; less where only the
    other side's search found it.
    """
    source = found.source
    alone = _alone(source)
    share = _share(statement, alone)
    if _only_asks(source.text) or not share:
        return Weighed(source, None, 0.0)
    finding = Checker([alone]).check(statement, alone, [alone])
    side, ceiling = _side(statement, alone, None if finding.objection is None else finding.objection.code)
    if side is None:
        return Weighed(source, None, 0.0)
    score = found.scores.get(side, max(found.scores.values()) * OFF_ITS_SEARCH)
    held = share if finding.objection is not None else min(share, finding.similarity)
    return Weighed(source, side, round(min(ceiling, min(1.0, score) * held), 2))


def _side(statement: str, source: Source, objection: str | None) -> tuple[Side | None, float]:
    """The side that a passage stands on, with what its strength is at most."""
    voice = source.locator.voice() or ""
    english = language_of(statement) == ENGLISH
    told = deed_in(statement, source.text, voice) if english else Told(Deed.SAME)
    denies = _denies(statement)
    alike = told.denied == denies if english and told.deed == Deed.SAME else _denies_alike(statement, source)
    if told.deed == Deed.OTHERS:
        # What somebody else has not done, or has done where the statement denies it, tells nothing of whom it names.
        return (None, 0.0) if told.denied or denies else ("against", _AT_MOST_MODERATE)
    if objection == "contradicted":
        # A denial of something beside the deed is none of the deed.
        beside = english and told.deed != Deed.UNTOLD and not (told.denied or denies)
        if beside and not _denies_alike(statement, source):
            return None, 0.0
        if told.deed == Deed.UNTOLD and _denies_alike(statement, source) and not _opposed(statement, source):
            return None, 0.0  # another deed is not the opposite of this one
        plain = told.deed == Deed.SAME or told.denied or (denies and told.deed != Deed.UNTOLD)
        return "against", 1.0 if plain else _AT_MOST_MODERATE
    if objection == "name_missing" and told.deed == Deed.SAME and english:
        objection = None  # names are compared below, where a part of one is enough
    if objection is not None or not alike or told.deed == Deed.UNKNOWN or _lacks_name(statement, source):
        return None, 0.0
    return "for", 1.0 if told.deed == Deed.SAME else _AT_MOST_WEAK


def _alone(source: Source) -> Source:
    """A passage with nothing but its own words and its speaker: titles name what many passages below them do not."""
    locator = source.locator
    if isinstance(locator, ScriptLocator):
        bare = {"episode_name": "", "episode_id": "", "chapter_id": "", "message_id": ""}
        locator = locator.model_copy(update=bare)
    return source.model_copy(update={"context": None, "locator": locator})


def _share(statement: str, source: Source) -> float:
    """The share of the statement's words, beside names, that a passage has; 0 where that is too little for a side."""
    passage = Known(source)
    words = [word for clause in read(statement, language_of(statement)) for word in clause.words]
    plain = {written for written in _WORD.findall(source.text) if written.islower()}
    meant = {word.term for word in words if not (word.name or word.turning or word.owner or _opens_named(word, plain))}
    held = sum(term in passage.vocabulary or passage.vocabulary.akin(term) for term in meant)
    if held < max(math.ceil(len(meant) / 2), min(2, len(meant))):
        return 0.0
    return held / len(meant) if meant else 1.0


def _denies_alike(statement: str, source: Source) -> bool:
    """Whether statement and passage both deny something, or neither does, where they speak of the same."""
    claimed = read(statement, language_of(statement))
    terms = {term for clause in claimed for term in clause.terms}
    said = [clause for clause in Known(source).clauses if clause.terms & terms]
    return any(clause.negations for clause in claimed) == any(clause.negations for clause in said)


def _opens_named(word: Word, plain: Collection[str]) -> bool:
    """Whether a sentence's first word may be a name: the passage does not have it in small letters."""
    return word.opens and word.shown[:1].isupper() and word.shown.lower() not in plain


def _opposed(statement: str, source: Source) -> bool:
    """Whether an English passage has the opposite of a word of a statement."""
    claimed = {term for clause in read(statement, ENGLISH) for term in clause.terms}
    said = {term for clause in Known(source).clauses for term in clause.terms}
    return any(frozenset((one, other)) in OPPOSITES for one in claimed - said for other in said - claimed)


def _lacks_name(statement: str, source: Source) -> bool:
    """Whether a passage has not a name of a statement, and is not spoken by its bearer."""
    language, voice = language_of(statement), source.locator.voice() or ""
    if language == ENGLISH:
        return names_missing(statement, source.text, voice)
    there = {normalised(word) for word in _WORD.findall(f"{source.text} {voice}")}
    words = (word for clause in read(statement, language) for word in clause.words)
    names = (word.shown for word in words if word.name or (word.opens and word.shown[:1].isupper()))
    return any(normalised(name) not in there for name in names)


def _denies(statement: str) -> bool:
    return any(clause.negations for clause in read(statement, language_of(statement)))


def _only_asks(text: str) -> bool:
    return all(sentence.rstrip("\"'”’»)").endswith(("?", "？", "؟")) for sentence in _SENTENCES.findall(text))


def strength_words(strength: float) -> str:
    """``strong``, ``moderate`` or ``weak``."""
    if strength >= STRONG:
        return "strong"
    return "moderate" if strength >= MODERATE else "weak"


def part_of(source: Source) -> str:
    """The episode that evidence belongs to, or the document: what holds in one need not hold in another."""
    locator = source.locator
    return f"{locator.episode_id} · {locator.episode_name}" if isinstance(locator, ScriptLocator) else locator.label()


def balance_words(weighed: list[Weighed]) -> str:
    """What the evidence of one part, or of all, amounts to: numbers, and plain words about how much that is."""
    told = []
    for side in ("for", "against"):
        strengths = [one.strength for one in weighed if one.side == side]
        if strengths:
            best = max(strengths)
            told.append(f"{len(strengths)} {side} it, the strongest {strength_words(best)} ({best:.2f})")
        else:
            told.append(f"nothing {side} it")
    words = "; ".join(told)
    strengths = [one.strength for one in weighed if one.side is not None]
    if not strengths:
        return f"{words}. Nothing that was found says either: no verdict can rest on this"
    if max(strengths) < MODERATE:
        return f"{words}. All of it is weak: the verdict can only be open"
    return words


def reason_of(statement: str, weighed: Weighed) -> Reason:
    """Why a gathered passage is among the sources: it tells the side, and of which statement."""
    if weighed.side is None:
        return Reason(kind="tool", name=GATHERING)
    matched = f"{weighed.side}: {statement_named(statement)}"
    return Reason(kind="tool", name=GATHERING, matched=matched, confidence=weighed.strength)


def gathered_for(statement: str, source: Source) -> Weighed | None:
    """What was gathered in this run: a source as evidence for or against this very statement, else None.

    It is read from the source, so that a verdict can be checked wherever the evidence was gathered.
    """
    named = statement_named(statement)
    return next((one for told, one in gathered(source) if told == named), None)


def gathered(source: Source) -> Iterator[tuple[str, Weighed]]:
    """All that a source was gathered as: the statement as :func:`statement_named` names it, and what was weighed."""
    for reason in source.why:
        if (reason.kind, reason.name) != ("tool", GATHERING) or reason.matched is None:
            continue
        told, _, named = reason.matched.partition(": ")
        side: Side | None = next((side for side in _SIDES if side == told), None)
        if side is not None:
            yield named, Weighed(source, side, reason.confidence or 0.0)


def statement_named(statement: str) -> str:
    """A statement on a line of bounded length, with a digest of all of it where it is cut: no other is named so."""
    claim = claim_of(statement)
    if len(claim) <= _STATEMENT_CHARS:
        return claim
    digest = hashlib.sha256(claim.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{clipped(claim, _STATEMENT_CHARS)} #{digest}"
