"""The messages: what is accepted, what is refused and how, and the published documents."""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada import errors
from cicada.errors import CicadaError, InvalidMessage, UnknownAction
from cicada.protocol.actions import (
    MAX_QUERY_CHARS,
    Ask,
    CorpusAction,
    Ping,
    ProcessedAction,
    actions_of,
    parse_action,
    parse_corpus_action,
    parse_upload_action,
    request_id_of,
)
from cicada.protocol.asyncapi import asyncapi_document, render
from cicada.protocol.events import (
    Accepted,
    Chunk,
    Failed,
    Fallback,
    Pong,
    Refused,
    Resumed,
    dump_event,
    event_frame,
    load_event,
    reply_frame,
)
from cicada.text.visible import is_blank

REQUEST_ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
DOCS = Path(__file__).parents[2] / "docs" / "protocol"
VECTORS = json.loads((DOCS / "vectors.json").read_text())
ID = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


PARSERS = {
    **dict.fromkeys(actions_of(ProcessedAction), parse_action),
    **dict.fromkeys(actions_of(CorpusAction), parse_corpus_action),
    "upload": parse_upload_action,
}
"""Each action's, by the function that handles it."""


@pytest.mark.parametrize("action", VECTORS["valid"], ids=lambda action: json.dumps(action)[:60])
def test_valid_vectors_are_accepted(action):
    assert PARSERS[action["action"]](json.dumps(action)).action == action["action"]


@pytest.mark.parametrize("action", VECTORS["valid"], ids=lambda action: json.dumps(action)[:60])
def test_an_action_of_another_function_is_unknown(action):
    for parse in {*PARSERS.values()} - {PARSERS[action["action"]]}:
        with pytest.raises(UnknownAction):
            parse(json.dumps(action))


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["frame"][:70])
def test_refused_vectors_are_refused_with_their_code(vector):
    named = re.match(r'\{"action":"(\w+)"', vector["frame"])
    with pytest.raises(InvalidMessage) as refusal:
        PARSERS.get(named[1] if named else "", parse_action)(vector["frame"])
    assert refusal.value.code == vector["code"]


@pytest.mark.parametrize("session", VECTORS["sessions"], ids=lambda session: session["name"])
def test_the_frames_of_session_vectors_are_events_of_the_protocol(session):
    for frame in session["frames"]:
        event = {name: value for name, value in frame.items() if name not in ("requestId", "seq")}
        assert json.loads(dump_event(load_event(event))) == event


@pytest.mark.parametrize("length", [1, MAX_QUERY_CHARS])
def test_a_query_may_have_1_to_4000_characters(length):
    action = parse_action(json.dumps({"action": "ask", "requestId": ID, "query": "é" * length}))
    assert isinstance(action, Ask)
    assert action.query == "é" * length


def test_a_longer_query_is_refused_and_not_repeated():
    with pytest.raises(InvalidMessage) as refusal:
        parse_action(json.dumps({"action": "ask", "requestId": ID, "query": "secret" * 1000}))
    assert "query" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def asked(query):
    action = parse_action(json.dumps({"action": "ask", "requestId": REQUEST_ID, "query": query}))
    assert isinstance(action, Ask)
    return action.query


@pytest.mark.parametrize("unseen", ["\u200b", "\u202e", "\U000e0041", "\U000e0101", "\x07", "\ue000", "\ufeff"])
def test_characters_that_nobody_sees_are_left_out_of_a_question(unseen):
    assert asked(f"Who locked{unseen} it?") == "Who locked it?"
    with pytest.raises(InvalidMessage):
        asked(unseen)


@pytest.mark.parametrize("joiners", ["\u200c", "\u200d", " \u200d\u200c ", "\u200d \u200c\n\u200d"])
def test_joiners_that_join_nothing_are_no_text(joiners):
    with pytest.raises(InvalidMessage):
        asked(joiners)
    assert asked(f"Who{joiners}?").replace(" ", "").replace("\n", "") in ("Who?", f"Who{joiners}?")


@pytest.mark.parametrize(
    "blank",
    ["\ufe0f", "\u200d\ufe0f", "\u034f", "\u3164", "\u115f\u1160", "\uffa0", "\u17b4", "\u180b", "\u2800 \u2800"],
)
def test_letters_and_marks_that_show_nothing_are_no_text(blank):
    with pytest.raises(InvalidMessage):
        asked(blank)
    assert asked(f"{blank} Who?").strip() == "Who?"


NOTHING_BY_CATEGORY: Any = ("Cc", "Cf", "Cn", "Co", "Mc", "Me", "Mn", "Zl", "Zp", "Zs")
SEEN_BY_CATEGORY: Any = [
    *("Ll", "Lm", "Lo", "Lt", "Lu", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So")
]
NOTHING_IN_SPITE_OF_IT = "\u115f\u1160\u2800\u3164\uffa0\ufffc\U0001d159"
shown_as_nothing = st.sampled_from(NOTHING_IN_SPITE_OF_IT + "\u200c\u200d\u00ad\ufe0f \u0301") | st.characters(
    categories=NOTHING_BY_CATEGORY
)


def test_every_character_of_unicode_is_seen_or_not() -> None:
    """By its category alone, but for a few letters and symbols that are drawn as nothing."""
    planes = chain(range(0x3_2000), range(0xE_0000, 0xE_1000))  # what lies elsewhere is private, or of no use yet
    blank: set[str] = set()
    seen: set[str] = set()
    for character in map(chr, planes):
        (seen if unicodedata.category(character)[0] in "LNPS" else blank).add(character)
    in_spite = set(filter(is_blank, seen))
    assert is_blank("".join(blank))
    hieroglyphs = {"\U00013441", "\U00013442"}  # since Unicode 15.1, which not every Python knows
    assert in_spite - hieroglyphs == set(NOTHING_IN_SPITE_OF_IT)


@given(st.lists(shown_as_nothing, max_size=40))
def test_no_combination_of_characters_that_show_nothing_is_a_question(characters):
    with pytest.raises(InvalidMessage):
        asked("".join(characters))


@given(
    st.lists(shown_as_nothing, max_size=10),
    st.characters(categories=SEEN_BY_CATEGORY).filter(lambda one: not is_blank(one)),
    st.lists(shown_as_nothing, max_size=10),
)
def test_one_character_that_is_seen_makes_a_question(before, seen, after):
    assert seen in asked("".join([*before, seen, *after]))


def test_a_blank_question_is_told_so():
    with pytest.raises(InvalidMessage, match="must not be blank"):
        asked("\u2800\u200d\U000e0041\u0301")


@pytest.mark.parametrize("session", ["a", "reading-room", ID, "user:7.2_b", "Z" * 128])
def test_a_session_has_a_name_of_letters_digits_and_few_signs(session):
    action = parse_action(json.dumps({"action": "ask", "requestId": ID, "query": "x", "sessionId": session}))
    assert isinstance(action, Ask)
    assert action.session_id == session


@pytest.mark.parametrize("session", ["", "a b", "ä", "a\n", "a/b", "#", "a\u200d", "Z" * 129, 7])
def test_any_other_session_is_refused(session):
    with pytest.raises(InvalidMessage, match="sessionId"):
        parse_action(json.dumps({"action": "ask", "requestId": ID, "query": "x", "sessionId": session}))


@pytest.mark.parametrize(
    "query", ["می\u200cخواهم؟", "क्\u200dष", "Who?\n\t1. Mara", "誰が鍵を?", "👩\u200d🚀?", "❤\ufe0f?", "ᠠ\u180bᠨ?"]
)
def test_every_other_character_of_a_question_stays(query):
    assert asked(query) == query


def test_a_refusal_repeats_little_of_an_unknown_fields_name():
    with pytest.raises(InvalidMessage) as refusal:
        parse_action(json.dumps({"action": "ping", "x" * 100_000: 1}))
    assert len(refusal.value.detail) < 300


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ({"action": "ping", "secret": 1}, ""),
        (
            {
                "action": "profile",
                "requestId": ID,
                "operation": "create",
                "set": [{"field": "hair", "value": "red", "secret": 1}],
            },
            "set.0.",
        ),
    ],
)
def test_the_name_of_an_unknown_field_is_told_to_the_client_and_not_to_the_log(frame, place):
    with pytest.raises(InvalidMessage) as refusal:
        parse_action(json.dumps(frame))
    assert refusal.value.detail == f"{place}secret: Extra inputs are not permitted"
    assert str(refusal.value) == f"{place}(unknown field): Extra inputs are not permitted"


def test_a_request_id_is_compared_without_case():
    action = parse_action(json.dumps({"action": "ask", "requestId": ID.upper(), "query": "x"}))
    assert isinstance(action, Ask)
    assert action.request_id == ID


def test_an_actions_defaults():
    assert parse_action(json.dumps({"action": "ask", "requestId": ID, "query": "x"})) == Ask(
        requestId=ID, query="x", sessionId=None, collections=(), episodes=(), topK=None
    )
    assert parse_action('{"action":"ping"}') == Ping()


@given(st.one_of(st.text(), st.binary(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)))
def test_any_frame_is_parsed_or_refused(frame):
    with pytest.raises(InvalidMessage):
        parse_action(frame)
    assert request_id_of(frame) is None


def test_the_request_id_of_a_refused_frame_is_found_where_it_is_valid():
    assert request_id_of(json.dumps({"action": "ask", "requestId": ID})) == ID
    assert request_id_of(json.dumps({"action": "ask", "requestId": 7})) is None
    assert request_id_of("[" * 100_000) is None


def test_an_event_gets_its_place_when_it_is_framed():
    body = dump_event(Chunk(attempt=1, content='say "hi"\n'))
    assert json.loads(event_frame(ID, 7, body)) == {
        "requestId": ID,
        "seq": 7,
        "type": "chunk",
        "attempt": 1,
        "content": 'say "hi"\n',
    }


@pytest.mark.parametrize(
    "event",
    [
        Accepted(route="rag", confidence=0.5, reasoning="r", strategy="rag"),
        Fallback(from_="rag", to="direct", code="c", reason="r"),
        Failed(code="c", message="m", retryable=True),
    ],
)
def test_events_read_back_as_they_were_written(event):
    assert load_event(dump_event(event)) == event
    added = json.loads(dump_event(event)) | {"ofANewerRelease": 1}
    assert load_event(json.dumps(added)) == load_event(added) == event


@pytest.mark.parametrize(
    "reply", [Pong(), Resumed(request_id=ID, outcome="live", last_seq=3), Refused.of(InvalidMessage())]
)
def test_replies_carry_the_three_fields_of_every_frame(reply):
    frame = json.loads(reply_frame(reply))
    assert frame["seq"] == 0
    assert {"requestId", "type"} <= frame.keys()


def test_the_published_protocol_is_the_one_that_the_messages_make():
    assert (DOCS / "asyncapi.json").read_text() == render(), (
        "run: python -m cicada.protocol.asyncapi > docs/protocol/asyncapi.json"
    )


def test_every_reference_of_the_published_protocol_resolves():
    document = asyncapi_document()

    def references(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    for reference in references(document):
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def family(kind=CicadaError):
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from family(child)


def test_every_error_has_a_code_of_its_own_and_a_sentence_for_people():
    kinds = list(family())
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.told.endswith(".")
        assert kind.__doc__


def test_a_list_of_uploads_continues_after_any_key_that_a_folder_can_have() -> None:
    key = "x" * (1_024 - len("incoming/c/"))  # written by other means, longer than a document's name may be
    fields = {"action": "upload", "requestId": str(uuid.uuid4()), "operation": "list", "collection": "c"}
    assert parse_upload_action(json.dumps(fields | {"cursor": key})).cursor == key
