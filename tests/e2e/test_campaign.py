"""Questions about the sample campaign on the deployed thing: from which sections they are answered, and why."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cicada import rights
from cicada.index.reader import IndexReader
from cicada.index.s3 import S3Store
from cicada.retrieval.knowledge.contracts import NamedEntity, catalogue_of
from cicada.retrieval.knowledge.resolving import IndexResolver
from cicada_local.loading import SAMPLE
from cicada_local.places import aws_environment
from cicada_local.testing import LocalCloud
from tests.e2e import command
from tests.e2e.plain_client import Socket
from tests.e2e.reading import Events, failures, first
from tests.e2e.searched_cloud import SearchedCloud

SAMPLES = Path(__file__).parents[2] / "samples"
LABELLED = Path(__file__).parents[1] / "data" / "campaign_questions.jsonl"

TIED = "What combat abilities do I have tied to Gutterflame?"
REMIND = "Remind me who Ottoline Prawle is and what persuasion abilities I have."
GRAPPLE = "How does grappling work and what's my athletics bonus?"
EVERYTHING = (
    "Tell me everything about the Heron Lantern: what it does by the rules, how we got it "
    "and how many charges mine has."
)
"""Of a thing that stands in all three collections."""
QUESTIONS = (TIED, REMIND, GRAPPLE, EVERYTHING)

SUPPER = "What was served for supper in episode 2?"
BOATHOUSE = "Who locked the boathouse in the first draft?"
WICK = "How often is the wick of the jetty lamp trimmed?"
"""Of a collection that declares nothing."""
OTHERS = (SUPPER, BOATHOUSE, WICK)
_AT_A_TIME = 2
"""Questions: each starts a function, and a busy machine that starts many at once lets the models' calls be late."""
_TRIES = 3
"""Of a question whose models were late: a machine that is too busy says nothing about where answers are from."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """The local cloud with its samples and the shelf, which declares nothing; without earlier answers."""
    home, settings = tmp_path_factory.mktemp("campaign"), {"cache": {"enabled": False}}
    with SearchedCloud(home, settings=settings, load=[SAMPLE]) as cloud:
        cicada(cloud, "load", str(SAMPLES / "shelf"), "--collection", "shelf", "--yes", "--no-wait")
        yield cloud


def cicada(cloud: LocalCloud, *arguments: str) -> str:
    """What a command prints."""
    done = command.cicada(arguments, aws_environment(os.environ, cloud.endpoint_url))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def answers(cloud: LocalCloud) -> dict[str, Events]:
    """The example questions' events."""

    def answer(question: str) -> Events:
        for _ in range(_TRIES):
            with Socket(cloud.websocket_url) as socket:
                events = socket.answer(question)
            if ("hybrid", "model_unavailable") not in failures(events[-1]):
                break
        return events

    questions = (*QUESTIONS, *OTHERS)
    with ThreadPoolExecutor(_AT_A_TIME) as askers:
        return dict(zip(questions, askers.map(answer, questions), strict=True))


@pytest.fixture
def found(answers: dict[str, Events]) -> Callable[[str], list[dict[str, Any]]]:
    """The sources of a question."""

    def sources(question: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = first(answers[question], "sources")["sources"]
        return listed

    return sources


def reasons(sources: list[dict[str, Any]], kind: str) -> set[tuple[str, str, str]]:
    """Collection, name and section of all reasons of a kind."""
    return {
        (source["collection"], why["name"], why["section"])
        for source in sources
        for why in source["why"]
        if why["kind"] == kind
    }


def collections(sources: list[dict[str, Any]]) -> set[str]:
    return {source["collection"] for source in sources}


@pytest.mark.parametrize("question", QUESTIONS, ids=["tied", "remind", "grapple", "everything"])
def test_each_is_answered_by_hybrid_grounded_and_every_source_says_why(
    question: str, answers: dict[str, Events], found: Callable[[str], list[dict[str, Any]]]
) -> None:
    complete = answers[question][-1]
    assert (complete["answeredBy"], complete["attempted"], failures(complete)) == ("hybrid", ["hybrid"], [])
    assert complete["grounded"]
    assert complete["metrics"]["modelCalls"] == 3  # the selector, the extractor and the answer
    assert all(source["why"] for source in found(question))
    assert first(answers[question], "sources")["degraded"] == []


def test_a_question_about_the_character_takes_the_character_alone_with_the_inventory_where_the_item_is(
    found: Callable[[str], list[dict[str, Any]]],
) -> None:
    sources = found(TIED)
    assert collections(sources) == {"character_data"}
    assert {name for _, name, _ in reasons(sources, "intention")} == {"combat_info"}
    places = {("character_data", "Gutterflame", section) for section in ("combat", "inventory")}
    assert places <= reasons(sources, "entity")


def test_a_question_of_two_halves_takes_the_notes_and_the_character(
    found: Callable[[str], list[dict[str, Any]]],
) -> None:
    sources = found(REMIND)
    assert collections(sources) == {"session_notes", "character_data"}
    intentions = {(collection, name) for collection, name, _ in reasons(sources, "intention")}
    assert {("session_notes", "npc_history"), ("character_data", "abilities_info")} <= intentions
    named = reasons(sources, "entity")
    assert ("session_notes", "Ottoline Prawle", "people") in named
    assert ("character_data", "Persuasion", "abilities") in named


def test_a_rule_and_a_bonus_take_the_rulebook_and_the_character(
    found: Callable[[str], list[dict[str, Any]]],
) -> None:
    sources = found(GRAPPLE)
    assert collections(sources) == {"rulebook", "character_data"}
    assert ("rulebook", "rule_mechanics", "manoeuvres") in reasons(sources, "intention")
    assert ("rulebook", "Grappling", "manoeuvres") in reasons(sources, "entity")
    assert ("character_data", "Athletics", "abilities") in reasons(sources, "entity")


def test_what_stands_in_three_collections_is_in_the_context_three_times(
    found: Callable[[str], list[dict[str, Any]]],
) -> None:
    named = {(collection, section) for collection, name, section in reasons(found(EVERYTHING), "entity")}
    assert {("rulebook", "magic_items"), ("session_notes", "events"), ("character_data", "inventory")} <= named


@pytest.mark.parametrize(
    ("question", "episode", "words"),
    [(SUPPER, "ep2", "barley soup"), (BOATHOUSE, "ep1", "boathouse")],
    ids=["supper", "boathouse"],
)
def test_a_question_about_the_script_is_answered_from_the_script(
    question: str, episode: str, words: str, answers: dict[str, Events], found: Callable[[str], list[dict[str, Any]]]
) -> None:
    assert collections(found(question)) <= {"script", "shelf"}
    complete = answers[question][-1]
    assert (complete["answeredBy"], complete["grounded"]) == ("hybrid", True)
    assert any(words in one["text"] and one["locator"].get("episodeId") == episode for one in found(question))


def test_a_collection_that_declares_nothing_is_searched_whatever_is_chosen(
    answers: dict[str, Events], found: Callable[[str], list[dict[str, Any]]]
) -> None:
    of_shelf = [source for source in found(WICK) if source["collection"] == "shelf"]
    assert any("wick" in source["text"] for source in of_shelf)
    assert {why["kind"] for source in of_shelf for why in source["why"]} == {"similarity"}
    assert answers[WICK][-1]["grounded"]


def test_every_place_of_every_labelled_name_is_resolved_in_the_index_as_it_was_loaded(cloud: LocalCloud) -> None:
    store = S3Store(cloud.client("s3"), cloud.outputs["IndexBucket"])
    reader = IndexReader(store, embedding_model_id="local.all-minilm-l6-v2", dimensions=384)
    try:
        resolver = IndexResolver(reader, catalogue_of=lambda index, readable: catalogue_of(index.manifest, readable))
        labelled = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
        missing = []
        for question in labelled:
            for name in question["entities"]:
                named = NamedEntity(name["name"], 1.0, name["as"], "model")
                found = resolver.resolve([named], list(question["collections"]), readable=rights.EVERYTHING)
                held = {(place.collection, place.section) for place in found}
                missing += [(name["name"], *place) for place in map(tuple, name["places"]) if place not in held]
    finally:
        reader.close()
    assert sum(len(question["entities"]) for question in labelled) > 100
    assert missing == []


def test_a_choice_that_fails_falls_to_a_plain_search_of_everything(cloud: LocalCloud) -> None:
    cloud.arm("bedrock.form", mode="misfit")
    try:
        with Socket(cloud.websocket_url) as socket:
            events = socket.answer("What is in my pack?")
    finally:
        cloud.disarm()
    fallback = first(events, "fallback")
    assert (fallback["from"], fallback["to"], fallback["code"]) == ("hybrid", "rag", "answer_malformed")
    assert events[-1]["answeredBy"] == "rag"
    assert all("why" not in source for source in first(events, "sources")["sources"])


def test_the_command_line_prints_the_sources_of_a_question_with_why(cloud: LocalCloud) -> None:
    printed = cicada(cloud, "ask", "--json", "--url", cloud.websocket_url, TIED)
    sources = first([json.loads(line) for line in printed.splitlines()], "sources")["sources"]
    assert ("character_data", "Gutterflame", "inventory") in reasons(sources, "entity")
