"""The actions collections, documents, search and read over an index in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import pytest

from cicada.answering.corpus_api import CorpusApi
from cicada.answering.reply_pages import PAGE_BYTES
from cicada.corpus.documents import SECTION_SEPARATOR
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import LimitReached
from cicada.identity import Caller
from cicada.index.reader import IndexReader
from cicada.index.writer import IndexWriter
from cicada.protocol.actions import Action, ListCollections, ListDocuments, ReadPassages, Search
from cicada.protocol.corpus import Collections, Documents, Passages, SearchFound
from cicada.protocol.events import MAX_EVENT_BYTES, Refused, Reply, reply_frame
from cicada.retrieval.names import NameChecker, NameCheckingRetriever
from cicada.retrieval.shards import ShardRetriever
from cicada.rights import AccessRules
from cicada.usage.limits import LimitState
from tests.support.catalogues import declared
from tests.support.embedding import WordEmbedder
from tests.support.entities import reading
from tests.support.object_stores import InMemoryStore
from tests.support.originals import InMemoryOriginals
from tests.support.passages import indexable, make_passage, make_passages

ID = str(UUID(int=1))
CALLER = Caller("mara", "c1", "f1", groups=("players",))
Shown = TypeVar("Shown", bound=Reply)


class Rules:
    """Access rules that a test changes."""

    def __init__(self, rules: AccessRules) -> None:
        self.now = rules

    def rules(self) -> AccessRules:
        return self.now


def section_passage(
    number: int, source: str, path: Sequence[str] = (), *, collection: str = "manual", page: int | None = None
) -> Passage:
    text = f"Part {number} of {source}."
    return make_passage(number, collection=collection).model_copy(
        update={
            "id": f"{source}-{number}",
            "text": text,
            "context": text,
            "locator": DocumentLocator(
                source=source,
                title=source.removesuffix(".md").title(),
                page=page,
                section=SECTION_SEPARATOR.join(path) or None,
            ),
        }
    )


def api_of(reader: IndexReader, rules: AccessRules, **more: Any) -> CorpusApi:
    retriever = ShardRetriever(reader, WordEmbedder())
    names = NameChecker(reader)
    return CorpusApi(
        reader,
        NameCheckingRetriever(retriever, names),
        names,
        Rules(rules),
        InMemoryOriginals([("manual", "gate.md")]),
        top_k=5,
        min_score=0.0,
        **more,
    )


@contextmanager
def corpus(
    passages: dict[str, list[Passage]], *, rules: AccessRules | None = None, **more: Any
) -> Iterator[tuple[CorpusApi, IndexWriter]]:
    store = InMemoryStore()
    writer = IndexWriter(store, WordEmbedder(), segment_rows=7)
    for name, listed in passages.items():
        writer.replace(name, indexable(listed), declaration=more.get("said", {}).get(name))
    more.pop("said", None)
    with reading(store) as reader:
        yield api_of(reader, rules or AccessRules(), **more), writer


def told(api: CorpusApi, kind: type[Shown], action: type[Action], **fields: Any) -> Shown:
    asked: Any = action.model_validate_json(json.dumps({"requestId": ID, **fields}))
    reply = api.handle(asked, CALLER)
    assert isinstance(reply, kind), reply
    assert reply.request_id == ID
    assert len(reply_frame(reply).encode()) <= MAX_EVENT_BYTES
    return reply


MANUAL = [
    section_passage(1, "gate.md", ["Setup"]),
    section_passage(2, "gate.md", ["Setup", "Locks"]),
    section_passage(3, "gate.md", ["Use"]),
    section_passage(4, "well.md", ["Use"]),
    section_passage(5, "well.md"),
]


def test_the_collections_with_their_episodes_and_sections() -> None:
    said = {"manual": declared("manual", {"facts": ("What is so.", ())})}
    with corpus({"script": make_passages(25), "manual": MANUAL}, said=said) as (api, _):
        reply = told(api, Collections, ListCollections)
        manual, script = reply.collections
        assert (manual.name, manual.passages, manual.documents) == ("manual", 5, 2)
        assert manual.description == said["manual"].description
        assert [(one.path, one.passages) for one in manual.sections] == [("Setup", 2), ("Use", 2)]
        assert [(one.id, one.name, one.passages) for one in script.episodes] == [
            ("ep1", "Episode ep1", 10),
            ("ep2", "Episode ep2", 10),
            ("ep3", "Episode ep3", 5),
        ]
        assert (script.documents, script.sections, reply.empty, reply.next) == (0, (), False, None)
        assert reply.index_version


def test_without_a_version_or_anything_to_read_the_corpus_is_empty() -> None:
    with corpus({}) as (api, _):
        reply = told(api, Collections, ListCollections)
        assert (reply.index_version, reply.collections, reply.empty) == (None, (), True)
        assert told(api, Refused, ListDocuments, collection="manual").code == "index_missing"
    with corpus({"manual": MANUAL}, rules=AccessRules("nobody")) as (api, _):
        reply = told(api, Collections, ListCollections)
        assert (reply.collections, reply.empty) == ((), True)


def test_episodes_are_in_the_order_of_their_numbers_and_the_rest_is_counted() -> None:
    listed = [make_passage(number, episode=f"ep{number}") for number in range(1, 131)]
    with corpus({"script": listed}) as (api, _):
        (script,) = told(api, Collections, ListCollections).collections
        assert [one.id for one in script.episodes][:12:5] == ["ep1", "ep6", "ep11"]
        assert len(script.episodes) + script.more_episodes == 130
        assert len(script.episodes) == 100


def test_many_collections_come_in_pages() -> None:
    names = [f"shelf_{number:02}" for number in range(45)]
    said = {name: declared(name, {"facts": ("What is so.", ())}) for name in names}
    for name in names:
        said[name] = said[name].model_copy(update={"description": f"{name} " + "x" * 380})
    with corpus({name: [make_passage(1, collection=name)] for name in names}, said=said) as (api, _):
        seen: list[str] = []
        cursor = None
        while True:
            reply = told(api, Collections, ListCollections, **({"cursor": cursor} if cursor else {}))
            seen += [one.name for one in reply.collections]
            cursor = reply.next
            if cursor is None:
                break
        assert seen == names


def test_the_documents_of_a_collection() -> None:
    with corpus({"manual": MANUAL}) as (api, _):
        reply = told(api, Documents, ListDocuments, collection="manual")
        assert [(one.source, one.title, one.passages, one.sections, one.original) for one in reply.documents] == [
            ("gate.md", "Gate", 3, ("Setup", "Use"), True),
            ("well.md", "Well", 2, ("Use",), False),
        ]
        only = told(api, Documents, ListDocuments, collection="manual", prefix="we")
        assert [one.source for one in only.documents] == ["well.md"]
        assert told(api, Documents, ListDocuments, collection="manual", prefix="x").documents == ()


def test_pages_of_documents_have_each_once() -> None:
    listed = [section_passage(1, f"{part}/{number:02}.md") for part in ("a", "b") for number in range(60)]
    with corpus({"manual": listed}) as (api, _):
        for prefix, expected in (("", 120), ("b/", 60)):
            seen: list[str] = []
            more: dict[str, str] = {"prefix": prefix} if prefix else {}
            while True:
                reply = told(api, Documents, ListDocuments, collection="manual", **more)
                seen += [one.source for one in reply.documents]
                if reply.next is None:
                    break
                more["cursor"] = reply.next
            assert seen == sorted(one.locator.fields()["source"] for one in listed)[-expected:]


def test_a_forbidden_and_an_unknown_name_are_answered_alike() -> None:
    rules = AccessRules(readers={"secret": ("gms",)})
    hidden = [section_passage(1, "secret.md", collection="secret")]
    with corpus({"manual": MANUAL, "secret": hidden}, rules=rules) as (api, _):
        for name in ("secret", "absent"):
            refused = told(api, Refused, ListDocuments, collection=name)
            assert (refused.code, refused.message) == (
                "collection_unknown",
                f"Unknown collection “{name}”. Available: “manual”.",
            )
        for passage_id in ("secret.md-1", "absent"):
            refused = told(api, Refused, ReadPassages, passageId=passage_id)
            assert (refused.code, refused.message) == ("passage_unknown", "Passage not found.")
        assert told(api, Refused, ReadPassages, passageId="gate.md-1", collection="secret").code == "passage_unknown"


def test_a_search_returns_the_sources_of_an_answer() -> None:
    with corpus({"script": make_passages(25), "manual": MANUAL}) as (api, _):
        found = told(api, SearchFound, Search, query="Part 2 of gate.md", topK=2)
        assert (found.sources[0].n, found.sources[0].passage_id) == (1, "gate.md-2")
        assert (len(found.sources), found.engine, found.degraded) == (2, "shards", ())
        limited = told(api, SearchFound, Search, query="Part 2 of gate.md", documents=["well.md", "no.md"])
        assert {one.passage_id for one in limited.sources} == {"well.md-4", "well.md-5"}
        assert [one.code for one in limited.degraded] == ["document_unknown"]


@pytest.mark.parametrize(
    ("section", "found"),
    [
        ("Setup", {"gate.md-1", "gate.md-2"}),
        ("Setup > Locks", {"gate.md-2"}),
        ("Use", {"gate.md-3", "well.md-4"}),
    ],
)
def test_a_section_is_what_stands_below_its_heading(section: str, found: set[str]) -> None:
    with corpus({"script": make_passages(25), "manual": MANUAL}) as (api, _):
        reply = told(api, SearchFound, Search, query="Part 2 of gate.md", sections=[section], topK=9)
        assert {one.passage_id for one in reply.sources} == found
        for unknown in ("Locks", "Set", "Setup > Lock"):
            assert told(api, Refused, Search, query="gate", sections=[unknown]).code == "section_unknown"


def test_a_search_is_refused_where_a_limit_is_reached_and_reading_is_not() -> None:
    def refuse(caller: Caller) -> None:
        assert caller is CALLER
        raise LimitReached(LimitState(account="user", limit="usdDay"))

    with corpus({"manual": MANUAL}, admit=refuse) as (api, _):
        refused = told(api, Refused, Search, query="gate")
        assert (refused.code, refused.limit and refused.limit.limit) == ("limit_reached", "usdDay")
        assert told(api, Passages, ReadPassages, passageId="gate.md-1").passages


def read(api: CorpusApi, passage_id: str, **fields: Any) -> tuple[list[str], int, bool, bool]:
    reply = told(api, Passages, ReadPassages, passageId=passage_id, **fields)
    return [one.passage_id for one in reply.passages], reply.at, reply.has_previous, reply.has_next


def test_a_passage_is_read_among_its_neighbours() -> None:
    with corpus({"script": make_passages(25), "manual": MANUAL}) as (api, _):
        assert read(api, "m5", before=2, after=1) == (["m3", "m4", "m5", "m6"], 2, True, True)
        assert read(api, "m0", before=3, after=1) == (["m0", "m1"], 0, False, True)
        assert read(api, "m9", before=1, after=30) == (["m8", "m9"], 1, True, False)
        assert read(api, "gate.md-2", before=0, after=0) == (["gate.md-2"], 0, True, True)
        reply = told(api, Passages, ReadPassages, passageId="gate.md-2")
        assert (reply.document.source, reply.document.title, reply.collection) == ("gate.md", "Gate", "manual")
        assert reply.document.original is not None
        assert reply.document.original.url.endswith("/manual/gate.md")
        assert [one.text for one in reply.passages] == [f"Part {n} of gate.md." for n in (1, 2, 3)]
        episode = told(api, Passages, ReadPassages, passageId="m12")
        assert (episode.document.title, episode.document.original) == ("Episode ep2", None)


def test_the_order_of_a_document_survives_an_edit() -> None:
    edited = section_passage(2, "gate.md", ["Setup", "Locks"]).model_copy(update={"id": "edited"})
    with corpus({"manual": MANUAL}) as (api, writer):
        assert read(api, "gate.md-1")[0] == ["gate.md-1", "gate.md-2", "gate.md-3"]
        writer.replace("manual", indexable([MANUAL[0], edited, *MANUAL[2:]]))
        api.reader.refresh()
        assert read(api, "gate.md-1")[0] == ["gate.md-1", "edited", "gate.md-3"]
        gone = told(api, Refused, ReadPassages, passageId="gate.md-2")
        assert (gone.code, gone.message) == ("passage_unknown", "Passage not found.")
        since = told(api, Refused, ReadPassages, passageId="gate.md-2", indexVersion="000001-0")
        assert (since.code, "has changed" in since.message) == ("passage_unknown", True)


def test_a_messages_neighbours_are_in_its_language() -> None:
    listed = make_passages(3)
    other = [
        one.model_copy(update={"id": f"{one.id}#jpn", "metadata": {"language": "JPN"}, "text": "はい"})
        for one in listed
    ]
    with corpus({"script": [*listed, *other]}) as (api, _):
        assert read(api, "m1")[0] == ["m0", "m1", "m2"]
        assert read(api, "m1#jpn")[0] == ["m0#jpn", "m1#jpn", "m2#jpn"]


def test_an_id_that_two_collections_have_is_told_apart_by_the_collection() -> None:
    with corpus({"a": make_passages(3, collection="a"), "b": make_passages(3, collection="b")}) as (api, _):
        for name in ("a", "b"):
            reply = told(api, Passages, ReadPassages, passageId="m1", collection=name)
            assert (reply.collection, reply.passages[reply.at].text) == (name, f"Line 1 of {name}.")
        assert told(api, Passages, ReadPassages, passageId="m1").collection == "a"


def test_long_texts_leave_the_nearest_passages_and_cut_a_single_one() -> None:
    long = [one.model_copy(update={"text": f"{one.text} " + "é" * 3_000}) for one in make_passages(9)]
    with corpus({"script": long}) as (api, _):
        ids, at, previous, later = read(api, "m4", before=4, after=4)
        assert (ids, at, previous, later) == (["m3", "m4", "m5"], 1, True, True)
    longest = [one.model_copy(update={"text": "\n" * PAGE_BYTES + "x"}) for one in make_passages(2)]
    with corpus({"script": longest}) as (api, _):
        reply = told(api, Passages, ReadPassages, passageId="m1")
        (only,) = reply.passages
        assert (only.clipped, len(only.text) > 8_000, reply.has_previous) == (True, True, True)


def test_rights_are_those_of_the_moment() -> None:
    rules = Rules(AccessRules())
    with corpus({"manual": MANUAL}) as (api, _):
        changing = replace(api, access=rules)
        assert told(changing, Passages, ReadPassages, passageId="gate.md-1").passages
        rules.now = AccessRules(readers={"manual": ("gms",)})
        assert told(changing, Refused, ReadPassages, passageId="gate.md-1").code == "passage_unknown"


def test_examples_are_declared_ones_first_and_then_made_of_names() -> None:
    said = {"manual": declared("manual", {"facts": ("What is so.", ("How is the gate locked?", "And the well?"))})}
    with corpus({"script": make_passages(25), "manual": MANUAL}, said=said) as (api, _):
        assert told(api, Collections, ListCollections).examples == (
            "What happens in “Episode ep1”?",
            "How is the gate locked?",
            "Who is Mira?",
            "What does “Gate” say about “Setup”?",
            "What happens in “Episode ep2”?",
            "What is “Well” about?",
        )
    own = said["manual"].model_copy(update={"examples": ("Is it open?",), "title": "The manual"})
    with corpus({"manual": MANUAL}, said={"manual": own}) as (api, _):
        reply = told(api, Collections, ListCollections)
        assert (reply.examples[0], reply.collections[0].title) == ("Is it open?", "The manual")
        assert "How is the gate locked?" not in reply.examples


def test_examples_are_in_the_language_of_the_passages() -> None:
    text = {"text": "Das Tor wird am Abend von dem Wärter verschlossen."}
    german = [
        section_passage(n, "tor.md", [path], collection="handbuch").model_copy(update=text)
        for n, path in enumerate(["Schlösser", "--force", "a/b.c", "x" * 99])
    ]
    with corpus({"handbuch": german}) as (api, _):
        assert told(api, Collections, ListCollections).examples == ("Was steht in „Tor“ über „Schlösser“?",)


def test_the_examples_of_a_view_are_of_what_may_be_read() -> None:
    rules = AccessRules(readers={"secret": ("gms",)})
    hidden = [section_passage(1, "vault.md", ["Hoard"], collection="secret")]
    with corpus({"manual": MANUAL, "secret": hidden}, rules=rules) as (api, _):
        assert "Vault" not in str(told(api, Collections, ListCollections).examples)
