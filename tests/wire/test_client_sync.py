"""The blocking client, against a scripted deployment."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from cicada.protocol.events import Chunk, Complete
from cicada_client import (
    AnswerFailed,
    CicadaClient,
    ConversationsClient,
    InvalidQuestion,
    ProfilesClient,
    Status,
    SyncCicadaClient,
    Unauthorized,
    UploadsClient,
)
from cicada_client.sync import SyncConversations, SyncProfiles, SyncUploads
from tests.support.scripted_answers import QUESTION, TEXT, accepted, answer, begun, ended, failed
from tests.support.scripted_deployment import HOLD, PATIENCE_S, ScriptedDeployment, Step

HELD: list[Step] = [accepted(), *begun(), Chunk(attempt=1, content="Ilse rang "), HOLD]
SCRIPTS: dict[str, Sequence[Step]] = {
    QUESTION: answer(),
    "held": [*HELD, Chunk(attempt=1, content="the fog bell [1]."), *ended()],
    "cancelled": HELD,
    "failed": failed(),
}


@pytest.fixture
def deployment() -> Iterator[ScriptedDeployment]:
    with ScriptedDeployment(SCRIPTS) as deployment:
        yield deployment


@pytest.mark.parametrize(
    ("waiting", "asynchronous"),
    [
        (SyncCicadaClient, CicadaClient),
        (SyncProfiles, ProfilesClient),
        (SyncConversations, ConversationsClient),
        (SyncUploads, UploadsClient),
    ],
    ids=str,
)
def test_every_method_of_the_client_has_one_that_waits(waiting: type[Any], asynchronous: type[Any]) -> None:
    for name, method in inspect.getmembers(asynchronous, inspect.isfunction):
        if not name.startswith("_"):
            ours = inspect.signature(getattr(waiting, name))
            assert ours.parameters == inspect.signature(method).parameters, name


def test_an_answer_is_iterated_as_it_arrives(deployment: ScriptedDeployment) -> None:
    seen: list[Status] = []
    with SyncCicadaClient(deployment.url, on_status=seen.append) as client:
        stream = client.ask("held", session_id="mara")
        texts = []
        for event in stream:
            if isinstance(event, Chunk):
                texts.append(event.content)
                assert stream.answer.text == "".join(texts)
                deployment.release()
        assert isinstance(event, Complete)
        assert "".join(texts) == TEXT == client.answer(QUESTION).text
        assert [frame.seq for frame in client.resume(stream.request_id).frames()] == list(range(1, 8))
        assert [type(event) for event in stream][-1] is Complete
    assert [status.state for status in seen] == ["idle", "connecting", "connected"]
    assert deployment.received[0].model_dump(by_alias=True)["sessionId"] == "mara"


def test_an_interrupt_while_waiting_loses_no_event(
    deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncCicadaClient(deployment.url) as client:
        frames = client.ask("held").frames()
        read = [next(frames) for _ in range(4)]
        with monkeypatch.context() as patched:
            patched.setattr("concurrent.futures.Future.result", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                next(frames)
        deployment.release()
        read += frames
    assert [frame.seq for frame in read] == list(range(1, 8))


def test_an_answer_can_be_cancelled_by_another_thread(deployment: ScriptedDeployment) -> None:
    with SyncCicadaClient(deployment.url) as client:
        stream = client.ask("cancelled")
        reached = threading.Event()

        def cancel() -> None:
            assert reached.wait(PATIENCE_S)
            stream.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        for event in stream:
            if isinstance(event, Chunk):
                reached.set()
        thread.join()
    assert (event.type, getattr(event, "code", None)) == ("error", "cancelled")


def test_errors_are_those_of_the_client(deployment: ScriptedDeployment) -> None:
    with SyncCicadaClient(deployment.url) as client:
        with pytest.raises(AnswerFailed) as failure:
            client.answer("failed")
        with pytest.raises(InvalidQuestion):
            client.ask(" ")
    assert failure.value.code == "all_strategies_failed"


def test_a_token_comes_from_a_plain_or_an_asynchronous_function() -> None:
    async def later() -> str:
        return "good"

    with ScriptedDeployment(SCRIPTS, token="good") as deployment:
        for token in ("good", lambda: "good", later):
            with SyncCicadaClient(deployment.url, token=token) as client:
                assert client.answer(QUESTION).text == TEXT
        with SyncCicadaClient(deployment.url, token="bad") as client, pytest.raises(Unauthorized):
            client.answer(QUESTION)


def test_a_client_that_is_not_open_or_waits_for_itself_is_refused(deployment: ScriptedDeployment) -> None:
    client = SyncCicadaClient(deployment.url)
    with pytest.raises(RuntimeError, match="not open"):
        client.answer(QUESTION)
    refused: list[str] = []

    def ask_again(_: Status) -> None:
        try:
            client.answer(QUESTION)
        except RuntimeError as error:
            refused.append(str(error))

    client = SyncCicadaClient(deployment.url, on_status=ask_again)
    with client:
        assert client.answer(QUESTION).complete
        with pytest.raises(RuntimeError, match="open already"):
            client.open()
    client.close()
    assert set(refused) == {"the client's own thread cannot wait for itself"}
