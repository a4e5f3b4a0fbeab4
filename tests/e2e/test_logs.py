"""What the deployed thing logs: enough to tell what happened, and nothing of who asks or what is written.

When a test session leaves a cloud, all its logs are searched (:mod:`tests.e2e.searched_cloud`). Here is what other
tests do not write: words where none belong, in frames and tokens that are refused, and in profiles that are deleted.
"""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as open_websocket

from cicada.identity import asker_of
from cicada.subprotocols import BEARER, PROTOCOL
from tests.e2e.log_search import LogSearch
from tests.e2e.plain_client import offers
from tests.e2e.reading import eventually
from tests.e2e.test_profiles import call

SECRET = "The green ledger went into the “dresser” at nine,\nand nobody has the key: Ünï 先生."


@pytest.fixture
def words(cloud):
    """Makes texts that nobody else writes, and that no log may hold."""

    def words(before="Who saw the", after="at the boathouse?"):
        text = f"{before} lantern {uuid.uuid4()} {after}"
        cloud.forbid_texts(text)
        return text

    return words


def logged(cloud, word, *functions):
    """Whether each of these functions has logged a word."""

    def holds():
        lines = cloud.lines_about(word)
        return all(any(function in line.partition(":")[0] for line in lines) for function in functions)

    return eventually(holds, within_s=20)


# --- the search itself ---


@pytest.mark.parametrize(
    "line",
    [
        f"why: {SECRET}",
        json.dumps({"why": SECRET}),
        json.dumps({"why": json.dumps({"query": SECRET})}),
        json.dumps({"why": repr({"query": SECRET})}, ensure_ascii=False),
        f"input_value='{SECRET[:40]}…'",
        f"…{SECRET[12:44]}",
        SECRET.upper(),
    ],
)
def test_a_text_is_found_however_a_log_holds_it(line):
    assert LogSearch([SECRET]).leaks(line) == {SECRET}


def test_names_are_found_as_words_and_other_lines_hold_nothing(tmp_path):
    search = LogSearch([SECRET, "too short"], ["eve", "mara@example.org"])
    assert search.leaks('{"subject":"eve"}') == {"eve"}
    assert search.leaks("request#mara@example.org") == {"mara@example.org"}
    assert search.leaks("every event of the green ledger is too short") == set()
    log = tmp_path / "function.log"
    log.write_text(f"INIT_START\n{SECRET.splitlines()[0]}\n")
    (told,) = search.in_files([log])
    assert told.startswith("function.log:2: ")


def test_every_cloud_of_the_end_to_end_tests_is_searched():
    modules = Path(__file__).parent.rglob("*.py")
    assert [module.name for module in modules if re.search(r"\bLocalCloud\(\w", module.read_text())] == []


# --- the logs ---


def test_an_answer_is_logged_by_its_ids_alone(cloud, connect, user, words):
    socket = connect()
    session = words("session", "").strip().replace(" ", "-")
    request_ids = []
    for question in (words(), words("And what did she say of the", "then?")):
        events = socket.answer(question, sessionId=session)
        assert events[-1]["type"] == "complete"
        request_ids.append(events[0]["requestId"])
    for request_id in request_ids:
        assert logged(cloud, request_id, "MessageProcessor", "Answer")
    assert logged(cloud, asker_of(user), "Connection", "MessageProcessor", "Answer")
    assert cloud.leaks() == []


def test_a_failed_answer_is_logged_without_its_question(cloud, connect, words):
    cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)
    socket = connect()
    events = socket.answer(words())
    assert events[-1]["code"] == "all_strategies_failed"
    assert logged(cloud, events[0]["requestId"], "MessageProcessor", "Answer", "Exhausted")
    assert cloud.leaks() == []


def test_refused_frames_are_logged_without_what_they_say(cloud, connect, words):
    socket = connect()
    ask = {"action": "ask", "query": "Who?"}
    frames = [
        words(),
        f'{{"action": "ask", "query": "{words()}"',
        {"action": words()},
        {"action": "ask", "query": words(), "requestId": words()},
        ask | {words(): 1},
        ask | {"query": [words()]},
        ask | {"query": words() * 100},
        ask | {"query": {words(): words()}},
        *(ask | {name: words()} for name in ("v", "topK", "collections", "episodes")),
        ask | {"collections": [words() * 20]},
        ask | {"sessionId": words() * 10},
        {"action": "resume", "after": words()},
        {"action": "cancel", "why": words()},
        *({"action": "profile", "operation": operation} for operation in (words(), [words()])),
        {"action": "profile", "operation": "create", "kind": words(), "name": words()},
        {"action": "profile", "operation": "create", "kind": "character", "name": words() * 9},
        {"action": "profile", "operation": "create", "kind": "character", "name": "X", words(): words()},
        {"action": "profile", "operation": "show", "name": words(), "id": words()},
        {"action": "profile", "operation": "list", "cursor": words()},
        *(
            {"action": "profile", "operation": "create", "kind": "character", "name": "Y", "set": value}
            for value in (
                words(),
                [words()],
                [{words(): words()}],
                [{"field": words() * 9, "value": words()}],
                [{"field": "hair", "value": words() * 99}],
            )
        ),
    ]
    for frame in frames:
        socket.send_raw(json.dumps({"requestId": str(uuid.uuid4())} | frame) if isinstance(frame, dict) else frame)
        assert socket.until("error")["seq"] == 0
    refused = [line for line in cloud.lines_about("refused") if "MessageProcessor" in line]
    assert len(refused) >= len(frames)
    assert cloud.leaks() == []


def test_a_connection_is_closed_without_its_reason_in_the_log(cloud, issuer, user, words):
    with open_websocket(cloud.websocket_url, subprotocols=offers(issuer.token(user))) as socket:
        socket.close(4321, words())
    assert logged(cloud, "4321", "Connection")
    assert cloud.leaks() == []


def test_profiles_are_logged_without_what_they_say(cloud, connect, words):
    socket = connect()
    name, field = words("Tamsin", "Oake")[:80], words("hair", "and eyes")[:60]
    made = call(socket, "create", kind="character", name=name, set=[{"field": field, "value": words()}])
    assert made["type"] == "profile"
    assert call(socket, "create", kind="character", name=name)["code"] == "profile_conflict"
    changed = call(socket, "update", id=made["id"], expectedVersion=1, set=[{"field": field, "value": words()}])
    assert changed["version"] == 2
    assert call(socket, "update", id=made["id"], expectedVersion=1, remove=[field])["code"] == "profile_conflict"
    assert call(socket, "update", id=made["id"], expectedVersion=2, remove=[words()[:60]])["code"] == "profile_invalid"
    assert call(socket, "show", name=words()[:80])["code"] == "profile_unknown"
    theory = call(socket, "create", kind="theory", name=words()[:80], statement=words())
    assert theory["type"] == "profile"
    for operation, fields in (("show", {"name": name}), ("history", {"name": name}), ("export", {}), ("list", {})):
        assert call(socket, operation, **fields)["seq"] == 0
    question = f"Show me the profile of {words('', '')}"
    assert socket.answer(question)[-1]["type"] in ("complete", "error")
    for one, version in ((made, 2), (theory, 1)):
        assert call(socket, "delete", id=one["id"], expectedVersion=version)["type"] == "profile_deleted"
    assert cloud.leaks() == []


def test_refused_tokens_are_logged_without_what_they_say(cloud, issuer, words):
    foreign = ec.generate_private_key(ec.SECP256R1())

    def forged(header=(), **claims):
        values = {"sub": words(), "iss": words(), "aud": words(), "exp": 9_999_999_999} | claims
        token = jwt.encode(values, foreign, algorithm="ES256", headers={"kid": "k1"} | dict(header))
        cloud.forbid_texts(token)
        return token

    tokens = [
        words().replace(" ", "."),
        forged(),
        forged({"kid": words()}),
        forged({"typ": words(), "crit": [words()]}),
        *(issuer.token(words()[:99], **claims) for claims in ({"aud": words()}, {"iss": words()}, {"nbf": words()})),
        issuer.token(words()[:99], lasts_s=-60),
        issuer.token(words() * 3),
        issuer.token(words()[:99], kid=words()),
        issuer.token(words()[:99], kid=issuer.rsa_kid),
    ]
    before = len(cloud.lines_about("connection refused"))
    for token in tokens:
        for query, headers in (
            (f"?token={token}", {}),
            ("", {"Authorization": f"Bearer {token}"}),
            ("", {"Sec-WebSocket-Protocol": f"{PROTOCOL}, {BEARER}{token}"}),
        ):
            with (
                pytest.raises(InvalidStatus) as refused,
                open_websocket(cloud.websocket_url + query, additional_headers=headers),
            ):
                pass
            assert refused.value.response.status_code == 401
    assert eventually(lambda: len(cloud.lines_about("connection refused")) > before, within_s=20)
    assert cloud.leaks() == []
