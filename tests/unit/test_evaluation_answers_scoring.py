"""What is measured of one answer: its citations, what supports it, what it covers, and whether it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from cicada.answering.prompt import NOTHING_FOUND, number_sources
from cicada.attempts.strategy import Answered
from cicada.citations import check_citations, not_attributed
from cicada.protocol.events import Source
from cicada.retrieval.ports import Hit
from cicada_evaluation.answers.cases import Case, Kind
from cicada_evaluation.answers.gold import contained, token_f1
from cicada_evaluation.answers.scoring import read_answer, score
from cicada_evaluation.answers.writing import QuestionOutcome
from cicada_evaluation.judged import Query
from tests.support.pipelines import document

TEXTS = {
    "bell": "The fog bell hangs on the north tower and rings every ten minutes.",
    "ledger": "The keeper writes the level of the lake into a green ledger.",
}


def sources() -> tuple[Source, ...]:
    return number_sources([Hit(document(name, text), 0.9) for name, text in TEXTS.items()])


def written(text: str) -> QuestionOutcome:
    """An answer as the strategy hands it on."""
    given = sources()
    answered = Answered("end_turn", "test.model", check_citations(text, given), not_attributed(text, given))
    return QuestionOutcome(sources=given, text=text, answered=answered)


def case(kind: Kind = "answerable", **fields: Any) -> Case:
    return Case(Query("q1", "Where does the fog bell hang?"), kind, **fields)


def values(text: str, *, relevant: tuple[str, ...] = ("bell",), **fields: Any) -> dict[str, float]:
    return score(case(**fields), written(text), dict.fromkeys(relevant, 1))[0]


def test_an_answer_whose_every_sentence_is_cited_and_held_has_all_there_is() -> None:
    found = values("The fog bell hangs on the north tower [1]. It rings every ten minutes [1].")
    assert found == {
        "completed": 1,
        "citation_precision": 1,
        "citation_recall": 1,
        "cited_relevant": 1,
        "groundedness": 1,
        "attributed": 1,
        "answered": 1,
    }


def test_precision_is_of_markers_and_recall_of_sentences() -> None:
    text = "The fog bell hangs on the north tower [1][7]. The keeper writes into a green ledger."
    found = values(text)
    assert found["citation_precision"] == 0.5  # of two markers one names no passage
    assert found["citation_recall"] == 0.5  # of two sentences the second has no marker
    assert found["groundedness"] == 1.0  # and yet a passage of the prompt supports it


def test_a_marker_that_names_no_passage_costs_precision_and_is_no_cited_passage() -> None:
    found = values("The fog bell hangs on the north tower [1][7].")
    assert found["citation_precision"] == 0.5
    assert found["cited_relevant"] == 1


def test_what_is_in_no_passage_is_not_grounded() -> None:
    found = values("The bell was cast in Antwerp in 1912 [1].")
    assert (found["groundedness"], found["citation_precision"], found["citation_recall"]) == (0, 0, 0)


def test_a_cited_passage_counts_as_relevant_by_the_judgements() -> None:
    text = "The fog bell hangs on the north tower [1]. The keeper writes into a green ledger [2]."
    assert values(text)["cited_relevant"] == 0.5
    assert values(text, relevant=("bell", "ledger"))["cited_relevant"] == 1


def test_an_answer_without_a_marker_has_no_precision_and_no_recall_and_is_not_attributed() -> None:
    found = values("The fog bell hangs on the north tower.")
    assert "citation_precision" not in found
    assert "cited_relevant" not in found
    assert (found["citation_recall"], found["attributed"], found["groundedness"]) == (0, 0, 1)


def test_questions_and_introductions_claim_nothing() -> None:
    text = "What do the passages tell? Two things:\n\nThe fog bell hangs on the north tower [1]."
    assert [one.sentence.text for one in read_answer(text, sources()).claims] == [
        "The fog bell hangs on the north tower."
    ]


def test_a_marker_makes_any_sentence_a_claim() -> None:
    assert len(read_answer("Why does the bell ring every ten minutes [1]?", sources()).claims) == 1


@pytest.mark.parametrize(
    "text",
    [NOTHING_FOUND, "The passages do not say where it hangs.", "The passages do not tell. The lake has a ledger [2]."],
)
def test_an_answer_that_begins_by_saying_that_nothing_was_found_refuses(text: str) -> None:
    assert values(text)["answered"] == 0
    assert values(text, kind="left_out") == {"completed": 1, "refusal": 1}


def test_an_answer_that_tells_first_does_not_refuse() -> None:
    text = "The fog bell hangs on the north tower [1]. The passages do not say who hung it."
    assert values(text)["answered"] == 1
    assert values(text, kind="removed") == {"completed": 1, "refusal": 0}


def test_a_refusal_has_nothing_that_citations_could_be_measured_by() -> None:
    assert set(values(NOTHING_FOUND)) == {"completed", "answered"}


def test_a_refusal_is_no_fault_where_nothing_relevant_was_shown() -> None:
    assert "answered" not in values(NOTHING_FOUND, relevant=())


def test_a_question_without_an_answer_counts_as_not_completed_and_nothing_else() -> None:
    assert score(case(), QuestionOutcome(failure="model_busy"), {"bell": 1}) == ({"completed": 0.0}, None)


def test_a_right_answer_in_words_is_looked_for_where_the_set_tells_one() -> None:
    text = "The fog bell hangs on the north tower [1]."
    found = values(text, gold=("the south tower", "North Tower"))
    assert found["answer_contained"] == 1
    assert found["answer_f1"] == pytest.approx(2 * 2 / (6 + 2))  # articles and the marker are no tokens
    assert values(text, gold=("a lantern",))["answer_contained"] == 0


@pytest.mark.parametrize(
    ("answer", "gold", "held"),
    [
        ("In 308 days [3].", "308", True),
        ("In 1308 days.", "308", False),
        ("It was the “North-West” gate!", "north-west gate", True),
        ("他住在北京市。", "北京", True),
        ("他住在北京市。", "上海", False),
        ("In 1,308 days.", "308", False),
        ("Tesla’s coil.", "tesla", True),
        ("The.", "the", False),
        ("Anything.", "…", False),
    ],
)
def test_containment_is_by_tokens(answer: str, gold: str, held: bool) -> None:
    assert contained(answer, [gold]) is held


def test_f1_is_of_the_right_answer_that_fits_best() -> None:
    assert token_f1("the green ledger", ["green ledger", "a bell"]) == 1
    assert token_f1("green green", ["green"]) == pytest.approx(2 / 3)
    assert token_f1("北京", ["北方"]) == 0.5
    assert token_f1("", ["green"]) == token_f1("red", ["green"]) == 0
