"""A worker of one release: its handlers and library in a process of their own, driven by lines of JSON.

It is run with a release's library on its path, so it uses only what every release has. Each line of standard input is a
call, ``[name, arguments]``; each of standard output is its result, or ``{"failed": ...}`` with what was raised.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

_ahead = {"s": 0.0}
_real_time = time.time
time.time = lambda: _real_time() + _ahead["s"]  # before anything takes it as its clock

LAMBDAS = Path(os.environ["RELEASE_LAMBDAS"])
TABLE, BUCKET = os.environ["REQUESTS_TABLE"], os.environ["INDEX_BUCKET"]
_OWN = ("wiring", "agents", "handler")
"""Modules that functions have beside their handlers."""
_handlers: dict[str, Any] = {}


def clock(ahead_s: float) -> None:
    """Set how far this process's clock is ahead."""
    _ahead["s"] = ahead_s


def invoke(function: str, event: dict[str, Any], invocation: str = "i1") -> Any:
    """Call a function's handler."""
    if function not in _handlers:
        _handlers[function] = _load(function).handler
    context = SimpleNamespace(
        function_name=function,
        function_version="1",
        invoked_function_arn=f"arn:aws:lambda:us-east-1:123456789012:function:{function}",
        memory_limit_in_mb="3008",
        aws_request_id=invocation,
        get_remaining_time_in_millis=lambda: 60_000,
    )
    return _handlers[function](event, context)


def _load(function: str) -> ModuleType:
    folder = LAMBDAS / function
    for name in _OWN:
        sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(f"handler_of_{function}", folder / "handler.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


def send(action: dict[str, Any], subject: str = "mara", connection: str = "c1", message: str = "m1") -> Any:
    """The message processor's reply to a frame."""
    identity = {"subject": subject, "expires_at": str(int(_real_time()) + 86_400)}
    place = {"connectionId": connection, "requestId": message, "messageId": message, "authorizer": identity}
    return json.loads(invoke("message_processor", {"requestContext": place, "body": json.dumps(action)})["body"])


# --- requests ---


def _log() -> Any:
    import boto3

    from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog

    return DynamoDbLog(boto3.client("dynamodb", config=STORE_CONFIG), TABLE)


def _key(subject: str, request_id: str) -> Any:
    from cicada.delivery.record import RequestKey

    return RequestKey(subject, request_id)


def request(request_id: str, subject: str = "mara") -> dict[str, Any]:
    """A request's record as this release reads it."""
    head, entries = _log().read(_key(subject, request_id))
    events = [json.loads(entry.body) for entry in entries]
    return {
        "state": head.state,
        "attempt": head.attempt,
        "execution": head.execution,
        "takeovers": head.takeovers,
        "spent": head.spent.usd,
        "types": [event["type"] for event in events],
        "text": "".join(event["content"] for event in events if event["type"] == "chunk"),
        "version": next((event["indexVersion"] for event in events if event["type"] == "sources"), None),
        "last": events[-1],
    }


def die(
    request_id: str, subject: str = "mara", execution: str = "x1", text: str = "half an ans", usd: float | None = None
) -> None:
    """Begin an attempt and store some text, as a worker does that is killed then."""
    from cicada.delivery.decide import append, begin
    from cicada.delivery.record import Commit, RequestSpend
    from cicada.protocol.events import Chunk

    log = _log()
    head = log.head(_key(subject, request_id))
    commit = begin(head, "rag", (), execution=execution, worker="w1", now_s=time.time())
    assert isinstance(commit, Commit)
    head = log.commit(head, commit)
    head = log.commit(head, append(head, [Chunk(attempt=head.attempt, content=text)]))
    if usd is not None:
        log.commit(head, Commit(head.fence, (), lease_until=head.lease_until, spent=RequestSpend(1, 10, 20, usd)))


def write_late(request_id: str, subject: str = "mara", attempt: int = 1, last_seq: int = 3) -> str:
    """What becomes of a write by the worker of an attempt that has been replaced."""
    from cicada.delivery.ports import Conflict
    from cicada.delivery.record import Commit, Fence

    log = _log()
    head = log.head(_key(subject, request_id))
    try:
        log.commit(head, Commit(Fence(attempt, last_seq), ('{"type":"chunk","attempt":1,"content":"late"}',)))
    except Conflict:
        return "conflict"
    return "landed"


def used(request_id: str, subject: str = "mara") -> list[int]:
    """What counts as used: tokens, and millionths of a US dollar."""
    return list(_log().head(_key(subject, request_id)).used)


def accept_reserved(subject: str = "mara") -> str:
    """A request that holds a reservation; its id."""
    import uuid

    from cicada.delivery.record import Question, RequestHead
    from cicada.protocol.events import Accepted, dump_event
    from cicada.usage.accounts import Window, user
    from cicada.usage.reservations import Amount, Claim, Reservation

    now_s, request_id = time.time(), str(uuid.uuid4())
    window, account = Window.at(now_s), user(subject)
    accepted = dump_event(Accepted(route="rag", confidence=1.0, reasoning="", strategy="rag"))
    head = RequestHead(
        key=_key(subject, request_id),
        question=Question("Who locked the boathouse?"),
        origin="frame",
        accepted_at_ms=int(now_s * 1000),
        expires_at=int(now_s) + 86_400,
        lease_until=int(now_s) + 30,
        log_bytes=len(accepted),
        reservation=Reservation(window.month, window.day, Amount(1_000, 10_000), (account,)),
    )
    _log().create(head, accepted, [Claim(account, {})])
    return request_id


def block(request_id: str, subject: str = "mara") -> None:
    """End a request whose text was blocked: its events are withdrawn."""
    from cicada.delivery.decide import end
    from cicada.errors import AnswerBlocked
    from cicada.protocol.events import Failed

    log = _log()
    head, entries = log.read(_key(subject, request_id))
    log.commit(head, end(head, Failed.of(AnswerBlocked()), entries))


# --- conversations ---


def _sessions() -> Any:
    import boto3

    from cicada.conversation.sessions import SESSION_CONFIG, DynamoDbSessions

    return DynamoDbSessions(boto3.client("dynamodb", config=SESSION_CONFIG), TABLE)


def turns(session: str, subject: str = "mara") -> list[dict[str, Any]]:
    """The turns of a conversation as this release reads them."""
    from dataclasses import asdict

    from cicada.conversation.turns import SessionKey

    return [asdict(turn) for turn in _sessions().read(SessionKey(subject, None, session)).session.turns]


def add_turn(session: str, request_id: str, subject: str = "mara", **more: Any) -> None:
    """Keep one more turn of a conversation."""
    from cicada.conversation.turns import Bounds, ConversationTurn, SessionKey

    key, sessions = SessionKey(subject, None, session), _sessions()
    turn = ConversationTurn.of(
        request_id=request_id,
        at_ms=int(time.time() * 1000),
        asked=f"What about {request_id}?",
        query=f"What about {request_id}?",
        answer="It is so.",
        **more,
    )
    stored = sessions.read(key)
    session_ = stored.session.plus(turn, Bounds())
    sessions.write(key, session_, over=stored.version, expires_at=int(time.time()) + 3600)


# --- the index ---


class _Embedder:
    """The embedding model of the stand-in: all texts are alike, so words decide."""

    model_id = os.environ["EMBEDDING_MODEL_ID"]
    dimensions = int(os.environ["EMBEDDING_DIMENSIONS"])

    def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
        return [[0.6, 0.8] + [0.0] * (self.dimensions - 2)] * len(texts)


def _store() -> Any:
    import boto3

    from cicada.index.s3 import CLIENT_CONFIG, S3Store

    return S3Store(boto3.client("s3", config=CLIENT_CONFIG), BUCKET)


def publish(collection: str, texts: Mapping[str, str], declaration: dict[str, Any] | None = None) -> str:
    """Add passages, and declare the collection; the version that was published."""
    from cicada.corpus.declared.declaration import CollectionDeclaration
    from cicada.corpus.indexable import Indexable, WeightedText
    from cicada.corpus.passages import Passage, ScriptLocator
    from cicada.index.change import InMemory, checked, exchange
    from cicada.index.writer import IndexWriter

    def passage(name: str, text: str) -> Passage:
        place = ScriptLocator(
            episode_id="e1", episode_name="One", chapter_id="c1", message_id=f"{collection}-{name}", speaker="Mira"
        )
        return Passage(id=f"{collection}-{name}", collection=collection, text=text, context=text, locator=place)

    items = [Indexable(passage(name, text), (WeightedText(text, 1.0),)) for name, text in texts.items()]
    writer = IndexWriter(_store(), _Embedder())
    if declaration is None:
        return str(writer.add(collection, items).version)
    declared = CollectionDeclaration.model_validate(declaration)
    return str(
        writer.change(
            collection,
            lambda held: exchange(collection, InMemory(checked(collection, items), {}), [], held),
            declares=declared,
        ).version
    )


def index() -> dict[str, Any]:
    """The current version as this release reads it."""
    from cicada.index.versions import must_be_published

    manifest = must_be_published(_store()).manifest
    return {
        "version": manifest.version,
        "number": manifest.number,
        "passages": manifest.count,
        "collections": list(manifest.collections),
        "declared": [one.collection for one in manifest.declarations],
    }


def search(query: str) -> list[str]:
    """The texts that a reader of this release finds, best first."""
    from cicada.index.reader import IndexReader
    from cicada.retrieval.ports import SearchQuery
    from cicada.retrieval.shards import ShardRetriever

    rights: dict[str, Any] = {}
    if "readable" in SearchQuery.__dataclass_fields__:
        from cicada.rights import EVERYTHING

        rights = {"readable": EVERYTHING}
    reader = IndexReader(_store(), embedding_model_id=_Embedder.model_id, dimensions=_Embedder.dimensions)
    try:
        query_ = SearchQuery(query, top_k=10, min_score=0.0, mode="keyword", **rights)
        result = ShardRetriever(reader, _Embedder()).search(query_)
    finally:
        reader.close()
    return [hit.passage.text for hit in result.hits]


def restore(version: str) -> str:
    """Roll back; the version that is current then."""
    from cicada.index.versions import restore as roll_back

    return roll_back(_store(), version).version


def publish_over(etag_of: str) -> str:
    """What becomes of a publication on top of a version that was current before: ``etag_of`` is its entity tag."""
    from datetime import UTC, datetime

    from cicada.errors import PublishConflict
    from cicada.index.versions import must_be_published
    from cicada.index.versions import publish as replace

    current = must_be_published(_store())
    made = current.manifest.successor(created_at=datetime.now(UTC), allow_partial=not current.manifest.allow_partial)
    try:
        replace(_store(), made, replaces=etag_of)
    except PublishConflict:
        return "conflict"
    return "published"


def etag() -> str:
    """The entity tag of the current version."""
    from cicada.index.versions import must_be_published

    return must_be_published(_store()).etag


# --- circuit breakers ---


def breaker(name: str, fails: int = 0) -> str:
    """A breaker's state, after failures."""
    import boto3

    from cicada.breakers.dynamodb import DynamoDbBreakerStore
    from cicada.breakers.registry import BreakerRegistry
    from cicada.delivery.dynamodb import STORE_CONFIG
    from cicada.errors import ModelUnavailable

    registry = BreakerRegistry(
        DynamoDbBreakerStore(boto3.client("dynamodb", config=STORE_CONFIG), TABLE), worker_id=str(os.getpid())
    )
    for _ in range(fails):
        registry.failed(name, ModelUnavailable("switched off"))
    registry.allows(name)
    found = [each for each in registry.states() if each.name == name]
    return str(found[0].stage) if found else "closed"


def main() -> None:
    """Answer calls until the input ends."""
    results, sys.stdout = sys.stdout, sys.stderr  # what functions log must not mix with results
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            told: Any = {"result": globals()[name](**arguments)}
        except Exception as error:
            told = {"failed": type(error).__name__, "code": getattr(error, "code", None), "message": str(error)}
        results.write(json.dumps(told) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
