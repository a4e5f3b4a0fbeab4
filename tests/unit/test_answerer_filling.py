"""The stand-in for a model fills in the forms that Cicada asks for, and any other with the least it allows."""

from __future__ import annotations

from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from cicada.answering.prompt import number_sources
from cicada.integrators.schema_explaining import ExplainedTable, table_prompt
from cicada.integrators.sql_schema import Column, Table
from cicada.models.structured_output import form_schema, read_form
from cicada.retrieval.pipelines.expansion import HypotheticalPassage, Wordings, usable
from cicada.retrieval.pipelines.model_reranker import PassageMarks, marking_prompt
from cicada.retrieval.ports import Hit
from cicada_local.bedrock.extractive.filling import fill
from cicada_local.bedrock.extractive.naming import codes, names
from cicada_local.bedrock.extractive.relevance import relevance
from cicada_local.bedrock.extractive.summary import summary
from tests.support.pipelines import document

QUESTION = "Which valve does Ren close on pump PX-210 before the tide?"
TEXTS = (
    "The ferry leaves at nine.",
    "Before the tide Ren closes the bypass valve on pump PX-210.",
    "A pump needs oil.",
)


class Plate(BaseModel):
    """A form that nobody knows."""

    label: str = Field(min_length=3)
    size: int = Field(ge=4, le=9)
    kind: Literal["round", "square"]
    left_out: str = ""
    nothing: float | None
    rows: list[dict[str, bool]] = Field(min_length=2)


def filled(form: type[BaseModel], user: str) -> Any:
    return read_form(form, fill(user, form_schema(form)))


def test_passages_are_marked_by_what_they_share_with_the_question():
    marks = filled(PassageMarks, marking_prompt(QUESTION, TEXTS).user).marks
    assert [mark.n for mark in marks] == [1, 2, 3]
    assert marks[1].direct_relevance > marks[2].direct_relevance > marks[0].direct_relevance == 0.0
    assert all(0 <= mark.completeness <= 10 and 0 <= mark.specificity <= 10 for mark in marks)


def test_wordings_are_made_of_the_questions_own_words_and_keep_its_names():
    queries = filled(Wordings, f"<question>\n{QUESTION}\n</question>").queries
    assert len(usable(QUESTION, queries)) >= 2
    assert all("PX-210" in query and "Ren" in query for query in queries)


def test_a_hypothetical_passage_is_about_the_question():
    passage = filled(HypotheticalPassage, f"<question>\n{QUESTION}\n</question>").passage
    assert "bypass" not in passage
    assert "PX-210" in passage


def test_a_summary_quotes_the_first_and_the_most_central_sentence():
    text = "The pump room floods at spring tide. Oil is dear. The pump stops when the room floods. Gulls cry."
    assert summary([text]) == "The pump room floods at spring tide. The pump stops when the room floods."
    assert summary(["  "]) == ""


def test_names_and_codes_are_found_as_they_are_written():
    text = "Ren Hale met Aoi at Gull Point. Nobody saw Aoi's lamp. The valve V-12 of PX-210 leaked."
    assert names(text) == ["Ren Hale", "Aoi", "Gull Point"]
    assert codes(text) == ["V-12", "PX-210"]


def explained(names: list[str], *texts: str) -> ExplainedTable:
    table = Table(name="gaugeReadings", columns=tuple(Column(name=name) for name in names))
    sources = number_sources([Hit(document(f"d{n}", text), 0.9) for n, text in enumerate(texts)])
    found: ExplainedTable = filled(ExplainedTable, table_prompt(table, sources).user)
    return found


def test_a_table_is_explained_by_the_sentences_that_hold_its_words():
    told = explained(
        ["reading_ft", "taken_by", "xq7"],
        "The ferry leaves at nine. The damp has taken a line.",
        "Gauge\n\nA gauge reading is in feet, and never above 30. He has taken it.\nreading: 12 ft, by gauge.",
    )
    meant = "A gauge reading is in feet, and never above 30."
    assert (told.meaning, told.passages) == (meant, [2])
    assert [(one.name, one.meaning, one.passages) for one in told.columns] == [
        ("reading_ft", meant, [2]),
        ("taken_by", "Taken by.", []),
        ("xq7", "Xq 7.", []),
    ]
    assert [(one.rule, one.columns, one.passages) for one in told.rules] == [(meant, ["reading_ft"], [2])]


def test_a_table_without_passages_is_explained_by_its_names_alone():
    told = explained(["taken_by"])
    assert (told.meaning, told.passages, told.rules) == ("Gauge readings.", [], [])
    assert told.columns[0].meaning == "Taken by."


def test_a_form_that_nobody_knows_gets_the_least_that_it_allows():
    plate = filled(Plate, "Fill in the plate.")
    assert plate == Plate(label="---", size=4, kind="round", nothing=None, rows=[{}, {}])


def test_relevance_counts_rare_words_for_more():
    scores = relevance("pump valve", ["pump", "valve and pump", "pump room", "pump oil", "valve"])
    assert scores[1] == max(scores)
    assert scores[4] > scores[0]


@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=60), max_size=4))
@settings(max_examples=60)
def test_whatever_a_prompt_says_the_forms_fit(question: str, texts: list[str]):
    for form in (PassageMarks, Wordings, HypotheticalPassage, Plate):
        filled(form, marking_prompt(question, texts).user)
    explained([name for name in texts if name.strip()] or ["x"], question or "-")


def test_the_side_of_a_theory_is_told_for_each_passage():
    bearing = {"type": "object", "properties": {"n": {"type": "integer"}, "side": {}, "strength": {}}}
    schema = {"type": "object", "properties": {"passages": {"type": "array", "items": bearing}}}
    passages = "".join(
        f'<passage n="{n}" place="ep1 · Ada">{text}</passage>'
        for n, text in enumerate(("Corin rang the bell.", "Corin never rang the bell.", "Did Corin ring the bell?"), 1)
    )
    user = f"<passages>{passages}</passages><question>Is it true that Corin rang the bell?</question>"
    told = fill(user, schema)["passages"]
    assert [(one["n"], one["side"]) for one in told] == [(1, "for"), (2, "against"), (3, "neither")]
