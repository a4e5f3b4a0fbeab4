"""The agents on the deployed thing: profiles kept in conversation, theories weighed by the script, and what fails."""

from __future__ import annotations

import uuid

import pytest

from tests.e2e.reading import failures, first, types
from tests.support.questions import joined

CREATE = "Create a profile of the character Corin: occupation is boatman, and he keeps the tower key."
SHOW = "Show me the profile of Corin."
UPDATE = "Update the profile of Corin: set mood to grumpy."
CHANGED = "What changed in my profile of Corin?"
THEORY = "What evidence is there for and against the theory that Corin put a new padlock on the water gate?"


@pytest.fixture
def socket(connect):
    return connect()


def all_of(events, kind):
    return [event for event in events if event["type"] == kind]


def verdicts(events):
    return {citation["verdict"] for event in all_of(events, "citations") for citation in event["citations"]}


def test_a_profile_is_made_shown_changed_and_its_changes_are_told_in_conversation(socket):
    created = socket.answer(CREATE)
    assert (created[-1]["answeredBy"], failures(created[-1])) == ("profile_agent", [])
    assert "boatman" in joined(created)

    shown = socket.answer(SHOW)
    assert shown[-1]["answeredBy"] == "profile_agent"
    assert "boatman" in joined(shown)
    sources = all_of(shown, "sources")[-1]["sources"]
    assert [source["locator"].get("field") for source in sources[:2]] == ["occupation", "keeps"]
    assert verdicts(shown) == {"verified"}

    updated = socket.answer(UPDATE)
    assert (updated[-1]["answeredBy"], updated[-1]["changes"]) == ("profile_agent", 1)
    change = first(updated, "receipt")["change"]
    assert (change["name"], change["version"], change["undoable"]) == ("Corin", 2, True)
    changed = socket.answer(CHANGED)
    assert (changed[-1]["answeredBy"], changed[-1]["grounded"], verdicts(changed)) == (
        "profile_agent",
        True,
        {"unchecked"},
    )
    assert "grumpy" in joined(changed)
    assert "boatman" in joined(changed)


def test_a_profile_is_deleted_by_its_users_confirmation_and_by_nothing_else(socket, connect):
    socket.answer(CREATE)
    asked = socket.answer("Delete my profile of Corin")
    confirm = first(asked, "confirm")
    assert (asked[-1]["answeredBy"], confirm["operation"], confirm["name"]) == ("profile_agent", "delete", "Corin")
    assert {field["field"] for field in confirm["fields"]} == {"occupation", "keeps"}
    answer = {"requestId": confirm["requestId"], "confirmationId": confirm["confirmationId"], "accept": True}
    stranger = connect(f"stranger-{uuid.uuid4()}")
    stranger.send("confirm", **answer)
    assert stranger.receive()["code"] == "request_unknown"
    assert "boatman" in joined(socket.answer(SHOW))
    for _ in range(2):
        socket.send("confirm", **answer)
        done = socket.until("confirmed")
        assert (done["outcome"], done["change"]["operation"]) == ("done", "deleted")
    assert "boatman" not in joined(socket.answer(SHOW))


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
    verdict = first(events, "verdict")
    assert (verdict["verdict"], verdict["given"]) == ("supported", True)
    assert joined(events).endswith(f"against it: {len(verdict['against'])}.")
    padlock = {source["n"] for source in found if "padlock" in source["text"]}
    assert {one["n"] for one in verdict["for"]} & padlock
    assert end["metrics"]["modelCalls"] == 3  # to sort the evidence, to give the verdict, to tell it


def test_a_theory_that_is_put_forward_is_weighed_kept_and_listed(socket):
    events = socket.answer("My theory: Corin put a new padlock on the water gate. Does the text say so?")
    assert (events[-1]["answeredBy"], events[-1]["grounded"]) == ("theory_agent", True)
    assert all_of(events, "receipt") == []  # nobody asked to keep it
    events = socket.answer("Keep my theory: Corin put a new padlock on the water gate. Does the text say so?")
    assert (events[-1]["answeredBy"], events[-1]["grounded"]) == ("theory_agent", True)
    assert [one["change"]["operation"] for one in all_of(events, "receipt")] == ["created", "updated"]
    assert first(events, "verdict")["given"]
    assert events[-1]["metrics"]["modelCalls"] == 6  # four turns, and the evidence sorted for the question and for it
    listed = socket.answer("What theories do I have?")
    assert listed[-1]["answeredBy"] == "profile_agent"
    assert "Corin put a new padlock on the water gate." in joined(listed)


def test_an_agent_that_fails_falls_to_the_search_and_says_so(cloud, socket):
    cloud.arm("bedrock.cut", mode="reset", after=0, times=1)
    events = socket.answer(THEORY, episodes=["ep1"])
    end = events[-1]
    assert end["answeredBy"] == "rag"
    assert failures(end) == [("theory_agent", "stream_broken")]
    fallback = first(events, "fallback")
    assert (fallback["from"], fallback["to"]) == ("theory_agent", "rag")
    assert types(events).count("complete") == 1
