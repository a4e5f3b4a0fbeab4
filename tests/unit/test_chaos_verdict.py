"""The verdict of a chaos run: what it accepts, and each way in which an answer can be wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.chaos.model_stream import Said
from tests.chaos.record import Followed, Screen, attempts_of, event_of, text_of
from tests.chaos.verdict import Evidence, conclude, judge

ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
SAID = "Ilse counted thirteen strokes. [1]"
NOTICE = "The sources could not be consulted for this answer, so nothing in it is backed by one.\n\n"


def events(*parts):
    """Events in their places."""
    return tuple({"requestId": ID, "seq": seq, **part} for seq, part in enumerate(parts, 1))


def accepted():
    return {"type": "accepted", "route": "rag", "strategy": "rag"}


def attempt(number, strategy="rag"):
    return {"type": "attempt", "attempt": number, "strategy": strategy}


def sources(number, *, found=1, **fields):
    return {"type": "sources", "attempt": number, "sources": [{"n": n} for n in range(1, found + 1)], **fields}


def chunk(number, content):
    return {"type": "chunk", "attempt": number, "content": content}


def fallback(to="direct"):
    return {"type": "fallback", "from": "rag", "to": to, "code": "stream_broken", "reason": "It broke off."}


def complete(number, answered_by="rag", attempted=("rag",)):
    return {"type": "complete", "attempt": number, "answeredBy": answered_by, "attempted": list(attempted)}


ANSWER = (accepted(), attempt(1), sources(1), chunk(1, SAID[:12]), chunk(1, SAID[12:]), complete(1))
FALLEN = (
    *(accepted(), attempt(1), sources(1), chunk(1, SAID[:9]), fallback()),
    *(
        attempt(2, "direct"),
        chunk(2, NOTICE + "I cannot"),
        chunk(2, " check it."),
        complete(2, "direct", ("rag", "direct")),
    ),
)
FALLEN_SAID = Evidence((Said(200, SAID[:20]), Said(200, "I cannot check it.", "end_turn")))


def followed(parts, **changes):
    """A request whose only reader saw all of a log over one socket."""
    log = events(*parts)
    screen = Screen([list(log)], log, text_of(log))
    return replace(Followed(1, ID, "How many strokes?", screens=[screen], log=log), **changes)


ANSWER_SAID = Evidence((Said(200, SAID, "end_turn"),))


def kinds(request, evidence=ANSWER_SAID, kept=frozenset()):
    return {breach.kind for breach in judge(request, evidence, kept)}


def test_a_whole_answer_that_every_reader_saw_is_as_promised():
    assert kinds(followed(ANSWER)) == set()


def test_an_answer_after_a_fallback_is_as_promised():
    assert kinds(followed(FALLEN), FALLEN_SAID) == set()


def test_passages_that_the_last_resort_offers_are_named_before_the_models_words():
    offer = NOTICE + "The best passages found before that are offered as sources [1]–[5]. It rests on none.\n\n"
    log = (*FALLEN[:6], sources(2, offered=True), chunk(2, offer + "I cannot check it."), FALLEN[-1])
    assert kinds(followed(log), FALLEN_SAID) == set()


def test_an_error_event_is_an_end():
    log = (accepted(), attempt(1), chunk(1, SAID[:9]), {"type": "error", "code": "worker_lost"})
    assert kinds(followed(log)) == set()


def test_a_log_that_cannot_be_read_is_a_lost_answer():
    assert kinds(followed(ANSWER, log=None)) == {"lost"}
    assert kinds(followed(ANSWER, log=None, cancelled=True)) == {"lost"}


def test_a_question_that_was_cancelled_before_the_server_had_it_is_not_lost():
    unasked = followed(ANSWER, log=None, cancelled=True, screens=[Screen([[]])])
    assert kinds(unasked, Evidence()) == set()
    assert unasked.outcome == "cancelled before it was asked"


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (ANSWER[:-1], "terminal"),
        ((*ANSWER, {"type": "error", "code": "cancelled"}), "terminal"),
        ((*ANSWER, chunk(1, "more")), "terminal"),
        ((*ANSWER[:4], chunk(1, SAID[:12]), *ANSWER[4:]), "chunks"),
        ((*ANSWER[:4], *ANSWER[5:]), "chunks"),
        ((*FALLEN[:4], *FALLEN[5:]), "mixed"),
        ((*FALLEN[:6], chunk(1, "late"), *FALLEN[6:]), "mixed"),
        ((*FALLEN[:5], chunk(1, "late"), *FALLEN[5:]), "mixed"),
        ((accepted(), attempt(2), sources(2), chunk(2, SAID), complete(2)), "mixed"),
        ((*ANSWER[:-1], complete(1, "direct")), "mixed"),
    ],
    ids=[
        "no end",
        "two ends",
        "text after the end",
        "a doubled chunk",
        "a missing chunk",
        "an attempt without a fallback",
        "text of the attempt before",
        "text between two attempts",
        "an attempt too many",
        "another strategy's name",
    ],
)
def test_a_log_that_breaks_a_promise_is_found(log, kind):
    evidence = FALLEN_SAID if log[:3] == FALLEN[:3] and fallback() in log else ANSWER_SAID
    assert kind in kinds(followed(log), evidence)


def test_a_gap_in_the_seqs_is_found():
    log = events(*ANSWER)
    assert "chunks" in kinds(followed(ANSWER, log=log[:3] + log[4:]))


def test_an_answer_whose_model_did_not_come_to_its_end_is_found():
    assert kinds(followed(ANSWER), Evidence((Said(200, SAID),))) == {"unwritten"}
    assert kinds(followed(ANSWER), Evidence((Said(200, SAID, "max_tokens"),))) == {"unwritten"}
    assert kinds(followed(ANSWER), Evidence()) == {"unwritten"}


def test_two_attempts_texts_spliced_into_one_are_found():
    log = (*ANSWER[:3], chunk(1, "Ilse counted "), chunk(1, "I cannot check it."), complete(1))
    both = Evidence((Said(200, SAID), Said(200, "I cannot check it.", "end_turn")))
    assert kinds(followed(log), both) == {"chunks"}


def test_foreign_text_in_an_attempt_that_was_given_up_is_found():
    log = (*FALLEN[:3], chunk(1, "The heron flies."), *FALLEN[4:])
    assert kinds(followed(log), FALLEN_SAID) == {"chunks"}


def test_what_our_own_code_says_needs_no_model():
    log = (accepted(), attempt(1), sources(1, found=0), chunk(1, "I found nothing."), complete(1))
    assert kinds(followed(log), Evidence()) == set()


CAG = ("cag", ("cag",))


def test_an_earlier_answer_may_be_given_again_word_by_word():
    again = (accepted(), attempt(1, "cag"), sources(1, reused={"use": "answer"}), chunk(1, SAID), complete(1, *CAG))
    assert kinds(followed(again), Evidence(), frozenset({SAID})) == set()
    assert kinds(followed(again), Evidence(), frozenset({"Something else."})) == {"chunks"}


def test_more_than_four_model_calls_are_too_many():
    said = Said(200, SAID, "end_turn")
    assert kinds(followed(ANSWER), Evidence((said,) * 4)) == set()
    assert kinds(followed(ANSWER), Evidence((said,) * 5)) == {"calls"}


def test_more_than_eight_calls_for_searches_beside_each_are_too_many():
    said = (Said(200, SAID, "end_turn"),)
    assert kinds(followed(ANSWER), Evidence(said, retrieval_calls=32)) == set()
    assert kinds(followed(ANSWER), Evidence(said, retrieval_calls=33)) == {"calls"}


def test_a_request_whose_readers_left_must_end_by_itself():
    left = Screen([list(events(*ANSWER[:2]))], events(*ANSWER[:2]), "", followed=False)
    assert kinds(followed(ANSWER, screens=[left], ended_alone=True)) == set()
    assert kinds(followed(ANSWER, screens=[left], ended_alone=False)) == {"terminal"}


def test_every_screen_is_held_against_the_log():
    log = events(*ANSWER)
    good = Screen([list(log)], log, text_of(log))
    other = {**log[3], "content": "Something else"}
    screens = {
        "shown": replace(good, arrived=[[*log[:3], other]]),
        "chunks": replace(good, displayed=log[:2] + log[3:], text=text_of(log)),
        "mixed": replace(good, text="Something else"),
        "lost": replace(good, failure="ConnectionLost: gave up"),
    }
    for kind, screen in screens.items():
        assert kind in kinds(followed(ANSWER, screens=[good, screen]))
    short = replace(good, displayed=log[:4], text=text_of(log[:4]))
    assert kinds(followed(ANSWER, screens=[short])) == {"lost"}


def test_a_blocked_answer_is_withdrawn_from_log_and_screen():
    blocked = {"type": "error", "code": "answer_blocked", "failed": []}
    seen = events(*ANSWER[:4], blocked)
    withdrawn = (*ANSWER[:3], {"type": "withdrawn", "attempt": 1}, blocked)
    screen = Screen([list(seen)], seen, "")
    assert kinds(followed(withdrawn, screens=[screen])) == set()
    assert kinds(followed(withdrawn, screens=[replace(screen, text=SAID[:12])])) == {"mixed"}
    assert kinds(followed((*ANSWER[:4], blocked), screens=[screen])) == {"mixed"}


def test_repeats_over_several_sockets_are_no_breach():
    log = events(*ANSWER)
    screen = Screen([list(log[:4]), list(log[2:]), list(log)], log, text_of(log))
    assert kinds(followed(ANSWER, screens=[screen])) == set()


def test_the_verdict_counts_requests_not_breaches():
    said = {ID: Evidence((Said(200, SAID, "end_turn"),))}
    cut = followed((*ANSWER[:4], chunk(1, "x"), chunk(1, "y"), complete(1)), number=2)
    verdict = conclude([followed(ANSWER), cut, followed(ANSWER, number=3, log=None)], said)
    assert not verdict.holds
    assert (verdict.counts()["chunks"], verdict.counts()["lost"], verdict.counts()["terminal"]) == (1, 1, 0)
    assert verdict.outcomes == {"complete": 2, "lost": 1}
    assert verdict.answered_by == {"rag": 2}
    assert (verdict.model_calls, verdict.most_model_calls) == (1, 1)
    assert conclude([followed(ANSWER)], said).holds


def test_the_text_on_a_screen_is_the_last_attempts():
    log = events(*FALLEN)
    assert text_of(log) == NOTICE + "I cannot check it."
    assert text_of(log[:5]) == ""
    assert [one[0]["attempt"] for one in attempts_of(log)] == [1, 2]
    assert [one["type"] for one in attempts_of(log)[0]] == ["attempt", "sources", "chunk"]


@pytest.mark.parametrize("text", ["{", "null", '{"type":"pong","seq":0}', json.dumps({"requestId": ID, "seq": 0})])
def test_what_is_no_event_of_a_request_is_left_aside(text):
    assert event_of(text, ID) is None
    assert event_of(json.dumps({"requestId": "another", "seq": 1}), ID) is None
    assert event_of(json.dumps({"requestId": ID, "seq": 1}), ID) == {"requestId": ID, "seq": 1}
