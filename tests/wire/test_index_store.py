"""The object store's contract over both twins, and S3's faults over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import itertools
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest
from moto.server import ThreadedMotoServer

from cicada.errors import IndexUnavailable, PublishConflict
from cicada.index.fetch import PARALLEL_READS
from cicada.index.reader import IndexReader
from cicada.index.s3 import BODY_ATTEMPTS, CLIENT_CONFIG, CONFLICT_ATTEMPTS, S3Store
from cicada.index.store import ObjectMissing, PreconditionFailed
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

BUCKET = "cicada-index"
CREDENTIALS = {"region_name": "eu-central-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}


@pytest.fixture(scope="module")
def s3() -> Iterator[object]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", config=CLIENT_CONFIG, **CREDENTIALS)
    yield client
    server.stop()


_numbers = itertools.count()


@pytest.fixture
def bucket(s3) -> str:
    name = f"{BUCKET}-{next(_numbers)}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": CREDENTIALS["region_name"]})
    return name


@pytest.fixture(params=["memory", "s3"])
def store(request):
    if request.param == "memory":
        return InMemoryStore()
    return S3Store(request.getfixturevalue("s3"), request.getfixturevalue("bucket"))


# --- the contract, both twins ---


def test_what_is_written_is_read(store):
    etag = store.write("index/a", b"hello", replaces=None)
    found = store.read("index/a")
    assert (found.data, found.etag) == (b"hello", etag)


def test_an_absent_object_is_told_by_every_read(store):
    for read in (
        lambda: store.read("index/none"),
        lambda: store.read_if_changed("index/none", '"0"'),
        lambda: store.read_range("index/none", 0, 1),
    ):
        with pytest.raises(ObjectMissing):
            read()


def test_an_object_is_created_only_once(store):
    store.write("index/a", b"first", replaces=None)
    with pytest.raises(PreconditionFailed):
        store.write("index/a", b"second", replaces=None)
    assert store.read("index/a").data == b"first"


def test_an_object_is_replaced_only_by_who_knows_it(store):
    first = store.write("index/a", b"first", replaces=None)
    second = store.write("index/a", b"second", replaces=first)
    with pytest.raises(PreconditionFailed):
        store.write("index/a", b"third", replaces=first)
    assert store.read("index/a").data == b"second"
    assert second != first


def test_an_object_that_is_gone_cannot_be_replaced(store):
    with pytest.raises(PreconditionFailed):
        store.write("index/a", b"second", replaces='"5d41402abc4b2a76b9719d911017c592"')


def test_an_unchanged_object_is_not_read_again(store):
    etag = store.write("index/a", b"first", replaces=None)
    assert store.read_if_changed("index/a", etag) is None
    store.write("index/a", b"second", replaces=etag)
    assert store.read_if_changed("index/a", etag).data == b"second"


@pytest.mark.parametrize(
    ("start", "length", "data"), [(0, 5, b"hello"), (1, 3, b"ell"), (3, 9, b"lo"), (5, 1, b""), (9, 4, b"")]
)
def test_a_range_ends_where_the_object_does(store, start, length, data):
    store.write("index/a", b"hello", replaces=None)
    assert store.read_range("index/a", start, length) == data


def test_keys_are_listed_by_prefix_in_order(store):
    for name in ("b", "a", "c"):
        store.write(f"index/versions/{name}", b"x", replaces=None)
    store.write("index/other", b"x", replaces=None)
    assert list(store.keys("index/versions/")) == [f"index/versions/{name}" for name in "abc"]
    assert list(store.keys("elsewhere/")) == []


def test_of_many_writers_one_wins(store):
    def write(number: int) -> bool:
        try:
            store.write("index/a", b"%d" % number, replaces=None)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 1


# --- a whole index, both twins ---


def test_an_index_is_written_read_and_followed(store):
    writer = IndexWriter(store, WordEmbedder(), segment_rows=20)
    writer.replace("script", indexable(make_passages(50)))
    reader = IndexReader(store, embedding_model_id="test.words", dimensions=64, refresh_interval_s=3600)
    try:
        assert reader.current().manifest.count == 50
        writer.replace("notes", indexable(make_passages(3, collection="notes")))
        reader.refresh()
        held = [passage for segment in reader.current().segments for passage in segment.passages()]
    finally:
        reader.close()
    assert held == make_passages(50) + make_passages(3, collection="notes")


def test_of_two_writers_of_one_collection_one_is_told(store):
    """Both read the same version before either publishes."""
    both_embedded = threading.Barrier(2, timeout=60)

    class Meeting(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            both_embedded.wait()
            return super().embed(texts, time_budget_s=time_budget_s)

    def load(start: int) -> bool:
        try:
            IndexWriter(store, Meeting()).replace("script", indexable(make_passages(5, start=start)))
        except PublishConflict:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(load, (0, 100))) == [False, True]


# --- S3's faults ---


class FakeS3(ThreadingHTTPServer):
    """Answers with what it is told to, one response a request, the last one again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.responses: list[tuple[int, bytes]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []


class _Answers(BaseHTTPRequestHandler):
    server: FakeS3
    protocol_version = "HTTP/1.1"  # so that "Expect: 100-continue" is answered

    def do_PUT(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, {k.lower(): v for k, v in self.headers.items()}, body))
        responses = self.server.responses
        status, content = responses.pop(0) if len(responses) > 1 else responses[0]
        self.send_response(status)
        self.send_header("ETag", '"tag"')
        self.send_header("Content-Length", str(len(content) + (status == CUT)))
        self.end_headers()
        self.wfile.write(content)
        if status == CUT:
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        pass


CUT = 299
"""A success whose body breaks off before its announced end."""


def refusal(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>told so</Message></Error>".encode()


@pytest.fixture
def fake():
    server = FakeS3()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def faulty(fake):
    config = CLIENT_CONFIG.merge(type(CLIENT_CONFIG)(retries={"total_max_attempts": 1}))
    host, port = fake.server_address[:2]
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", config=config, **CREDENTIALS)
    return S3Store(client, BUCKET, sleep=lambda seconds: None)


def every_call(store: S3Store):
    return [
        lambda: store.read("index/a"),
        lambda: store.read_if_changed("index/a", '"x"'),
        lambda: store.read_range("index/a", 0, 4),
        lambda: store.write("index/a", b"x", replaces=None),
        lambda: list(store.keys("index/")),
    ]


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (500, "InternalError"), (503, "SlowDown"), (400, "BadDigest")],
)
def test_a_refusal_is_told_as_a_store_that_cannot_serve(fake, faulty, status, code):
    fake.responses = [(status, refusal(code))]
    for call in every_call(faulty):
        with pytest.raises(IndexUnavailable, match=BUCKET):
            call()


def test_a_store_that_is_not_there_is_told(fake, faulty):
    fake.shutdown()
    fake.server_close()
    for call in every_call(faulty):
        with pytest.raises(IndexUnavailable):
            call()


def test_a_body_that_breaks_off_is_read_again(fake, faulty):
    fake.responses = [(CUT, b"hel")] * (BODY_ATTEMPTS - 1) + [(200, b"hello")]
    assert faulty.read("index/a").data == b"hello"


def test_a_body_that_always_breaks_off_is_told(fake, faulty):
    fake.responses = [(CUT, b"hel")]
    with pytest.raises(IndexUnavailable):
        faulty.read("index/a")
    assert len(fake.requests) == BODY_ATTEMPTS


def test_a_write_that_met_another_one_is_tried_again(fake, faulty):
    fake.responses = [(409, refusal("ConditionalRequestConflict")), (200, b"")]
    assert faulty.write("index/a", b"x", replaces='"t"') == '"tag"'


def test_a_write_that_always_meets_another_one_has_lost(fake, faulty):
    fake.responses = [(409, refusal("ConditionalRequestConflict"))]
    with pytest.raises(PreconditionFailed):
        faulty.write("index/a", b"x", replaces='"t"')
    assert len(fake.requests) == CONFLICT_ATTEMPTS


def test_a_write_carries_its_condition_and_its_checksum(fake, faulty):
    fake.responses = [(200, b"")]
    faulty.write("index/a", b"content", replaces=None)
    faulty.write("index/a", b"content", replaces='"tag"')
    (_, first, body), (_, second, _) = fake.requests
    assert first["if-none-match"] == "*"
    assert second["if-match"] == '"tag"'
    assert body == b"content"
    assert base64.b64decode(first["x-amz-checksum-sha256"]) == hashlib.sha256(body).digest()


def test_the_client_can_read_as_many_ranges_at_a_time_as_a_load_asks_for():
    assert CLIENT_CONFIG.max_pool_connections > PARALLEL_READS
