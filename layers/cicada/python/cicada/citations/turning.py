"""Whether a passage says the opposite: denied, exchanged for an opposite, of more or fewer, required or allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cicada.citations.clauses import ANY, Clause, Word
from cicada.citations.codes import Objection
from cicada.citations.english_terms import CONVERSE, OPPOSITES
from cicada.citations.number_words import UNITS
from cicada.citations.other_tables import UNSPACED_OPPOSITES, opposites
from cicada.citations.reading import ENGLISH
from cicada.citations.roles import exchanged, mirrored, other_subject
from cicada.citations.terms import matched

MIN_ALIKE = 0.5
"""The share of a clause's words that a clause of the passage must have, for one to speak against the other."""
MIN_ALIKE_SHORT = 0.3
"""The same, where the clause of the passage is a short one of whose own words half are in the sentence."""
MIN_DENIED = 0.6
"""The same, for a denial."""
NEARLY_ALL = 0.75
"""From this share on a denial counts whatever it stands before."""
_ALL_BUT_ONE = 0.9
"""The same, of a denial of something that the other clause does not have."""
_MIN_TOLD = 2
"""Words of a clause that is one of several: *the engine that…* says nothing yet."""
_TURNING_WEIGHT = 0.5
_PARTS = frozenset("half quarter".split())
_OF_LEVELS = frozenset("only few less fewer most more least".split())
_UNSPACED = frozenset(frozenset((f"\t{one}", f"\t{other}")) for one, other in UNSPACED_OPPOSITES)
_EXCHANGED_LEVELS = frozenset(
    pair
    for line in """
    all counted · all share · most counted · none counted · none share · all some · all few · all most · all half
    all only · all none · most some · most few · most half · most none
    some all · some most · some none · some only · half all · half most · half none · few all · few most
    none all · none some · none few · none only · only all · only some · only none
    """.strip().split("\n")
    for group in line.split("·")
    for pair in (tuple(group.split()),)
)


@dataclass(frozen=True)
class _Against:
    """Why a clause of the passage speaks against one of the sentence."""

    reason: str
    turned: tuple[str, ...] = ()
    """The sentence's terms that are turned: a clause of the passage that says the same must have them."""


@dataclass(frozen=True)
class _Compared:
    """A clause of the sentence beside one of the passage."""

    share: float
    """Of the sentence's clause, in [0, 1]."""
    near: bool
    """Whether they speak of the same thing."""
    other: Clause
    against: _Against | None


def contradiction(
    claim: Sequence[Clause], passage: Sequence[Clause], known: Callable[[str], bool], language: str
) -> Objection | None:
    """What the passage says against the sentence, or None.

    A clause of the sentence is held against the clause of the passage that has most of its words; it is contradicted
    if that one says the opposite and no clause that says the same has as many.

    Args:
        claim: the sentence's clauses.
        passage: those of the passages that it cites.
        known: tells of a term whether these passages have it.
        language: the sentence's, ISO 639-3.
    """
    doubtful = frozenset().union(*(clause.doubtful for clause in claim))
    for clause in claim:
        if all(
            word.turning or word.name or word.term.startswith("#") for word in clause.words
        ) or _only_names_a_speaker(clause):
            continue
        if len(claim) > 1 and sum(not word.turning for word in clause.words) < _MIN_TOLD:
            continue
        found = [_compare(clause, other, known, language, doubtful) for other in passage]
        for one in sorted(found, key=lambda one: -one.share):
            if one.against is not None and one.near and one.share > _agreeing(found, one.against.turned):
                return Objection("contradicted", one.against.reason)
    return None


def _only_names_a_speaker(clause: Clause) -> bool:
    return len(clause.words) == 1 and clause.words[0].opens and not (clause.negations or clause.levels)


def _agreeing(found: Sequence[_Compared], turned: Sequence[str]) -> float:
    return max(
        (one.share for one in found if one.against is None and all(matched(term, one.other.terms) for term in turned)),
        default=0.0,
    )


def _compare(
    clause: Clause, other: Clause, known: Callable[[str], bool], language: str, doubtful: frozenset[str]
) -> _Compared:
    terms = other.terms
    total = found = 0.0
    lone: list[Word] = []
    for word in clause.words:
        weight = _TURNING_WEIGHT if word.turning else 1.0
        total += weight
        if matched(word.term, terms):
            found += weight
        else:
            lone.append(word)
    if not found:
        return _Compared(0.0, False, other, None)
    size = sum(_TURNING_WEIGHT if word.turning else 1.0 for word in other.words)
    share = found / total
    near = share >= MIN_ALIKE or (share >= MIN_ALIKE_SHORT and found >= size / 2)
    return _Compared(
        share, near, other, _against(clause, other, lone, share, known, language, doubtful) if near else None
    )


def _against(
    clause: Clause,
    other: Clause,
    lone: Sequence[Word],
    share: float,
    known: Callable[[str], bool],
    language: str,
    doubtful: frozenset[str],
) -> _Against | None:
    opposed = list(_opposed(clause, other, lone, language))
    swapped = exchanged(clause, other, language)
    if swapped is not None and swapped.compares and opposed:  # taller than the church: the church is shorter
        opposed, swapped = opposed[1:], None
    opposed = [
        (one, two)
        for one, two in opposed
        if frozenset((one.term, two.term)) not in CONVERSE or not mirrored(clause, one, other, two)
    ]
    cancelled = [pair for pair in opposed if (pair[0].term in clause.negations) != (pair[1].term in other.negations)]
    if cancelled:  # is not covered: is excluded
        return None
    denied = _denied(clause, other, share, doubtful)
    if (denied is not None) != bool(len(opposed) % 2):
        if opposed:
            mine, theirs = opposed[0]
            return _Against(f"the passage says {theirs.shown.strip()}, not {mine.shown.strip()}", (mine.term,))
        reason = "the passage says it, and the sentence denies it" if clause.negations else "the passage denies it"
        return _Against(reason, (denied,) if denied else ())
    if denied is not None or opposed:
        return None
    told = _of_levels(clause, other) or _of_modes(clause, other)
    if told is not None:
        return _Against(told)
    if swapped is not None:
        return _Against(swapped.reason)
    subject = other_subject(clause, other, lone, known)
    return _Against(subject.reason, subject.terms) if subject else None


def _denied(clause: Clause, other: Clause, share: float, doubtful: frozenset[str]) -> str | None:
    """The term that one of the two clauses denies and the other does not; empty for all that it says. None for none."""
    if doubtful - other.doubtful or other.doubtful - doubtful or share < MIN_DENIED:
        return None
    if clause.negations and other.negations:
        return _denied_apart(clause, other)
    if bool(clause.negations) == bool(other.negations):
        return None
    denying, stating = (clause, other) if clause.negations else (other, clause)
    if "until" in stating.terms:  # as long as it is not shipped: until it is shipped
        return None
    terms = stating.terms
    named = [head for head in denying.negations if head not in ("", ANY)]
    for head in denying.negations:
        if head in ("", ANY):
            return ""
        if matched(head, terms):
            return head if denying is other else ""
    return "" if share >= (_ALL_BUT_ONE if named else NEARLY_ALL) else None


def _denied_apart(clause: Clause, other: Clause) -> str | None:
    """What the sentence denies and the passage states, where the passage denies something else."""
    if not all(head not in ("", ANY) for head in (*clause.negations, *other.negations)):
        return None
    terms = other.terms
    for head in clause.negations:
        if matched(head, terms) and not matched(head, other.negations):
            if any(matched(one, clause.terms) for one in other.negations):
                return None
            return ""
    return None


def _opposed(clause: Clause, other: Clause, lone: Sequence[Word], language: str) -> Iterator[tuple[Word, Word]]:
    """Pairs of words of which each stands in one clause alone, and one is the other's opposite."""
    pairs = OPPOSITES if language == ENGLISH else opposites(language) | _UNSPACED
    own = Counter(word.term for word in clause.words)
    counts = Counter(word.term for word in other.words)
    beyond = [word for word in other.words if not matched(word.term, own) or counts[word.term] > own[word.term] > 0]
    used: set[str] = set()
    for word in lone:
        for rival in beyond:
            if rival.term in used or word.owner or rival.owner or (_measures(word, clause) and _measures(rival, other)):
                continue
            if frozenset((word.term, rival.term)) in pairs:
                used.add(rival.term)
                yield word, rival
                break


def _measures(word: Word, clause: Clause) -> bool:
    """Whether a word is the unit of a number: what the two come to is compared elsewhere."""
    if word.shown.lower() not in UNITS:
        return False
    at = next(at for at, one in enumerate(clause.words) if one is word)
    return at > 0 and (clause.words[at - 1].term.startswith("#") or clause.words[at - 1].shown.lower() in _PARTS)


def _of_levels(clause: Clause, other: Clause) -> str | None:
    if clause.levels & other.levels or (clause.doubtful ^ other.doubtful) - _OF_LEVELS:
        return None
    for one in sorted(clause.levels):
        for level in sorted(other.levels):
            if (one, level) in _EXCHANGED_LEVELS:
                return f"the passage speaks of {level}, not of {one}"
    return None


def _of_modes(clause: Clause, other: Clause) -> str | None:
    if bool(clause.negations) != bool(other.negations) or "only" in clause.levels | other.levels:
        return None
    if "must" in clause.modes and "may" in other.modes and "must" not in other.modes:
        return "the passage allows it, and does not require it"
    if "may" in clause.modes and "must" in other.modes and "may" not in other.modes:
        return "the passage requires it, and does not only allow it"
    if "perhaps" in other.modes and not clause.modes:
        return "the passage only says that it may be so"
    return None
