"""Whether two things that a claim puts in an order stand in the other order in a passage."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cicada.citations.claim import Claim
from cicada.citations.codes import Objection
from cicada.citations.known import Known
from cicada.citations.segments import Segment, parts_of, segment_of
from cicada.citations.terms import matched

_THEN = re.compile(
    r"(?:,|;|\band\b|\bund\b|\bet\b|\by\b|\be\b)\s+(?:(?:only |and |und |et )?(?:then|afterwards|later|"
    r"subsequently|dann|"
    r"danach|anschließend|puis|ensuite|luego|después|poi|quindi|daarna|toen))\b|\b(?:was|were|is|are) followed by\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:before|prior to|bevor|ehe|avant (?:de|d'|que)|antes de(?: que)?|prima (?:di|che)|voordat)(?=\s|')",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\b(?:after|once|nachdem|après (?:que|avoir|être)|después de(?: que)?|dopo (?:che|aver)|nadat)\s", re.IGNORECASE
)
_ORDERED = re.compile(
    r"\b(?:first|then|later|next|afterwards|finally|subsequently|followed|since|until|eventually|zuerst|"
    r"zunächst|erst|dann|"
    r"danach|später|anschließend|schließlich|seit|d'abord|puis|ensuite|enfin|plus tard|depuis|primero|luego|después|"
    r"finalmente|desde|más tarde|poi|quindi|infine|eerst|daarna|later)\b|\b1\d{3}\b|\b20\d{2}\b",
    re.IGNORECASE,
)
_TURNED = re.compile(
    r"\b(?:before|after|previously|formerly|earlier|bevor|nachdem|vorher|zuvor|avant|après|auparavant|antes|"
    r"dopo|prima|después de|ehe|nadat|"
    r"voordat|had)\b",
    re.IGNORECASE,
)
_NUMBER_WEIGHT = 2
_MAX_PLACES = 2


def other_order(claim: Claim, cited: Sequence[Known]) -> Objection | None:
    """Two things that a passage tells in the other order than the claim has them; None where it does not tell."""
    events = _events(claim.told)
    if events is None or claim.unspaced:
        return None
    first, second = (segment_of(event, claim.language) for event in events)
    for known in cited:
        parts = parts_of(known.source.text, known.language)
        at, then = _places(first, second, parts), _places(second, first, parts)
        if at is None or then is None or at[0] <= then[1]:
            continue
        between = " ".join(part.text for part in parts[then[0] : at[1] + 1])
        if _ORDERED.search(between) and not _TURNED.search(between):
            return Objection("contradicted", "the passage tells it in the other order")
    return None


def _events(told: str) -> tuple[str, str] | None:
    """What comes first and what comes second, by the claim's only word for an order."""
    found = [
        (match, turned)
        for pattern, turned in ((_THEN, False), (_BEFORE, False), (_AFTER, True))
        for match in pattern.finditer(told)
    ]
    if len(found) != 1:
        return None
    match, turned = found[0]
    one, other = told[: match.start()], told[match.end() :]
    if not one.strip():  # After A, B
        one, comma, other = other.partition(",")
        if not comma:
            return None
        return (one, other) if turned else (other, one)
    return (other, one) if turned else (one, other)


def _places(event: Segment, rival: Segment, parts: Sequence[Segment]) -> tuple[int, int] | None:
    """The first and the last part of the passage with most words that are an event's own."""
    counts = Counter(term for part in parts for term in part.terms)
    own = [term for term in event.terms if term not in rival.terms]
    scores = [
        sum(
            (_NUMBER_WEIGHT if term.startswith("#") else 1)
            for term in own
            if matched(term, part.terms) and counts[term] < _NUMBER_WEIGHT
        )
        for part in parts
    ]
    best = max(scores, default=0)
    if not best or scores.count(best) > _MAX_PLACES:
        return None
    return scores.index(best), len(scores) - 1 - scores[::-1].index(best)
