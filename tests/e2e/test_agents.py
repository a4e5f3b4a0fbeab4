"""The agents on the deployed thing: profiles kept in conversation, theories weighed by the script, and what fails."""

from __future__ import annotations

import uuid

import pytest

from tests.e2e.reading import failures, first, types
from tests.support.questions import joined

CREATE = "Create a profile for Corin: occupation is boatman."
SHOW = "Show me the profile of Corin."
UPDATE = "Update the profile of Corin: set mood to grumpy."
CHANGED = "What changed in my profile of Corin?"
THEORY = "What evidence is there for and against the theory that Corin put a new padlock on the water gate?"


@pytest.fixture
def socket(connect):
    return connect()


def all_of(events, kind):
    return [event for event in events if event["type"] == kind]


def test_a_profile_is_made_shown_changed_and_its_changes_are_told_in_conversation(socket):
    created = socket.answer(CREATE)
    assert (created[-1]["answeredBy"], failures(created[-1])) == ("profile_agent", [])
    assert "boatman" in joined(created)

    shown = socket.answer(SHOW)
    assert shown[-1]["answeredBy"] == "profile_agent"
    assert "boatman" in joined(shown)
    notes = [source for source in all_of(shown, "sources")[-1]["sources"] if source["origin"] == "profile"]
    assert [source["locator"]["kind"] for source in notes] == ["note"]
    cited = [citation for event in all_of(shown, "citations") for citation in event["citations"]]
    assert {citation["verdict"] for citation in cited} == {"verified"}

    updated = socket.answer(UPDATE)
    assert updated[-1]["answeredBy"] == "profile_agent"
    changed = joined(socket.answer(CHANGED))
    assert "grumpy" in changed
    assert "boatman" in changed


def test_another_user_sees_nothing_of_it(socket, connect):
    assert socket.answer(CREATE)[-1]["answeredBy"] == "profile_agent"
    stranger = connect(f"stranger-{uuid.uuid4()}").answer(SHOW)
    assert stranger[-1]["type"] == "complete"
    assert "boatman" not in joined(stranger)
    assert not [
        source for event in all_of(stranger, "sources") for source in event["sources"] if source["origin"] == "profile"
    ]


def test_a_theory_is_weighed_by_evidence_of_the_script_with_citations(socket):
    events = socket.answer(THEORY, episodes=["ep1"])
    end = events[-1]
    assert (end["answeredBy"], failures(end), end["grounded"]) == ("theory_agent", [], True)
    found = all_of(events, "sources")[-1]["sources"]
    assert {source["locator"]["episodeId"] for source in found if source["locator"]["kind"] == "script"} == {"ep1"}
    assert all(reason["kind"] == "tool" for source in found for reason in source["why"])
    verified = [
        one for event in all_of(events, "citations") for one in event["citations"] if one["verdict"] == "verified"
    ]
    assert verified
    assert "padlock" in " ".join(source["text"] for source in found if source["n"] in {one["n"] for one in verified})
    assert end["metrics"]["modelCalls"] >= 1


def test_an_agent_that_fails_falls_to_the_search_and_says_so(cloud, socket):
    cloud.arm("bedrock.cut", mode="reset", after=0, times=1)
    events = socket.answer(THEORY, episodes=["ep1"])
    end = events[-1]
    assert end["answeredBy"] == "rag"
    assert failures(end) == [("theory_agent", "stream_broken")]
    fallback = first(events, "fallback")
    assert (fallback["from"], fallback["to"]) == ("theory_agent", "rag")
    assert types(events).count("complete") == 1
