"""Loading a script: files in, a published version out, or nothing at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cicada.errors import CorpusInvalid
from cicada.index.reader import IndexReader
from cicada.index.versions import must_be_published
from cicada.ingest.scripts import load_script
from cicada.retrieval.ports import Filters, SearchQuery
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import EVERYTHING
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import script_place

SAMPLE = Path(__file__).parents[2] / "samples" / "script"


def script(folder: Path, texts: list[str]) -> Path:
    lines = (
        {
            "episodeId": "ep1",
            "episodeName": "One",
            "chapterId": "c1",
            "messageId": f"m{number}",
            "speaker": "Mira",
            "textENG": text,
        }
        for number, text in enumerate(texts)
    )
    file = folder / "script.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_a_script_can_be_searched_once_it_is_loaded(tmp_path):
    store, embedder, told = InMemoryStore(), WordEmbedder(), []
    file = script(tmp_path, ["The lamp is lit.", "Nobody rang the bell.", "The boat left at noon."])
    report = load_script([file], "script", store, embedder, lambda *step: told.append(step))
    assert (report.collection, report.files, report.messages, report.episodes) == (
        "script",
        1,
        3,
        {"ep1": "One"},
    )
    assert report.written.published
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["reading", "embedding", "writing", "publishing"]
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        found = ShardRetriever(reader, embedder).search(
            SearchQuery("nobody rang the bell", min_score=0.0, readable=EVERYTHING)
        )
    finally:
        reader.close()
    assert found.hits[0].passage.text == "Nobody rang the bell."


def test_a_changed_message_makes_only_itself_and_its_neighbours_anew(tmp_path):
    store, embedder = InMemoryStore(), WordEmbedder()
    lines = [f"This is line number {number}." for number in range(20)]
    load_script([script(tmp_path, lines)], "script", store, WordEmbedder())
    lines[10] = "This one is different."
    load_script([script(tmp_path, lines)], "script", store, embedder)
    assert 1 <= len(embedder.asked) <= 9
    assert "Mira: This one is different." in embedder.asked


def test_a_script_with_one_bad_line_changes_nothing(tmp_path):
    store, embedder = InMemoryStore(), WordEmbedder()
    load_script([script(tmp_path, ["Good."])], "script", store, embedder)
    before = dict(store.objects)
    with pytest.raises(CorpusInvalid, match=r"script\.jsonl:2: textENG: must not be empty"):
        load_script([script(tmp_path, ["Better.", ""])], "script", store, embedder)
    assert store.objects == before


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "a/b", "-x"])
def test_a_collection_has_a_plain_name(tmp_path, name):
    with pytest.raises(CorpusInvalid, match="is not a valid collection name"):
        load_script([script(tmp_path, ["Good."])], name, InMemoryStore(), WordEmbedder())


def test_a_collection_loaded_to_start_over_is_the_only_one_left(tmp_path):
    store, embedder = InMemoryStore(), WordEmbedder()
    file = script(tmp_path, ["Good."])
    load_script([file], "old", store, embedder)
    load_script([file], "new", store, embedder, start_over=True)
    assert [entry.collection for entry in must_be_published(store).manifest.segments] == ["new"]


def test_the_sample_script_loads_whole():
    store, embedder = InMemoryStore(), WordEmbedder()
    report = load_script([SAMPLE], "stillwater", store, embedder)
    assert report.messages >= 600
    assert len(report.episodes) >= 4
    assert report.written.passages > report.messages  # a chapter is in Japanese too
    again = load_script([SAMPLE], "stillwater", store, embedder)
    assert not again.written.published
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        retriever = ShardRetriever(reader, embedder)
        for episode in ("ep1", "ep2"):
            found = retriever.search(
                SearchQuery("Who rang the bell?", Filters(episodes=(episode,)), min_score=0.0, readable=EVERYTHING)
            )
            assert {script_place(hit.passage).episode_id for hit in found.hits} == {episode}
    finally:
        reader.close()
