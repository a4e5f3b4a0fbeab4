"""Whether passages have the names of a claim."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cicada.citations.claim import Claim
from cicada.citations.clauses import Clause
from cicada.citations.codes import Objection
from cicada.citations.date_names import is_date_name
from cicada.citations.known import Known
from cicada.citations.terms import matched
from cicada.text.tokens import normalised, tokens

_NEARLY_ALL = 0.75
_WEEKEND = re.compile(r"week-?ends?\b|wochenend|fines? de semana|fine settimana|fim de semana|выходн", re.IGNORECASE)
_WEEKEND_DAYS = ("satur", "sunday", "samst", "sonnab", "sonnt", "samedi", "dimanche", "sábad", "sabad", "doming",
                 "sabat", "domenic", "zater", "zond", "суббот", "воскрес")  # fmt: skip


def missing_name(claim: Claim, cited: Sequence[Known], voices: frozenset[str]) -> Objection | None:
    """Who, or which month or day, a claim names that no passage has; None for nobody.

    Args:
        claim: what is held against the passages.
        cited: the passages that it may draw from.
        voices: the speakers of all passages of the answer.
    """
    words = frozenset(word for other in cited for word in other.words)
    said = {word.term for clause in claim.clauses for word in clause.words if not word.owner}
    for clause in claim.clauses:
        for word in clause.words:
            shown = normalised(word.shown)
            if (
                word.term.startswith("#")
                or any(other.vocabulary.has(word.term) for other in cited)
                or all(part in words for part in tokens(shown))
            ):
                continue
            capital = word.shown[:1].isupper()
            if is_date_name(shown, word.term, claim.language, capital=capital):
                if is_of_weekend(shown, cited):
                    continue
                return Objection("number_missing", f"the passage does not mention {word.shown}")
            if word.name and _is_formed(shown, word.term, cited):
                continue
            if word.name or (word.opens and capital and _poses(shown, clause, said, cited, voices)):
                return Objection("name_missing", f"the passage neither is by {word.shown} nor speaks of them")
    return None


def is_of_weekend(shown: str, cited: Sequence[Known]) -> bool:
    """Whether a word in normal form is a day of the weekend, of which a passage speaks."""
    return shown.startswith(_WEEKEND_DAYS) and any(_WEEKEND.search(other.whole) for other in cited)


def _is_formed(shown: str, term: str, cited: Sequence[Known]) -> bool:
    """Whether a word with a capital is a form of a word that the passage has with a small letter, or is spelled so."""
    return any(
        term in other.vocabulary
        and shown not in other.names
        and not any(term == name for name in other.names)
        and all(not name.startswith(shown[:3]) for name in other.names)
        for other in cited
    )


def _poses(shown: str, clause: Clause, said: set[str], cited: Sequence[Known], voices: frozenset[str]) -> bool:
    """Whether a sentence's first word, capital as any first word, stands where the passage has another name."""
    if shown in voices:
        return True
    if any(word.term in said for other in cited for word in other.speaker):
        return False
    rest = [word.term for word in clause.words if not (word.opens or word.turning)]
    if not rest or sum(_has(term, cited) for term in rest) < len(rest) * _NEARLY_ALL:
        return False
    for known in (one for other in cited for one in other.clauses):
        if sum(matched(term, known.terms) for term in rest) >= len(rest) * _NEARLY_ALL and (
            known.first_person or any(word.term not in said and word.name for word in known.words)
        ):
            return True
    return False


def _has(term: str, sources: Sequence[Known]) -> bool:
    return any(term in source.vocabulary for source in sources)
