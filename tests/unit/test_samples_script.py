"""The sample script: what it declares of itself, and how it is divided by that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.declared.parsing import read_declaration
from cicada.corpus.passages import Passage
from cicada.index.versions import must_be_published
from cicada.ingest.loading import load_documents
from tests.support.embedding import WordEmbedder
from tests.support.index_content import content
from tests.support.ingest import read_here, recipe_for
from tests.support.object_stores import InMemoryStore
from tests.support.passages import script_place

SCRIPT = Path(__file__).resolve().parents[2] / "samples" / "script"
DECLARED = read_declaration((SCRIPT / "collection.yaml").read_bytes(), collection="script")


def test_it_declares_a_script_whose_intentions_have_examples_of_their_own() -> None:
    assert (DECLARED.kind, DECLARED.immutable) == ("script", False)
    assert [one.name for one in DECLARED.intentions] == [
        "story_events",
        "who_is",
        "what_was_said",
        "clues_and_objects",
        "places_and_times",
    ]
    examples = [example for one in DECLARED.intentions for example in one.examples]
    assert len(examples) == len(set(examples)) == 25


def test_every_message_is_in_a_section_and_the_cast_is_filed_under_full_names() -> None:
    store, embedder = InMemoryStore(), WordEmbedder()
    report = load_documents([SCRIPT], "script", store, embedder, recipe_for(embedder), read=read_here)
    assert report.quarantined == ()
    assert must_be_published(store).manifest.declarations == (DECLARED,)
    passages = [Passage.model_validate(found.line) for found in content(store)["script"].values()]
    sections = Counter((script_place(passage).episode_id, passage.metadata[SECTION]) for passage in passages)
    assert {section for episode, section in sections if episode != "ep5"} == {"drafts"}
    assert {section for episode, section in sections if episode == "ep5"} == {"fair_copy"}
    named = Counter(name for passage in passages for name in passage.entities)
    assert set(DECLARED.names.aliases) - named.keys() == set()
    assert "Mr Vell" not in named
