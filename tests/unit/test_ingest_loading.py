"""Loading documents: each by itself, all in one version, and a reason for each that is not in it."""

from __future__ import annotations

import threading

import pytest

from cicada.errors import CorpusInvalid, ModelRefused, ModelUnavailable
from cicada.ingest import loading
from cicada.ingest.contracts import EnrichmentOptions
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.loading import load_documents, scripts_alone, unload
from cicada.ingest.sources import source_files
from cicada.models.ports import Filled, Usage
from tests.support.embedding import WordEmbedder
from tests.support.ingest import Reading, found_in, recipe_for, script_of, shelf
from tests.support.object_stores import InMemoryStore, Killed, WatchedStore

TEXTS = {
    "a.md": "The lamp is lit.",
    "b/notes.txt": "Nobody rang the bell.",
    "c.csv": "name,colour\nHeron,green\n",
    "ep1.jsonl": script_of({"m1": "The boat left at noon."}),
}
EMBEDDED = {
    "a.md": "a\n\nThe lamp is lit.",
    "b/notes.txt": "notes\n\nNobody rang the bell.",
    "c.csv": "c\n\nname: Heron\ncolour: green",
    "ep1.jsonl": "Mira: The boat left at noon.",
}
"""What the model is asked for of each: its text below its title."""


@pytest.fixture
def store():
    return InMemoryStore()


def load(folder, store, embedder, reading=None, **options):
    return load_documents(
        [folder], "shelf", store, embedder, recipe_for(embedder), read=reading or Reading(), **options
    )


def sources(store):
    return {source for source, _ in found_in(store, WordEmbedder())}


def test_documents_of_all_kinds_go_into_one_version(store, tmp_path):
    embedder, told = WordEmbedder(), []
    report = load(shelf(tmp_path, TEXTS), store, embedder, progress=lambda *step: told.append(step))
    assert (report.documents, report.loaded, report.quarantined, report.published) == (4, 4, (), True)
    assert report.embedded == len(embedder.asked)
    assert set(EMBEDDED.values()) <= set(embedder.asked)
    assert sources(store) == set(TEXTS)
    assert [step for step in told if step[0] == "preparing"] == [("preparing", done, 4) for done in range(5)]
    assert told[-1] == ("publishing", 1, 1)


def test_a_second_load_reads_embeds_and_publishes_nothing(store, tmp_path):
    first = load(shelf(tmp_path, TEXTS), store, WordEmbedder())
    embedder, reading = WordEmbedder(), Reading()
    again = load(tmp_path, store, embedder, reading)
    assert (again.published, again.unchanged, again.version) == (False, 4, first.version)
    assert (embedder.asked, reading.sources) == ([], [])


def test_the_collection_holds_exactly_these_documents(store, tmp_path):
    load(shelf(tmp_path, TEXTS), store, WordEmbedder())
    report = load(shelf(tmp_path, {"a.md": "The lamp went out."}), store, WordEmbedder())
    assert (report.removed, report.passages) == (("b/notes.txt", "c.csv", "ep1.jsonl"), 1)
    assert found_in(store, WordEmbedder()) == [("a.md", "The lamp went out.")]


def test_documents_are_added_to_those_that_are_there(store, tmp_path):
    load(shelf(tmp_path, TEXTS), store, WordEmbedder())
    report = load(shelf(tmp_path, {"d.md": "A new one."}), store, WordEmbedder(), exactly=False)
    assert (report.loaded, report.removed) == (1, ())
    assert sources(store) == {*TEXTS, "d.md"}


def test_poison_is_quarantined_with_its_reason_and_the_rest_go_on(store, tmp_path):
    shelf(tmp_path, {**TEXTS, "bad.jsonl": TEXTS["ep1.jsonl"].replace('"Mira"', "7"), "empty.md": " "})
    (tmp_path / "scan.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "out.md").symlink_to("/etc/hostname")
    report = load(tmp_path, store, WordEmbedder())
    assert {one.source: one.code for one in report.quarantined} == {
        "bad.jsonl": "document_invalid",
        "empty.md": "document_without_text",
        "scan.png": "document_unsupported",
        "out.md": "document_unsafe",
    }
    assert all(one.message for one in report.quarantined)
    assert (report.documents, report.loaded) == (8, 4)
    assert sources(store) == set(TEXTS)


def test_documents_are_deleted_by_name(store, tmp_path):
    load(shelf(tmp_path, TEXTS), store, WordEmbedder())
    report = unload(store, WordEmbedder(), "shelf", ["a.md", "other.md"])
    assert report.removed == ("a.md",)
    assert sources(store) == TEXTS.keys() - {"a.md"}


def test_metadata_is_on_every_passage(store, tmp_path):
    load(shelf(tmp_path, TEXTS), store, WordEmbedder(), metadata={"workflow_id": "w1"})
    again = load(tmp_path, store, WordEmbedder(), metadata={"workflow_id": "w2"})
    assert (again.added, again.embedded) == (again.passages, 0)  # the same texts: what is new is what they carry


@pytest.mark.parametrize("options", [{"metadata": {"source": "x"}}])
def test_what_cannot_be_kept_is_refused_before_anything_is_done(store, tmp_path, options):
    reading = Reading()
    with pytest.raises(CorpusInvalid):
        load(shelf(tmp_path, TEXTS), store, WordEmbedder(), reading, **options)
    with pytest.raises(CorpusInvalid, match="is not a valid collection name"):
        load_documents([tmp_path], "a/b", store, WordEmbedder(), recipe_for(WordEmbedder()), read=reading)
    assert (reading.sources, store.objects) == ([], {})


class Failing(WordEmbedder):
    """Raises for texts with a word in them."""

    def __init__(self, word, error):
        super().__init__()
        self.word, self.error = word, error

    def embed(self, texts, *, time_budget_s):
        if any(self.word in text for text in texts):
            raise self.error
        return super().embed(texts, time_budget_s=time_budget_s)


def test_a_document_that_the_model_keeps_failing_at_is_set_aside(store, tmp_path):
    texts = {f"{number}.md": f"Page {number} is here." for number in range(8)}
    report = load(shelf(tmp_path, texts), store, Failing("Page 3", ModelUnavailable("no answer")), workers=1)
    assert [(one.source, one.code) for one in report.quarantined] == [("3.md", "model_unavailable")]
    assert report.loaded == 7
    assert load(tmp_path, store, WordEmbedder()).quarantined == ()


def test_a_model_that_is_down_ends_the_load_and_what_was_prepared_stays(store, tmp_path):
    texts = {f"{number:02}.md": f"{'Good' if number < 3 else 'Bad'} page {number}." for number in range(20)}
    embedder = Failing("Bad", ModelUnavailable("no answer"))
    with pytest.raises(ModelUnavailable):
        load(shelf(tmp_path, texts), store, embedder, workers=1)
    assert len(store.keys("prepared/")) == 3
    again = WordEmbedder()
    assert load(tmp_path, store, again).loaded == 20
    assert sum(" page " in text for text in again.asked) == 17


def test_a_model_that_refuses_ends_the_load_at_once(store, tmp_path):
    with pytest.raises(ModelRefused):
        load(shelf(tmp_path, TEXTS), store, Failing("", ModelRefused("access denied")))


def test_an_enrichment_that_is_refused_leaves_the_collection_as_it_was(store, tmp_path):
    first = load(shelf(tmp_path, TEXTS), store, WordEmbedder())

    class Refused:
        def enrich(self, document, items):
            raise ModelRefused("no such model")

    with pytest.raises(ModelRefused):
        load(shelf(tmp_path, {"a.md": "Another text."}), store, WordEmbedder(), enricher=Refused())
    again = load(shelf(tmp_path, TEXTS), store, WordEmbedder())
    assert (again.published, again.version) == (False, first.version)


def test_a_document_that_only_enrichment_refuses_is_loaded_without_and_the_rest_go_on(store, tmp_path):
    class Squeamish:
        model_id, max_tokens = "m", 2048

        def fill(self, prompt, form, *, time_budget_s, call_scope):
            if "Nobody" in prompt.user:
                raise ModelRefused("not this text")
            return Filled(form.model_validate({"passages": [{"n": 1, "entities": [], "codes": []}]}), Usage(), 1)

    enricher = Enricher(EnrichmentOptions(entities="model", model_id="m"), Squeamish(), store)
    report = load(shelf(tmp_path, TEXTS), store, WordEmbedder(), enricher=enricher)
    assert (report.loaded, report.quarantined) == (4, ())
    assert sources(store) == set(TEXTS)
    assert report.notes == {"b/notes.txt": ("1 of 1 passages are not enriched by the model: model_refused.",)}


def test_embedding_is_bounded_over_all_documents(store, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "EMBEDDINGS_AT_ONCE", 2)
    lock, meeting = threading.Lock(), threading.Barrier(2, timeout=5)
    at_once, most = 0, 0

    class Counting(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            meeting.wait()  # two are let in, and only two
            with lock:
                at_once -= 1
            return super().embed(texts, time_budget_s=time_budget_s)

    texts = {f"{number}.md": f"Page {number}." for number in range(12)}
    assert load(shelf(tmp_path, texts), store, Counting(), workers=6).loaded == 12
    assert most == 2


def test_a_load_that_dies_at_any_call_to_the_store_is_taken_up_by_the_next(tmp_path):
    folder = shelf(tmp_path, {**TEXTS, "bad.bin": "\0"})
    whole = WatchedStore(InMemoryStore())
    load(folder, whole, WordEmbedder(), workers=1)
    for call in range(1, len(whole.calls) + 1):
        store, first = InMemoryStore(), WordEmbedder()
        never: dict[int, BaseException] = dict.fromkeys(range(call + 1, 10 * len(whole.calls)), Killed())
        with pytest.raises(Killed):
            load(folder, WatchedStore(store, before=never, after={call: Killed()}), first, workers=1)
        prepared = len(store.keys("prepared/"))
        second, reading = WordEmbedder(), Reading()
        report = load(folder, store, second, reading, workers=1)
        assert report.loaded == 4
        assert sources(store) == set(TEXTS)
        assert len(reading.sources) == 5 - prepared
        assert {source for source, text in EMBEDDED.items() if text in second.asked} <= set(reading.sources)
        assert load(folder, store, WordEmbedder(), workers=1).published is False


def test_scripts_alone_are_told_from_a_mix(tmp_path):
    scripts = shelf(tmp_path / "1", {"a.jsonl": TEXTS["ep1.jsonl"], "b.json": f"[{TEXTS['ep1.jsonl'].strip()}]"})
    assert scripts_alone(source_files([scripts]))
    assert not scripts_alone(source_files([shelf(tmp_path / "2", TEXTS)]))
    assert not scripts_alone(source_files([shelf(tmp_path / "3", {"a.json": '{"a": 1}'})]))


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ('{"fields": ["a"], "doc": {"episodeId": "e1", "messageId": "m1"}}', False),
        ('[{"key": "{\\"", "about": "\\"episodeId\\": \\"messageId\\":"}]', False),
        ('{"a": 1}\n{"episodeId": "e1", "messageId": "m1"}\n', False),
        ('["episodeId", {"episodeId": "e1", "messageId": "m1"}]', False),
        (' [ {"metadata": {"k": "}"}, "messageId" : "m1", "episodeId": "e1"', True),
        ('{"episodeId": "e1", "messageId": "m1", "textENG": "' + "x" * 20_000 + '"}', True),
    ],
)
def test_a_script_is_what_names_a_messages_fields_in_its_first_object(tmp_path, text, script):
    assert scripts_alone(source_files([shelf(tmp_path, {"a.json": text})])) is script
