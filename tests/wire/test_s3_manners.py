"""The benchmarks' object store: S3's interface as the SDK speaks it, at the pace that it was told, counted."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

import boto3
import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.s3_manners import Manners, Pace, Served, Tally, running

MEGABYTE = 10**6
SWIFT = Manners(first_byte_ms=0, connection_mb_s=10_000, total_mb_s=10_000)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "bucket").mkdir()
    (folder / "bucket" / "big").write_bytes(bytes(range(250)) * 8_000)
    return folder


@pytest.fixture(scope="module")
def swift(root):
    with running(root, SWIFT) as store:
        yield store


@pytest.fixture(scope="module")
def sdk(swift):
    return boto3.client(
        "s3", "eu-central-1", endpoint_url=swift.endpoint, aws_access_key_id="x", aws_secret_access_key="x"
    )


def status_of(call) -> int:
    with pytest.raises(ClientError) as told:
        call()
    return int(told.value.response["ResponseMetadata"]["HTTPStatusCode"])


def test_an_object_is_written_read_listed_and_deleted(sdk):
    etag = sdk.put_object(Bucket="bucket", Key="folder/ä b", Body=b"content")["ETag"]
    found = sdk.get_object(Bucket="bucket", Key="folder/ä b")
    assert (found["Body"].read(), found["ETag"]) == (b"content", etag)
    assert sdk.head_object(Bucket="bucket", Key="folder/ä b")["ContentLength"] == 7
    listed = sdk.list_objects_v2(Bucket="bucket", Prefix="folder/")["Contents"]
    assert [(entry["Key"], entry["Size"], entry["ETag"]) for entry in listed] == [("folder/ä b", 7, etag)]
    sdk.delete_object(Bucket="bucket", Key="folder/ä b")
    assert status_of(lambda: sdk.get_object(Bucket="bucket", Key="folder/ä b")) == 404
    assert status_of(lambda: sdk.get_object(Bucket="elsewhere", Key="a")) == 404


def test_ranges_are_read_as_s3_reads_them(sdk):
    data = bytes(range(250)) * 8_000

    def read(asked):
        found = sdk.get_object(Bucket="bucket", Key="big", Range=asked)
        return found["Body"].read(), found["ContentRange"]

    assert read("bytes=3-5") == (data[3:6], "bytes 3-5/2000000")
    assert read("bytes=1999998-2000009") == (data[-2:], "bytes 1999998-1999999/2000000")
    assert read("bytes=1000000-") == (data[1_000_000:], "bytes 1000000-1999999/2000000")
    assert read("bytes=-4") == (data[-4:], "bytes 1999996-1999999/2000000")
    assert status_of(lambda: read("bytes=2000000-")) == 416


def test_conditions_are_kept(sdk):
    first = sdk.put_object(Bucket="bucket", Key="a", Body=b"first", IfNoneMatch="*")["ETag"]
    assert status_of(lambda: sdk.put_object(Bucket="bucket", Key="a", Body=b"x", IfNoneMatch="*")) == 412
    assert status_of(lambda: sdk.get_object(Bucket="bucket", Key="a", IfNoneMatch=first)) == 304
    second = sdk.put_object(Bucket="bucket", Key="a", Body=b"second", IfMatch=first)["ETag"]
    assert status_of(lambda: sdk.put_object(Bucket="bucket", Key="a", Body=b"x", IfMatch=first)) == 412
    assert status_of(lambda: sdk.put_object(Bucket="bucket", Key="none", Body=b"x", IfMatch=first)) == 404
    assert sdk.get_object(Bucket="bucket", Key="a", IfNoneMatch=first)["ETag"] == second
    assert sdk.get_object(Bucket="bucket", Key="a")["Body"].read() == b"second"


def test_long_lists_come_in_pages_and_folders_may_be_folded(sdk):
    for name in ("list/a", "list/b/1", "list/b/2", "list/c"):
        sdk.put_object(Bucket="bucket", Key=name, Body=b"")
    pages = sdk.get_paginator("list_objects_v2").paginate(
        Bucket="bucket", Prefix="list/", PaginationConfig={"PageSize": 1}
    )
    assert [[entry["Key"] for entry in page["Contents"]] for page in pages] == [
        ["list/a"], ["list/b/1"], ["list/b/2"], ["list/c"],
    ]  # fmt: skip
    folded = sdk.list_objects_v2(Bucket="bucket", Prefix="list/", Delimiter="/")
    assert [entry["Key"] for entry in folded["Contents"]] == ["list/a", "list/c"]
    assert [entry["Prefix"] for entry in folded["CommonPrefixes"]] == ["list/b/"]


def test_nothing_outside_the_folder_is_served(swift):
    with pytest.raises(OSError, match="404"):
        urlopen(f"{swift.endpoint}/bucket/../../etc/passwd")


# --- pace: what comes too early is wrong; what comes late may be this machine's fault, so the bounds there are wide ---


def seconds_to_read(endpoint: str, count: int, connections: int) -> float:
    """For each of several connections at a time: one range of ``count`` bytes, read whole."""
    together = threading.Barrier(connections + 1)

    def read() -> None:
        together.wait()
        with urlopen(Request(f"{endpoint}/bucket/big", headers={"Range": f"bytes=0-{count - 1}"})) as response:
            assert len(response.read()) == count

    with ThreadPoolExecutor(connections) as pool:
        reads = [pool.submit(read) for _ in range(connections)]
        together.wait()
        begun = time.perf_counter()
        for one in reads:
            one.result()
        return time.perf_counter() - begun


def test_the_first_byte_comes_after_its_time(root):
    with running(root, Manners(first_byte_ms=80, connection_mb_s=10_000, total_mb_s=10_000)) as store:
        assert 0.08 <= seconds_to_read(store.endpoint, 1, 4) < 5


def test_a_connection_has_its_bandwidth_and_all_have_theirs(root):
    with running(root, Manners(first_byte_ms=0, connection_mb_s=10, total_mb_s=20)) as store:
        assert 0.18 <= seconds_to_read(store.endpoint, 2 * MEGABYTE, 1) < 5  # 0.2 s
        assert 0.18 <= seconds_to_read(store.endpoint, 2 * MEGABYTE, 2) < 5  # 0.2 s: side by side
        assert 0.38 <= seconds_to_read(store.endpoint, 2 * MEGABYTE, 4) < 5  # 0.4 s: 8 MB through 20 MB/s


def test_connections_beyond_the_bound_wait(root):
    with running(
        root, Manners(first_byte_ms=60, connection_mb_s=10_000, total_mb_s=10_000, max_connections=2)
    ) as store:
        assert 0.12 <= seconds_to_read(store.endpoint, 1, 4) < 5  # two at a time


def test_a_pace_lets_late_ones_catch_up_a_little_and_early_ones_wait():
    pace = Pace(bytes_a_second=1000)
    pace.rest(10.0)
    assert pace.due(10, now=10.0) == pytest.approx(10.010)
    assert pace.due(10, now=10.010) == pytest.approx(10.020)
    assert pace.due(10, now=10.022) == pytest.approx(10.030)  # 2 ms late: caught up
    assert pace.due(10, now=11.0) == pytest.approx(11.005)  # a second late: 5 ms of it
    assert pace.due(10, now=11.0) == pytest.approx(11.015)  # at once: not before its turn


# --- counts ---


def test_requests_and_bytes_are_counted(swift, sdk):
    sdk.put_object(Bucket="bucket", Key="counted", Body=b"x" * 100)
    swift.count_anew()
    for asked in ("bytes=0-9", "bytes=50-"):
        sdk.get_object(Bucket="bucket", Key="counted", Range=asked)["Body"].read()
    sdk.head_object(Bucket="bucket", Key="counted")
    sdk.list_objects_v2(Bucket="bucket", Prefix="counted")
    counts = swift.counts()
    assert (counts.gets, counts.heads, counts.lists, counts.writes, counts.bytes) == (2, 1, 1, 0, 60)
    assert counts.rounds == counts.chain == 4  # one after the other


def test_a_round_is_what_overlaps_and_a_chain_what_does_not():
    first, second = Served("gets", 1, 0.0, 1.0, 10), Served("gets", 2, 0.5, 3.0, 20)
    third = Served("gets", 1, 2.0, 4.0, 30)  # begins while the second is still being served
    fourth = Served("lists", 3, 5.0)
    tally = Tally([first, second, third, fourth])
    counts = tally.counts()
    assert (counts.gets, counts.lists, counts.rounds, counts.chain, counts.connections) == (3, 1, 2, 3, 3)
    assert counts.bytes == 60
    early = tally.counts(until=3.5)
    assert (early.gets, early.lists, early.rounds, early.bytes) == (3, 0, 1, 30)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=7))
def test_the_longest_chain_is_the_longest_of_all(spans):
    requests = [Served("gets", 0, begin, begin + length) for begin, length in sorted(spans)]

    def follows(chain):
        ordered = sorted(chain, key=lambda request: request.begun_at)
        return all(after.begun_at > before.ended_at for before, after in itertools.pairwise(ordered))

    chains = (chain for size in range(len(requests) + 1) for chain in itertools.combinations(requests, size))
    longest = max(len(chain) for chain in chains if follows(chain))
    counts = Tally(requests).counts()
    assert counts.chain == longest
    assert counts.rounds <= counts.chain
