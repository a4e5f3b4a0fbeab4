"""From the markers of an answer to citations, each checked against the passage that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cicada.citations.checking import REASON_CODES, Checker, Finding, Objection, ReasonCode
from cicada.citations.judging import CitedClaim, Judge, Judged
from cicada.citations.resolving import NO_NUMBER, resolve
from cicada.citations.sentences import Sentence, abstains, sentences_of
from cicada.protocol.events import Citation, Source
from cicada.protocol.markers import markers_in, without_markers

__all__ = [
    "NO_NUMBER",
    "REASON_CODES",
    "CheckedSentence",
    "ReasonCode",
    "check_citations",
    "check_sentences",
    "not_attributed",
    "without_markers",
]

UNJUDGED = "only a judge can tell whether the passage says so"
_OF_JUDGE: Mapping[Judged, Finding] = {
    "supported": Finding("verified"),
    "contradicted": Finding("unverified", Objection("contradicted", "the passage says otherwise")),
    "not_stated": Finding("unverified", Objection("unsupported", "the passage does not say so")),
    "cannot_tell": Finding("unchecked"),
}


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of an answer, and what came of its markers."""

    sentence: Sentence
    abstains: bool
    """It says that nothing was found: its markers point at where that was looked for, and are not checked."""
    citations: tuple[Citation, ...]


def check_citations(answer: str, sources: Sequence[Source], judge: Judge | None = None) -> tuple[Citation, ...]:
    """One citation a marker, in the answer's order; none of a list of sources that repeats markers.

    A marker is *unverified*, with a code and a reason, where its passage does not exist or stands elsewhere, where it
    lacks a quotation, a number or a name of the sentence, or has somebody else say it; and where the judge finds that
    it does not say so. It is *verified* where the sentence is quoted from it word by word, or the judge finds that it
    says so. Anything else is *unchecked*. A sentence that says that nothing was found gives no citation, unless its
    marker names no passage.

    Args:
        answer: the whole text.
        sources: what it was written from, as its prompt numbered them.
        judge: is asked once for all that code cannot tell; without one that stays unchecked.
    """
    return tuple(
        citation
        for checked in check_sentences(answer, sources, judge)
        for citation in checked.citations
        if not checked.abstains or citation.verdict == "unverified"
    )


def check_sentences(answer: str, sources: Sequence[Source], judge: Judge | None = None) -> tuple[CheckedSentence, ...]:
    """The sentences of an answer, in order, those without markers among them. See :func:`check_citations`."""
    checker = Checker(sources)
    claims: list[CitedClaim] = []
    found: list[tuple[Sentence, bool, list[tuple[Citation, int | None]]]] = []
    for sentence in sentences_of(answer):
        silent = abstains(sentence.text)
        found.append((sentence, silent, list(_cited(sentence, sources, checker, claims, silent=silent))))
    judged = judge(claims) if judge is not None and claims else {}
    return tuple(
        CheckedSentence(
            sentence, silent, tuple(_judged(citation, judged.get(claim or 0)) for citation, claim in citations)
        )
        for sentence, silent, citations in found
    )


def _cited(
    sentence: Sentence, sources: Sequence[Source], checker: Checker, claims: list[CitedClaim], *, silent: bool
) -> Iterator[tuple[Citation, int | None]]:
    """Each citation of a sentence, and the number of the claim that is to be judged for it. Fills ``claims``."""
    for citing in sentence.citing:
        resolved = [resolve(reference, sources) for reference in citing.references]
        cited = [one.source for one in resolved if one.source is not None]
        number = None
        for one in resolved:
            finding = Finding("unverified", one.objection) if one.objection else Finding("unchecked")
            if one.source is not None and one.objection is None and not silent:
                finding = checker.check(citing.claim, one.source, cited)
            open_ = finding.verdict == "unchecked" and one.source is not None and not silent
            if open_ and number is None:
                number = len(claims) + 1
                claims.append(CitedClaim(number, citing.claim, tuple(cited)))
            citation = Citation(
                n=one.n,
                verdict=finding.verdict,
                sentence=sentence.text,
                passage_id=one.source.passage_id if one.source else None,
                locator=one.source.locator if one.source else None,
                code=finding.objection.code if finding.objection else None,
                reason=finding.objection.reason if finding.objection else None,
            )
            yield citation, number if open_ else None


def _judged(citation: Citation, judged: Judged | None) -> Citation:
    if citation.verdict != "unchecked":
        return citation
    finding = _OF_JUDGE[judged] if judged is not None else Finding("unchecked")
    objection = finding.objection
    reason = objection.reason if objection else UNJUDGED if finding.verdict == "unchecked" else None
    return citation.model_copy(
        update={"verdict": finding.verdict, "code": objection.code if objection else None, "reason": reason}
    )


def not_attributed(answer: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """The numbers of all sources, where an answer that claims something has no marker; empty for any other.

    Whether it rests on any of them is then not told: they are listed, and nothing is called cited.
    """
    if next(markers_in(answer), None) is not None:
        return ()
    claims = any(not abstains(sentence.text) for sentence in sentences_of(answer))
    return tuple(source.n for source in sources) if claims else ()
