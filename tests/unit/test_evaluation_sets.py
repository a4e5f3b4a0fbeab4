"""Judged sets are read whole, or what is wrong with them is told with file and line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.passages import DocumentLocator
from cicada.corpus.scripts import MAX_PROBLEMS
from cicada.errors import CorpusInvalid
from cicada_evaluation.sets import collection_of, read_set
from tests.support.judged_sets import DOCUMENTS, QUERIES, write_beir, write_lines

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def refusal(path: Path) -> str:
    with pytest.raises(CorpusInvalid) as raised:
        read_set(path)
    return str(raised.value)


# --- BEIR's layout ---


def test_a_document_becomes_a_passage_of_its_title_and_text(tmp_path: Path) -> None:
    found = read_set(write_beir(tmp_path / "fog"))
    texts = {item.passage.id: item.passage.text for item in found.corpus}
    assert texts["d1"] == "Bells\nthe fog bell rings at night"
    assert texts["d2"] == "the ferry leaves the jetty at noon"
    assert found.corpus[0].passage.locator == DocumentLocator(source="d1", title="Bells")
    assert [part.text for part in found.corpus[0].parts] == [texts["d1"]]


def test_queries_without_anything_relevant_are_left_out_and_counted(tmp_path: Path) -> None:
    judgements = {"q1": {"d1": 1}, "q2": {"d3": 0}}
    found = read_set(write_beir(tmp_path / "fog", judgements=judgements))
    assert [query.id for query in found.queries] == ["q1"]
    assert found.left_out == len(QUERIES) - 1


def test_negative_scores_are_no_gain(tmp_path: Path) -> None:
    found = read_set(write_beir(tmp_path / "fog", judgements={"q1": {"d1": 2, "d2": -1}}))
    assert found.judgements == {"q1": {"d1": 2, "d2": 0}}


def test_what_cannot_be_found_is_told(tmp_path: Path) -> None:
    documents = DOCUMENTS | {"empty": ("", " ")}
    judgements = {"q1": {"d1": 1, "gone": 1}, "q99": {"d1": 1}}
    notes = read_set(write_beir(tmp_path / "fog", documents, judgements=judgements)).notes
    assert [note.split(":")[-1].strip() for note in notes] == ["empty", "gone", "q99"]


def test_a_judged_document_that_is_missing_still_counts(tmp_path: Path) -> None:
    found = read_set(write_beir(tmp_path / "fog", judgements={"q1": {"d1": 1, "gone": 1}}))
    assert found.judgements["q1"] == {"d1": 1, "gone": 1}


def test_judgements_may_lie_in_the_folder_of_the_published_sets(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    (folder / "qrels").mkdir()
    (folder / "qrels.tsv").rename(folder / "qrels" / "test.tsv")
    assert len(read_set(folder).queries) == 3


@pytest.mark.parametrize(
    ("file", "line", "told"),
    [
        ("corpus.jsonl", '{"_id": "d9"', "is not JSON"),
        ("corpus.jsonl", '["d9"]', "must be a JSON object"),
        ("corpus.jsonl", '{"_id": 9, "text": "x"}', "_id must be a string"),
        ("corpus.jsonl", r'{"_id": "d9", "text": "\ud800"}', "contains half of a surrogate pair"),
        ("corpus.jsonl", '{"_id": "d1", "text": "x"}', "_id 'd1' comes twice"),
        ("corpus.jsonl", '{"_id": "d9", "title": "x"}', "title and text must be strings"),
        ("queries.jsonl", '{"_id": "q9", "text": " "}', "text must be a string that is not empty"),
        ("qrels.tsv", "q1\td2", "must have 3 columns between tabs, not 2"),
        ("qrels.tsv", "q1\td2\thigh", "score must be a whole number, not 'high'"),
        ("qrels.tsv", "q1\td1\t1", "document d1 has another score for query q1 above"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, file: str, line: str, told: str) -> None:
    path = write_beir(tmp_path / "fog") / file
    before = path.read_text().splitlines()
    write_lines(path, [*before, line])
    assert f"{path}:{len(before) + 1}: {told}" in refusal(path.parent)


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    with (folder / "queries.jsonl").open("ab") as file:
        file.write(b'{"_id": "q9", "text": "\xff"}\n')
    assert f"{folder / 'queries.jsonl'}:5: is not UTF-8" in refusal(folder)


def test_judgements_without_a_heading_would_lose_one(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    write_lines(folder / "qrels.tsv", ["q1\td1\t1", "q2\td3\t1"])
    assert ":1: the heading is missing" in refusal(folder)


@settings(max_examples=60)
@given(st.sampled_from(["corpus.jsonl", "queries.jsonl", "qrels.tsv"]), st.data())
def test_whatever_stands_in_a_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    folder = write_beir(tmp_path_factory.mktemp("fuzz"))
    before = (folder / name).read_bytes()
    at = data.draw(st.integers(0, len(before)))
    junk = data.draw(st.one_of(st.binary(max_size=6), st.sampled_from([b"\n", b"\t", b"null", b"1e999", b"{}", b'"'])))
    (folder / name).write_bytes(before[:at] + junk + before[at + data.draw(st.integers(0, 4)) :])
    with contextlib.suppress(CorpusInvalid):
        found = read_set(folder)
        assert all(any(gain > 0 for gain in found.judgements[query.id].values()) for query in found.queries)


def test_all_files_are_told_of_at_once_up_to_a_bound(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    write_lines(folder / "corpus.jsonl", ["{"] * 3)
    write_lines(folder / "queries.jsonl", ["{"] * 100)
    lines = refusal(folder).splitlines()
    assert len(lines) == MAX_PROBLEMS + 1
    assert sum("corpus.jsonl" in line for line in lines) == 3


def test_separators_that_python_takes_for_line_ends_do_not_cut_a_line(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    line = json.dumps({"_id": "d9", "title": "", "text": "one\u2028two\x85three"}, ensure_ascii=False)
    with (folder / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    assert read_set(folder).corpus[-1].passage.text == "one\u2028two\x85three"


def test_a_set_without_judgements_is_refused(tmp_path: Path) -> None:
    folder = write_beir(tmp_path / "fog")
    (folder / "qrels.tsv").unlink()
    assert "holds no judgements" in refusal(folder)


def test_a_folder_that_is_no_set_is_refused(tmp_path: Path) -> None:
    assert "holds no judged set" in refusal(tmp_path)
    assert "there is no such file or folder" in refusal(tmp_path / "nowhere")


# --- script sets ---


def test_the_sample_is_a_script_set() -> None:
    found = read_set(SAMPLES)
    first = found.queries[0]
    assert (found.kind, found.name, first.id) == ("script", "samples", "q001")
    assert found.judgements["q001"] == {"ep1-0001": 1}
    assert first.filters.episodes == ("ep1",)
    assert found.left_out == 4  # the unanswerable ones
    assert found.notes == ()
    assert found.corpus[0].passage.id == "ep1-0001"


def test_questions_alone_are_a_set_without_a_corpus() -> None:
    found = read_set(SAMPLES / "questions.jsonl")
    assert found.corpus == ()
    assert found.corpus_digest is None
    assert found.judgements_digest() == read_set(SAMPLES).judgements_digest()


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"id": "a", "question": "", "answers": ["m"]}, "question must be"),
        ({"id": "a", "question": "?", "answers": "m"}, "answers must be a list of ids"),
        ({"id": "a", "question": "?"}, "answers must be a list of ids"),
        ({"id": "a", "question": "?", "answers": [], "episodes": [1]}, "episodes must be a list of ids"),
        ({"id": "ok", "question": "?", "answers": []}, "id 'ok' comes twice"),
    ],
)
def test_a_broken_question_is_named(tmp_path: Path, question: dict[str, object], told: str) -> None:
    good = {"id": "ok", "question": "Who?", "answers": ["m1"], "episodes": []}
    file = write_lines(tmp_path / "questions.jsonl", map(json.dumps, [good, question]))
    assert f"{file}:2: {told}" in refusal(file)


def test_answers_that_the_script_does_not_have_are_told(tmp_path: Path) -> None:
    script = (SAMPLES / "script" / "episode-1.jsonl").read_text().splitlines()[:3]
    write_lines(tmp_path / "part.jsonl", script)
    questions = [
        {"id": "a", "question": "?", "answers": ["ep1-0001", "nowhere"], "episodes": ["ep1", "ep9"]},
    ]
    write_lines(tmp_path / "questions.jsonl", map(json.dumps, questions))
    found = read_set(tmp_path)
    assert len(found.corpus) == 3
    assert [note.split(":")[-1].strip() for note in found.notes] == ["nowhere", "ep9"]


# --- document sets ---


def document_set(folder: Path, questions: list[dict[str, object]]) -> Path:
    documents = folder / "documents"
    (documents / "deep").mkdir(parents=True)
    upkeep = "Trim the wick daily, straight across. " * 60
    (documents / "lamp.md").write_text(f"# Lamp\n\nThe lamp burns rape oil.\n\n# Wick\n\n{upkeep}\n")
    (documents / "deep" / "bell.txt").write_text("The bell rings twice in fog.\n")
    write_lines(folder / "questions.jsonl", map(json.dumps, questions))
    return folder


OIL: dict[str, object] = {
    "id": "a",
    "question": "What does it burn?",
    "answer": ["rape oil", "colza"],
    "documents": ["lamp.md"],
}
BELL: dict[str, object] = {
    "id": "b",
    "question": "How often?",
    "answer": ["three times"],
    "documents": ["deep/bell.txt"],
}
PRICE: dict[str, object] = {"id": "c", "question": "What does oil cost?", "answer": [], "documents": []}


def test_a_document_set_is_cut_as_loaded_documents_are(tmp_path: Path) -> None:
    found = read_set(document_set(tmp_path / "shelf", [OIL, BELL, PRICE]))
    texts = {item.passage.id: item.passage.text for item in found.corpus}
    assert (found.kind, found.name, found.left_out) == ("documents", "shelf", 1)
    assert len(texts) == 3
    assert [texts[name] for name in found.judgements["a"]] == ["The lamp burns rape oil."]
    assert [texts[name] for name in found.judgements["b"]] == ["The bell rings twice in fog."]  # no passage has it
    assert found.gold == {"a": ("rape oil", "colza"), "b": ("three times",)}
    assert [query.id for query in found.without_judgements] == ["c"]


def test_what_a_document_set_lacks_is_told(tmp_path: Path) -> None:
    lost: dict[str, object] = {"id": "d", "question": "?", "answer": ["x"], "documents": ["gone.txt"]}
    folder = document_set(tmp_path / "shelf", [OIL, lost])
    (folder / "documents" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    notes = read_set(folder).notes
    assert [note.split(":")[-1].strip() for note in notes] == ["picture.png", "d"]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"id": "e", "question": "?", "answer": "x", "documents": []}, "answer must be a list of strings"),
        ({"id": "e", "question": "?", "answer": ["x"], "documents": []}, "an answer needs its documents"),
    ],
)
def test_a_broken_question_on_documents_is_named(tmp_path: Path, question: dict[str, object], told: str) -> None:
    folder = document_set(tmp_path / "shelf", [OIL, question])
    assert f"{folder / 'questions.jsonl'}:2: {told}" in refusal(folder)


# --- what is common ---


def test_a_limit_takes_the_same_queries_every_time_and_the_fewer_are_among_the_more() -> None:
    whole = read_set(SAMPLES)
    five, ten = whole.limited(5), whole.limited(10)
    all_ids, five_ids, ten_ids = ([query.id for query in found.queries] for found in (whole, five, ten))
    assert len(five_ids) == 5
    assert set(five_ids) < set(ten_ids) < set(all_ids)
    assert five.judgements.keys() == set(five_ids)
    assert ten_ids == [name for name in all_ids if name in ten_ids]
    assert whole.limited(10_000) is whole


def test_judgements_that_differ_have_another_digest(tmp_path: Path) -> None:
    one = read_set(write_beir(tmp_path / "one"))
    other = read_set(write_beir(tmp_path / "other", judgements={"q1": {"d1": 3, "d4": 2}}))
    assert one.judgements_digest() != other.judgements_digest()
    assert one.limited(1).judgements_digest() != one.judgements_digest()


def test_a_collection_is_named_after_the_folder(tmp_path: Path) -> None:
    assert collection_of(tmp_path / "my set.v2") == "my-set-v2"
    assert collection_of(tmp_path / ("x" * 100)) == "x" * 64
