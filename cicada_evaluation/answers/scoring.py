"""The measures of one answer, by rules. A measure that says nothing of an answer is not among its values.

Source: Gao et al., "Enabling Large Language Models to Generate Text with Citations" (ALCE), 2023, for citation recall
and precision. There a model decides whether a passage entails a sentence; here a citation holds where
:mod:`cicada.citations` finds nothing against it, by what code can tell exactly. There an answer without citations
has the precision 0; here it has none, and its recall is 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cicada.citations import CheckedSentence, check_sentences
from cicada.citations.checking import Checker
from cicada.protocol.events import Citation, Source
from cicada_evaluation.answers.cases import Case
from cicada_evaluation.answers.gold import contained, token_f1
from cicada_evaluation.answers.writing import QuestionOutcome

MEASURES = (
    "citation_precision",
    "citation_recall",
    "cited_relevant",
    "groundedness",
    "attributed",
    "answer_contained",
    "answer_f1",
    "answered",
    "refusal",
    "completed",
)
"""In the order in which they are shown. Each is in [0, 1], and more is better."""
JUDGED_MEASURES = ("judge_faithfulness", "judge_relevance", "judge_completeness")
"""What a model's marks from 0 to 10 become, likewise in [0, 1]."""

_LETTER = re.compile(r"[^\W\d_]")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s+")
_INTRODUCES = (":", "?", "：", "？")


@dataclass(frozen=True)
class Reading:
    """An answer, read."""

    claims: tuple[CheckedSentence, ...]  # the sentences that claim something
    refuses: bool  # before it claims anything it says that nothing was found


def read_answer(text: str, sources: Sequence[Source]) -> Reading:
    """Tell an answer's claims from the rest.

    A sentence claims something unless it says that nothing was found, has no letter, or, having no marker, ends as a
    question or as the introduction of what follows.
    """
    sentences = [one for one in check_sentences(text, sources) if _LETTER.search(one.sentence.text)]
    claims = tuple(one for one in sentences if _claims(one))
    first = next((one for one in sentences if one.abstains or _claims(one)), None)
    return Reading(claims, first is not None and first.abstains)


def score(case: Case, written: QuestionOutcome, gains: Mapping[str, int]) -> tuple[dict[str, float], Reading | None]:
    """The values of an answer, by measure, and its reading; without an answer only that there is none.

    Args:
        case: the question.
        written: what became of it.
        gains: of the prompt's passages, by their ids.
    """
    if written.answered is None:
        return {"completed": 0.0}, None
    reading = read_answer(written.text, written.sources)
    values = {"completed": 1.0}
    if not case.answerable:
        return values | {"refusal": float(reading.refuses)}, reading
    citations = written.answered.citations or ()
    if citations:
        values["citation_precision"] = _share([_holds(citation) for citation in citations])
    cited = {citation.passage_id for citation in citations if citation.passage_id is not None}
    if cited:
        values["cited_relevant"] = _share([gains.get(passage, 0) > 0 for passage in cited])
    if reading.claims:
        values["citation_recall"] = _share([_cited(claim) for claim in reading.claims])
        values["groundedness"] = _share(_supported(reading.claims, written.sources))
        values["attributed"] = float(not written.answered.not_attributed)
    if case.gold:
        values["answer_contained"] = float(contained(written.text, case.gold))
        values["answer_f1"] = token_f1(written.text, case.gold)
    if any(gain > 0 for gain in gains.values()):
        values["answered"] = float(not reading.refuses)
    return values, reading


def _claims(one: CheckedSentence) -> bool:
    if one.abstains:
        return False
    return bool(one.sentence.citing) or not one.sentence.text.endswith(_INTRODUCES)


def _cited(claim: CheckedSentence) -> bool:
    """Whether a passage that it cites holds what it says."""
    return any(map(_holds, claim.citations))


def _supported(claims: Sequence[CheckedSentence], sources: Sequence[Source]) -> list[bool]:
    """Of each claim, whether its own passages, or any one of the prompt's, hold it."""
    checker = Checker(sources)
    return [
        _cited(claim)
        or any(
            checker.check(_BULLET.sub("", claim.sentence.text), source, [source]).objection is None
            for source in sources
        )
        for claim in claims
    ]


def _holds(citation: Citation) -> bool:
    return citation.verdict != "unverified"


def _share(held: Sequence[bool]) -> float:
    return sum(held) / len(held)
