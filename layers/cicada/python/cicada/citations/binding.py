"""Whether a number, or somebody's words, stand in the passage beside what a claim says them of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cicada.citations.claim import Claim
from cicada.citations.codes import Objection
from cicada.citations.known import Known
from cicada.citations.segments import Segment, parts_of, rows_of, segment_of, sentences_in
from cicada.citations.terms import matched

Number = tuple[str, str]
"""A value and its unit."""
_YEARS = (1000, 2100)


def bound_elsewhere(claim: Claim, cited: Sequence[Known]) -> Objection | None:
    """A number that the passage gives to something else; None where there is none, or no passage tells.

    The parts of the passage that have the claim's number are held against those that have another number of its kind:
    where only the latter have words of the claim, the claim takes one's number for the other.
    """
    if not claim.quantities:
        return None
    told = parts_of(claim.told, claim.language)
    of_claim = segment_of(claim.told, claim.language).numbers
    for known in cited:
        for having, rivals in _levels(known, of_claim):
            for part in told:
                for number in part.numbers & having.keys():
                    if any(_belongs(part, number, having[number], rival, of_claim) for rival in rivals):
                        return Objection("contradicted", f"the passage says {_shown(number)} of something else")
    return None


def _levels(known: Known, of_claim: frozenset[Number]) -> Iterator[tuple[dict[Number, frozenset[str]], list[Segment]]]:
    """The words around each number of the claim, and the parts with other numbers: in rows, sentences, and parts."""
    text, language = known.source.text, known.language
    rows = [segment_of(row, language) for row in rows_of(text)]
    sentences = rows or [one for one in sentences_in(text, language) if one.terms]
    topic = segment_of(text.partition(":")[0], language).terms if ":" in sentences[0].text else frozenset()
    if len(sentences) > 1:
        yield _around(sentences, of_claim, topic), sentences
    if rows:
        return
    for sentence in sentences:
        parts = [one for one in parts_of(sentence.text, language) if one.terms]
        if sum(bool(one.numbers) for one in parts) > 1:
            common = sentence.terms.difference(*(one.terms for one in parts if one.numbers)) | topic
            yield _around(parts, of_claim, common), parts


def _around(
    parts: Sequence[Segment], of_claim: frozenset[Number], common: frozenset[str]
) -> dict[Number, frozenset[str]]:
    return {
        number: common.union(*(one.terms for one in parts if number in one.numbers))
        for number in of_claim
        if any(number in one.numbers for one in parts)
    }


def _belongs(
    part: Segment, number: Number, around: frozenset[str], rival: Segment, of_claim: frozenset[Number]
) -> bool:
    """Whether a part of the claim is about what stands beside another number of the passage."""
    if number in rival.numbers or not any(other not in of_claim and _alike(other, number) for other in rival.numbers):
        return False
    told = [term for term in part.terms if term != f"#{number[0]}"]
    if any(matched(term, around) and not matched(term, rival.terms) for term in told):
        return False
    return any(matched(term, rival.terms) and not matched(term, around) for term in told)


def _shown(number: Number) -> str:
    return f"{number[0]} {number[1]}".strip()


def _alike(one: Number, other: Number) -> bool:
    """Whether two numbers could be taken for each other: of one unit, and both years or none."""
    return one[1] == other[1] and _is_year(one) == _is_year(other)


def _is_year(number: Number) -> bool:
    return number[0].isdigit() and _YEARS[0] <= int(number[0]) <= _YEARS[1]
