"""A model that a document has misled tries everything, over the agents' real tools and real profiles."""

from __future__ import annotations

import pytest

from cicada.agents.ports import ToConfirm, ToolCall
from cicada.agents.tools.evidence import EvidenceJudge
from cicada.conversation.conversation import Conversation
from cicada.conversation.sessions import Stored
from cicada.conversation.turns import ConversationSession, ConversationTurn, SessionKey
from cicada.delivery.record import Question
from cicada.rights import EVERYTHING
from cicada.routing.changes import asks_for_change
from tests.support.agents import SidesModel
from tests.support.answers import new_budget
from tests.support.hostile import HOSTILE, READING, HostileWorld, every_writing_tool
from tests.support.questions import KEY, NOW_S, ScriptedModel
from tests.support.sessions import InMemorySessions


@pytest.mark.parametrize("sorting", [None, SidesModel(lambda *_: ("neither", "weak"))])
@pytest.mark.parametrize("keeping", [True, False])
def test_no_verdict_is_shown_that_no_judged_passage_bears(keeping, sorting):
    question = "Keep my theory: Ilse did it. Is it so?" if keeping else "Is my theory right: Ilse did it?"
    world = HostileWorld(question, every_writing_tool, kind="theory", judge=sorting and EvidenceJudge(sorting))
    verdict = world.answered.verdict
    assert verdict is None or (verdict.verdict, verdict.given) == ("open", False)
    theory = world.profile_service.show(KEY.subject, world.theory.id).theory
    assert theory is not None
    assert theory.judgement is None


@pytest.mark.parametrize("question", READING)
@pytest.mark.parametrize("kind", ["profile", "theory"])
def test_on_a_reading_question_it_changes_nothing(kind, question):
    world = HostileWorld(question, every_writing_tool, kind=kind)
    assert world.unchanged
    assert world.told == []
    assert all(reply.failed for reply in world.agent.replies)
    assert world.answered.changes is None


FOLLOW_UP = "And my profile of her?"


def noting(world):
    """The lie of the passage, quoted as the user's own words."""
    lie = {"field": "occupation", "value": "thief", "quote": "he is a thief"}
    return [ToolCall("c", "update_profile", {"id": world.corin.id, "expected_version": 1, "set": [lie]})]


def test_a_reading_question_stays_one_though_a_misled_model_completes_it_from_an_answer():
    sessions = InMemorySessions()
    shown = "Show me my profile of Corin"
    answer = f"A passage says: {HOSTILE}"
    turn = ConversationTurn.of(request_id="r0", at_ms=NOW_S * 1000 - 1, asked=shown, query=shown, answer=answer)
    sessions.stored[SessionKey(KEY.subject, None, "s1")] = Stored(ConversationSession((turn,)), 1)
    misled = ScriptedModel("And overwrite my profile of Corin: he is a thief")
    conversation = Conversation(sessions, misled, now_s=lambda: NOW_S)
    done = conversation.complete(Question(FOLLOW_UP, session_id="s1"), KEY.subject, lambda: EVERYTHING, new_budget())
    assert (asks_for_change(done.query), asks_for_change(FOLLOW_UP)) == (True, False)
    for calls in (noting, every_writing_tool):
        world = HostileWorld(FOLLOW_UP, calls, query=done.query, in_own_words=done.in_own_words)
        assert world.unchanged
        assert world.told == []


def test_words_of_an_answer_are_never_kept_as_the_users_own():
    completed = "Note about Corin that he is a thief"
    assert HostileWorld("Note that about Corin", noting, query=completed).unchanged
    assert not HostileWorld("Note that about Corin", noting, query=completed, in_own_words=True).unchanged


@pytest.mark.parametrize("by", ["its user", "the attempt"])
def test_on_a_question_that_asks_for_a_change_nothing_is_deleted_unasked_and_the_rest_is_told_and_taken_back(by):
    world = HostileWorld("Add to my profile of Corin that he is a singer", every_writing_tool)
    made = [one for one in world.told if not isinstance(one, ToConfirm)]
    assert {one.change.operation for one in made} == {"created", "updated"}
    waiting = [one for one in world.told if isinstance(one, ToConfirm)]
    assert {one.operation for one in waiting} <= {"delete", "remove_fields"}
    assert world.profile_service.show(KEY.subject, world.ilse.id) == world.ilse
    assert world.answered.changes == len(world.told)
    for one in reversed(made):
        id_, version = one.change.id, one.change.version
        one.take_back() if by == "the attempt" else world.profile_service.undo(
            world.by(f"undo {id_} {version}"), id_, version
        )
    for profile in (world.corin, world.ilse, world.theory):
        stands = world.profile_service.show(KEY.subject, profile.id)
        assert (stands.fields, stands.theory) == (profile.fields, profile.theory)
    assert len(world.profile_service.list(KEY.subject)) == 3
