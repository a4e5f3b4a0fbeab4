"""The object store's contract over both twins, and S3's faults over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import itertools
import multiprocessing
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from moto.server import ThreadedMotoServer

from cicada.errors import IndexCorrupt, IndexUnavailable, PublishConflict
from cicada.index import s3_direct
from cicada.index.fetch import ByteRange, fetch
from cicada.index.ports import PARALLEL_READS, ObjectMissing, PreconditionFailed
from cicada.index.reader import IndexReader
from cicada.index.s3 import BODY_ATTEMPTS, CLIENT_CONFIG, CONFLICT_ATTEMPTS, S3Store
from cicada.index.s3_direct import ATTEMPTS, DirectS3Store, ReadTimeouts, store_for_answers
from cicada.index.writer import IndexWriter
from tests.support.embedding import WordEmbedder
from tests.support.object_stores import InMemoryStore
from tests.support.passages import indexable, make_passages

BUCKET = "cicada-index"
CREDENTIALS = {"region_name": "eu-central-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}


def environment(endpoint: str) -> dict[str, str]:
    return {
        "AWS_REGION": CREDENTIALS["region_name"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SESSION_TOKEN": "token",
        "AWS_ENDPOINT_URL": endpoint,
    }


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


@pytest.fixture(params=["memory", "s3", "direct"])
def store(request):
    if request.param == "memory":
        return InMemoryStore()
    client, name = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
    by_sdk = S3Store(client, name)
    if request.param == "s3":
        return by_sdk
    return DirectS3Store(name, environ=environment(client.meta.endpoint_url), sdk=lambda: by_sdk)


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


def test_a_range_is_read_straight_into_a_buffer(s3, bucket):
    store = DirectS3Store(bucket, environ=environment(s3.meta.endpoint_url), sdk=lambda: S3Store(s3, bucket))
    store.write("index/a", b"hello", replaces=None)
    buffer = bytearray(b"-----")
    assert store.read_range_into("index/a", 3, memoryview(buffer)) == 2
    assert buffer == b"lo---"


def test_keys_of_any_characters_are_read(store):
    for key in ("index/a b", "index/ü&+=?#%", "index/~a//b", "index/日本"):
        store.write(key, key.encode(), replaces=None)
        assert store.read(key).data == key.encode()
        assert store.read_range(key, 0, 1) == b"i"


def test_objects_are_listed_by_prefix_in_order(store):
    for name in ("b", "a", "c"):
        store.write(f"index/versions/{name}", name.encode() * 3, replaces=None)
    store.write("index/other", b"x", replaces=None)
    found = list(store.entries("index/versions/"))
    assert [(entry.key, entry.bytes) for entry in found] == [(f"index/versions/{name}", 3) for name in "abc"]
    assert all(abs(datetime.now(UTC) - entry.modified_at) < timedelta(minutes=5) for entry in found)
    assert list(store.entries("elsewhere/")) == []


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store):
    store.write("index/a", b"x", replaces=None)
    for _ in range(2):
        store.delete("index/a")
        with pytest.raises(ObjectMissing):
            store.read("index/a")
    assert list(store.entries("index/")) == []


def test_many_ranges_of_many_objects_are_fetched_in_one_round(store):
    contents = {f"index/{number}": bytes([number]) * 50_000 + b"end" for number in range(8)}
    for key, data in contents.items():
        store.write(key, data, replaces=None)
    parts = [ByteRange(key, start, 25_000) for key in contents for start in (0, 25_003)]
    found = fetch(store, parts)
    assert [bytes(data) for data in found] == [contents[part.key][part.start :][:25_000] for part in parts]
    with pytest.raises(IndexCorrupt, match="index/3"):
        fetch(store, [*parts, ByteRange("index/3", 50_000, 4)])
    with pytest.raises(IndexCorrupt, match="index/none"):
        fetch(store, [*parts, ByteRange("index/none", 0, 4)])


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
        index = reader.current()
        scope = index.scope({})
        rows = [(place, row) for place, segment in enumerate(scope.segments) for row in range(segment.entry.count)]
        held = index.passages(scope, rows)
    finally:
        reader.close()
    written = make_passages(50) + make_passages(3, collection="notes")
    assert sorted(held, key=str) == sorted(written, key=str)


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


@dataclass
class Answer:
    """One response of :class:`FakeS3`; a range is answered as one, unless ``headers`` say otherwise."""

    status: int = 200
    content: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """The body breaks off before its announced end."""
    reset: bool = False
    """Instead of a response the connection is reset."""
    silence_s: float = 0.0
    """Before the response."""
    leaves: bool = False
    """The connection is closed after it, without saying so before."""


class FakeS3(ThreadingHTTPServer):
    """Answers with what it is told to, one response a request, the last one again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: set[tuple[str, int]] = set()

    @property
    def endpoint(self) -> str:
        return "http://{}:{}".format(*self.server_address[:2])


class _Answers(BaseHTTPRequestHandler):
    server: FakeS3
    protocol_version = "HTTP/1.1"  # so that "Expect: 100-continue" is answered

    def do_PUT(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, {k.lower(): v for k, v in self.headers.items()}, body))
        self.server.connections.add(self.client_address)
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        time.sleep(answer.silence_s)
        if answer.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        status, content, headers = answer.status, answer.content, {"ETag": '"tag"'}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and status == 200:
            start, size = int(asked[1]), len(content)
            content = content[start : int(asked[2]) + 1]
            status, headers["Content-Range"] = 206, f"bytes {start}-{start + len(content) - 1}/{size}"
        headers |= {"Content-Length": str(len(content) + answer.cut)} | answer.headers
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        if answer.cut or answer.leaves:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # a connection that was reset, or left
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except (OSError, ValueError):
            self.rfile.close()

    def log_message(self, *_: object) -> None:
        pass


def refusal(status: int, code: str, **more: Any) -> Answer:
    return Answer(status, f"<Error><Code>{code}</Code><Message>told so</Message></Error>".encode(), **more)


CUT = Answer(content=b"hel", cut=True)
RESET = Answer(reset=True)
GOOD = Answer(content=b"hello")


@pytest.fixture
def fake():
    server = FakeS3()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def by_sdk(fake):
    config = CLIENT_CONFIG.merge(type(CLIENT_CONFIG)(retries={"total_max_attempts": 1}))
    client = boto3.client("s3", endpoint_url=fake.endpoint, config=config, **CREDENTIALS)
    return S3Store(client, BUCKET, sleep=lambda seconds: None)


@pytest.fixture
def waits():
    return []


@pytest.fixture
def direct(fake, by_sdk, waits):
    return DirectS3Store(BUCKET, environ=environment(fake.endpoint), sdk=lambda: by_sdk, sleep=waits.append)


@pytest.fixture(params=["by_sdk", "direct"])
def faulty(request):
    return request.getfixturevalue(request.param)


def every_read(store):
    return [
        lambda: store.read("index/a"),
        lambda: store.read_if_changed("index/a", '"x"'),
        lambda: store.read_range("index/a", 0, 4),
    ]


def every_call(store):
    return [
        *every_read(store),
        lambda: store.write("index/a", b"x", replaces=None),
        lambda: list(store.entries("index/")),
        lambda: store.delete("index/a"),
    ]


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (500, "InternalError"), (503, "SlowDown"), (400, "BadDigest"),
     (301, "PermanentRedirect")],
)  # fmt: skip
def test_a_refusal_is_told_as_a_store_that_cannot_serve(fake, faulty, status, code):
    fake.answers = [refusal(status, code)]
    for call in every_call(faulty):
        with pytest.raises(IndexUnavailable, match=BUCKET):
            call()


@pytest.mark.parametrize(("code", "throttled"), [("SlowDown", True), ("ServiceUnavailable", False)])
def test_a_direct_read_that_is_refused_for_the_rate_of_reads_says_so(fake, direct, code, throttled):
    fake.answers = [refusal(503, code)]
    with pytest.raises(IndexUnavailable) as refused:
        direct.read("index/a")
    assert refused.value.throttled is throttled


def test_a_store_that_is_not_there_is_told(fake, faulty):
    fake.shutdown()
    fake.server_close()
    for call in every_call(faulty):
        with pytest.raises(IndexUnavailable):
            call()


def test_a_body_that_breaks_off_is_read_again(fake, faulty):
    fake.answers = [CUT] * (BODY_ATTEMPTS - 1) + [GOOD]
    assert faulty.read("index/a").data == b"hello"
    fake.answers = [CUT] * (BODY_ATTEMPTS - 1) + [GOOD]
    assert faulty.read_range("index/a", 1, 3) == b"ell"


@pytest.mark.parametrize(("name", "attempts"), [("by_sdk", BODY_ATTEMPTS), ("direct", ATTEMPTS)])
def test_a_body_that_always_breaks_off_is_told(request, fake, name, attempts):
    store = request.getfixturevalue(name)
    fake.answers = [CUT]
    for call in every_read(store):
        fake.requests.clear()
        with pytest.raises(IndexUnavailable, match=BUCKET):
            call()
        assert len(fake.requests) == attempts


def test_a_write_that_met_another_one_is_tried_again(fake, faulty):
    fake.answers = [refusal(409, "ConditionalRequestConflict"), Answer()]
    assert faulty.write("index/a", b"x", replaces='"t"') == '"tag"'


def test_a_write_that_always_meets_another_one_has_lost(fake, faulty):
    fake.answers = [refusal(409, "ConditionalRequestConflict")]
    with pytest.raises(PreconditionFailed):
        faulty.write("index/a", b"x", replaces='"t"')
    assert len(fake.requests) == CONFLICT_ATTEMPTS


def test_a_write_carries_its_condition_and_its_checksum(fake, faulty):
    fake.answers = [Answer()]
    faulty.write("index/a", b"content", replaces=None)
    faulty.write("index/a", b"content", replaces='"tag"')
    (_, first, body), (_, second, _) = fake.requests
    assert first["if-none-match"] == "*"
    assert second["if-match"] == '"tag"'
    assert body == b"content"
    assert base64.b64decode(first["x-amz-checksum-sha256"]) == hashlib.sha256(body).digest()


def test_the_client_can_read_as_many_ranges_at_a_time_as_a_load_asks_for():
    assert CLIENT_CONFIG.max_pool_connections > PARALLEL_READS


# --- the direct reads' own faults ---

TRANSIENT = {
    "throttled": refusal(503, "SlowDown"),
    "too many": Answer(429),
    "an internal error": refusal(500, "InternalError"),
    "a bad gateway": Answer(502, b"<html>"),
    "a request that was not read in time": refusal(400, "RequestTimeout"),
    "a reset": RESET,
    "a cut body": CUT,
    "a closed connection": Answer(content=b"", leaves=True, headers={"Content-Length": "5"}),
    "an error of unknown length": Answer(503, b"0\r\n\r\n", {"Content-Length": "", "Transfer-Encoding": "chunked"}),
}


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_what_passes_is_waited_for(fake, direct, waits, answer):
    fake.answers = [answer, answer, GOOD]
    assert direct.read("index/a").data == b"hello"
    assert len(waits) == 2
    assert all(0 <= seconds <= 0.1 for seconds in waits)
    for call, result in zip(every_read(direct)[1:], (b"hello", b"hell"), strict=True):
        fake.answers = [answer, answer, GOOD]
        found = call()
        assert (found if isinstance(found, bytes) else found.data) == result


@pytest.mark.parametrize("answer", TRANSIENT.values(), ids=TRANSIENT)
def test_what_does_not_pass_is_told_after_a_few_attempts(fake, direct, answer):
    fake.answers = [answer]
    for call in every_read(direct):
        fake.requests.clear()
        with pytest.raises(IndexUnavailable, match=BUCKET):
            call()
        assert len(fake.requests) == ATTEMPTS


WRONG = {
    "another start": {"Content-Range": "bytes 2-4/5"},
    "another end": {"Content-Range": "bytes 1-2/5", "Content-Length": "2"},
    "another length": {"Content-Length": "2"},
    "no range": {"Content-Range": ""},
    "no sense": {"Content-Range": "bytes one-three/5"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
def test_another_range_than_was_asked_for_is_never_returned(fake, direct, headers):
    wrong = Answer(content=b"hello", headers=headers)
    fake.answers = [wrong, GOOD]
    assert direct.read_range("index/a", 1, 3) == b"ell"
    fake.answers = [wrong]
    with pytest.raises(IndexUnavailable):
        direct.read_range("index/a", 1, 3)


def test_a_whole_object_in_place_of_a_range_is_not_returned(fake, direct):
    fake.answers = [Answer(206, b"hello", {"Content-Range": ""}), Answer(203, b"hello"), GOOD]
    with pytest.raises(IndexUnavailable):
        direct.read_range("index/a", 1, 3)


def test_an_object_without_a_tag_or_a_length_is_not_returned(fake, direct):
    chunked = {"Content-Length": "", "Transfer-Encoding": "chunked"}
    for answer in (Answer(content=b"hello", headers={"ETag": ""}), Answer(content=b"0\r\n\r\n", headers=chunked)):
        fake.answers = [answer]
        with pytest.raises(IndexUnavailable):
            direct.read("index/a")


def test_an_unconditional_read_is_never_unchanged(fake, direct):
    fake.answers = [Answer(304)]
    assert direct.read_if_changed("index/a", '"tag"') is None
    for call in (lambda: direct.read("index/a"), lambda: direct.read_range("index/a", 0, 1)):
        with pytest.raises(IndexUnavailable):
            call()


def test_a_store_that_keeps_silent_is_given_up(fake, by_sdk):
    store = DirectS3Store(
        BUCKET, environ=environment(fake.endpoint), patience=ReadTimeouts(connect_s=1, read_s=0.05, budget_s=0.12)
    )
    fake.answers = [Answer(content=b"hello", silence_s=0.3)]
    with pytest.raises(IndexUnavailable):
        store.read("index/a")
    assert 1 <= len(fake.requests) < ATTEMPTS  # within its budget


def test_a_bucket_elsewhere_is_named(fake, direct):
    fake.answers = [refusal(301, "PermanentRedirect", headers={"x-amz-bucket-region": "eu-west-3"})]
    with pytest.raises(IndexUnavailable, match="eu-west-3"):
        direct.read("index/a")


# --- connections ---


def test_a_connection_is_used_again(fake, direct):
    fake.answers = [GOOD]
    for call in every_read(direct) * 2:
        call()
    fake.answers = [Answer(416), Answer(304), GOOD]
    assert direct.read_range("index/a", 9, 1) == b""
    assert direct.read_if_changed("index/a", '"tag"') is None
    assert direct.read("index/a").data == b"hello"
    assert len(fake.connections) == 1


def test_a_connection_that_was_closed_meanwhile_costs_no_attempt(fake, direct, waits):
    fake.answers = [Answer(content=b"hello", leaves=True)]
    for _ in range(3 * ATTEMPTS):
        assert direct.read("index/a").data == b"hello"
    assert waits == []
    assert len(fake.connections) == 3 * ATTEMPTS


def test_a_connection_that_is_reset_when_it_is_used_again_costs_no_attempt(fake, direct, waits):
    fake.answers = [GOOD, RESET, GOOD]
    assert [direct.read("index/a").data for _ in range(2)] == [b"hello"] * 2
    assert waits == []


def test_a_connection_is_not_used_after_a_long_sleep(fake, direct, monkeypatch):
    fake.answers = [GOOD]
    direct.read("index/a")
    monkeypatch.setattr(s3_direct, "IDLE_S", 0.0)  # the function was frozen for longer than that
    direct.read("index/a")
    assert len(fake.connections) == 2


def _read_in_a_fork(store, queue):
    queue.put(store.read("index/a").data)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_a_forked_process_opens_connections_of_its_own(fake, direct):
    fake.answers = [GOOD]
    direct.read("index/a")
    forking = multiprocessing.get_context("fork")
    queue = forking.Queue()
    child = forking.Process(target=_read_in_a_fork, args=(direct, queue))
    child.start()
    try:
        assert queue.get(timeout=30) == b"hello"
    finally:
        child.kill()
        child.join()
    assert direct.read("index/a").data == b"hello"
    assert len(fake.connections) == 2


@pytest.fixture
def certified(fake, tmp_path):
    """The fake speaks TLS; returns the file of the certificate that it has issued to itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fake")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "fake.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    fake.socket = context.wrap_socket(fake.socket, server_side=True)
    return file


def test_a_certificate_must_be_trusted(fake, certified):
    fake.answers = [Answer(content=b"hello" * 100_000)]
    environ = environment(fake.endpoint.replace("http:", "https:"))
    with pytest.raises(IndexUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        DirectS3Store(BUCKET, environ=environ, sleep=lambda seconds: None).read("index/a")
    assert fake.requests == []
    store = DirectS3Store(BUCKET, environ=environ | {"AWS_CA_BUNDLE": str(certified)})
    assert store.read("index/a").data == b"hello" * 100_000
    assert store.read_range("index/a", 3, 40_000) == (b"hello" * 100_000)[3:40_003]
    assert len(fake.connections) == 1


# --- requests ---


def test_a_read_carries_a_signature_and_the_sessions_token(fake, direct):
    fake.answers = [GOOD]
    direct.read_range("index/a", 1, 3)
    ((_, headers, _),) = fake.requests
    assert headers["host"] == fake.endpoint.removeprefix("http://")
    assert headers["range"] == "bytes=1-3"
    assert headers["x-amz-security-token"] == "token"
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=test/")
    assert "host;range;x-amz-content-sha256;x-amz-date;x-amz-security-token" in headers["authorization"]


def test_expired_credentials_are_replaced_by_newer_ones(fake, waits):
    environ = environment(fake.endpoint)
    store = DirectS3Store(BUCKET, environ=environ, sleep=waits.append)
    fake.answers = [refusal(400, "ExpiredToken")]
    with pytest.raises(IndexUnavailable, match="ExpiredToken"):
        store.read("index/a")
    assert len(fake.requests) == 1  # the same ones would be refused again

    class Rotating(dict[str, str]):
        def get(self, name, default=None):
            return f"token-{len(fake.requests)}" if name == "AWS_SESSION_TOKEN" else super().get(name, default)

    fake.requests.clear()
    fake.answers = [refusal(400, "ExpiredToken"), GOOD]
    assert DirectS3Store(BUCKET, environ=Rotating(environ), sleep=waits.append).read("index/a").data == b"hello"
    assert [headers["x-amz-security-token"] for _, headers, _ in fake.requests] == ["token-0", "token-1"]


def test_a_proxy_is_left_to_the_sdk(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", CREDENTIALS["region_name"])
    environ = environment("http://127.0.0.1:9")
    assert isinstance(store_for_answers(BUCKET, environ), DirectS3Store)
    assert isinstance(store_for_answers(BUCKET, environ | {"HTTPS_PROXY": "http://127.0.0.1:9"}), S3Store)


def test_a_reader_imports_no_sdk(fake):
    fake.answers = [GOOD]
    code = (
        "import sys\nfrom cicada.index.fetch import ByteRange, fetch\n"
        "from cicada.index.s3_direct import DirectS3Store\n"
        f"store = DirectS3Store({BUCKET!r})\n"
        "parts = [ByteRange('a', 0, 2), ByteRange('a', 2, 2)]\n"
        "assert [bytes(data) for data in fetch(store, parts)] == [b'he', b'll']\n"
        "assert store.read('a').data == b'hello'\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'boto3', 'botocore', 'urllib3'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment(fake.endpoint) | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
