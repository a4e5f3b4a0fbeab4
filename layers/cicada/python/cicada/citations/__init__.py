"""From the markers of an answer to citations, each checked against the passage that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cicada.citations.checking import (
    NO_NUMBER,
    REASON_CODES,
    Checker,
    Finding,
    Objection,
    ReasonCode,
    Resolved,
    resolve,
)
from cicada.citations.judging import CitedClaim, Judge, Judged
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
    """A sentence of an answer, and the verdicts on its markers."""

    sentence: Sentence
    abstains: bool  # it says that nothing was found: its markers tell where, and are not checked
    citations: tuple[Citation, ...]


def check_citations(answer: str, sources: Sequence[Source], judge: Judge | None = None) -> tuple[Citation, ...]:
    """One citation a marker, in the answer's order; none of a list of sources that repeats markers.

    A marker is *unverified*, with a code and a reason, if its passage does not exist or is elsewhere, lacks a
    quotation, a number or a name of the sentence, or is by another speaker, or if the judge finds that it does not
    support the sentence. It is *verified* if the sentence is a quotation, or the judge finds it supported. All others
    are *unchecked*. A sentence that says that nothing was found gives no citation, unless its marker names no passage.

    ``sources``: as the prompt numbered them; ``judge``: called once for all that code cannot check.
    """
    return tuple(
        citation
        for checked in check_sentences(answer, sources, judge)
        for citation in checked.citations
        if not checked.abstains or citation.verdict == "unverified"
    )


def check_sentences(answer: str, sources: Sequence[Source], judge: Judge | None = None) -> tuple[CheckedSentence, ...]:
    """The sentences of an answer, in order, with or without markers. See :func:`check_citations`."""
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
            to_check = one.source is not None and not silent
            if one.source is not None and to_check and one.objection is None:
                finding = checker.check(citing.claim, one.source, cited)
            to_judge = to_check and finding.verdict == "unchecked"
            if to_judge and number is None:
                number = len(claims) + 1
                claims.append(CitedClaim(number, citing.claim, tuple(cited)))
            yield _citation(sentence.text, one, finding), number if to_judge else None


def _citation(sentence: str, resolved: Resolved, finding: Finding) -> Citation:
    source = resolved.source
    return Citation(
        n=resolved.n,
        sentence=sentence,
        passage_id=source.passage_id if source else None,
        locator=source.locator if source else None,
        **finding.fields(),
    )


def _judged(citation: Citation, judged: Judged | None) -> Citation:
    if citation.verdict != "unchecked":
        return citation
    finding = Finding("unchecked") if judged is None else _OF_JUDGE[judged]
    unjudged = {"reason": UNJUDGED} if finding.verdict == "unchecked" else {}
    return citation.model_copy(update=finding.fields() | unjudged)


def not_attributed(answer: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """The numbers of all sources, if an answer that claims something has no marker, so that none can be called cited;
    else empty."""
    if next(markers_in(answer), None) is not None:
        return ()
    claims = any(not abstains(sentence.text) for sentence in sentences_of(answer))
    return tuple(source.n for source in sources) if claims else ()
