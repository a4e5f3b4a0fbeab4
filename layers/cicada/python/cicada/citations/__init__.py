"""From the markers of an answer to citations, each checked against the passage that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cicada.citations.abstention import abstains
from cicada.citations.checking import Checker, Similarity
from cicada.citations.codes import REASON_CODES, ReasonCode
from cicada.citations.resolving import NO_NUMBER, resolve
from cicada.citations.sentences import Sentence, sentences_of
from cicada.protocol.events import Citation, Source
from cicada.protocol.markers import markers_in, without_markers

__all__ = [
    "NO_NUMBER",
    "REASON_CODES",
    "CheckedSentence",
    "Marked",
    "ReasonCode",
    "check_citations",
    "check_sentences",
    "not_attributed",
    "without_markers",
]


@dataclass(frozen=True)
class Marked:
    """One marker's citation, and how much of its claim the passage has."""

    citation: Citation
    similarity: float | None
    """In [0, 1]; None where no passage was compared."""


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of an answer, and what came of its markers."""

    sentence: Sentence
    abstains: bool
    """It says that nothing was found: its markers point at where that was looked for, and are not checked."""
    marked: tuple[Marked, ...]


def check_citations(answer: str, sources: Sequence[Source]) -> tuple[Citation, ...]:
    """One citation a marker, in the answer's order; none of a list of sources that repeats markers.

    A marker is *verified* when its passage exists, stands where the marker says, and holds what the sentence says: each
    quotation verbatim, each number with its unit, each name; nothing that the passage denies, says of somebody else, or
    says the opposite of; and enough of the words outside of quotations. Anything else is *unverified*, with a code and
    a reason. It compares words and their order by rules, and calls no model. A sentence that says that nothing was
    found gives no citation, unless its marker names no passage.
    """
    return tuple(
        one.citation
        for checked in check_sentences(answer, sources)
        for one in checked.marked
        if not (checked.abstains and one.citation.verdict == "verified")
    )


def check_sentences(
    answer: str, sources: Sequence[Source], similarity: Similarity | None = None
) -> Iterator[CheckedSentence]:
    """The sentences of an answer, in order, those without markers among them.

    Args:
        answer: the whole text.
        sources: what it was written from, as its prompt numbered them.
        similarity: compares meanings where words do not tell; without it no model is called.
    """
    checker = Checker(sources, similarity)
    for sentence in sentences_of(answer):
        silent = abstains(sentence.text)
        yield CheckedSentence(sentence, silent, tuple(_marked(sentence, sources, checker, silent=silent)))


def _marked(sentence: Sentence, sources: Sequence[Source], checker: Checker, *, silent: bool) -> Iterator[Marked]:
    for citing in sentence.citing:
        resolved = [resolve(reference, sources) for reference in citing.references]
        cited = [one.source for one in resolved if one.source is not None]
        for one in resolved:
            objection, similarity = one.objection, None
            if one.source is not None and objection is None and not silent:
                finding = checker.check(citing.claim, one.source, cited)
                objection, similarity = finding.objection, finding.similarity
            citation = Citation(
                n=one.n,
                verdict="unverified" if objection else "verified",
                sentence=sentence.text,
                passage_id=one.source.passage_id if one.source else None,
                locator=one.source.locator if one.source else None,
                code=objection.code if objection else None,
                reason=objection.reason if objection else None,
            )
            yield Marked(citation, similarity)


def not_attributed(answer: str, sources: Sequence[Source]) -> tuple[int, ...]:
    """The numbers of all sources, where an answer that claims something has no marker; empty for any other.

    Whether it rests on any of them is then not told: they are listed, and nothing is called cited.
    """
    if next(markers_in(answer), None) is not None:
        return ()
    claims = any(not abstains(sentence.text) for sentence in sentences_of(answer))
    return tuple(source.n for source in sources) if claims else ()
