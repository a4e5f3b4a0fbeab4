"""The page in its bucket: versioned assets, the document that names them last, and what is left of earlier versions."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.custom_resources import ResourceRequest
from cicada.page.files import ASSETS, CONFIG, IMMUTABLE, INDEX, REVALIDATED, PageFile, page_files
from cicada.page.publishing import ACCESS_ATTEMPTS, CONFIGURATION, FILES, UPLOAD_ORIGIN, PagePublisher, S3PageBucket
from stacks.page_bundle import page_bundle

PAGE = page_bundle()
OLD, NEW, NEXT = "0" * 16, "1" * 16, "2" * 16


class MemoryBucket:
    """Tells in ``steps`` what was done, and fails at a step when told to."""

    def __init__(self) -> None:
        self.files: dict[str, PageFile] = {}
        self.steps: list[tuple[str, str]] = []
        self.fails_at: int | None = None

    def _step(self, what: str, key: str) -> None:
        if self.fails_at is not None and len(self.steps) >= self.fails_at:
            raise OSError("lost")
        self.steps.append((what, key))

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self.files if key.startswith(prefix)]

    def put(self, file: PageFile) -> None:
        self._step("put", file.key)
        self.files[file.key] = file

    def delete(self, key: str) -> None:
        self._step("delete", key)
        self.files.pop(key, None)


class MemoryCors:
    def __init__(self) -> None:
        self.origins: dict[str, str] = {}

    def accept(self, bucket: str, origin: str) -> None:
        self.origins[bucket] = origin

    def accept_none(self, bucket: str) -> None:
        self.origins.pop(bucket, None)


def test_the_indexs_bucket_accepts_uploads_from_the_pages_origin_alone() -> None:
    cors = MemoryCors()
    publisher = PagePublisher(MemoryBucket(), PAGE, cors)
    wanted = {"Bucket": "index", "Origin": "https://page.example"}
    for kind in ("Create", "Update", "Delete"):
        publisher.handle(ResourceRequest(kind, UPLOAD_ORIGIN, wanted))
        assert cors.origins == ({} if kind == "Delete" else {"index": "https://page.example"})


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def publisher(bucket: MemoryBucket) -> PagePublisher:
    return PagePublisher(bucket, PAGE, MemoryCors())


def files(kind: Any, version: str, old: str | None = None, on_delete: str = "retain") -> ResourceRequest:
    before = {} if old is None else {"Version": old, "OnDelete": on_delete}
    return ResourceRequest(kind, FILES, {"Version": version, "OnDelete": on_delete}, before)


def versions(bucket: MemoryBucket) -> set[str]:
    return {key.split("/")[1] for key in bucket.keys(ASSETS)}


# --- the files ---


def test_every_file_of_the_page_is_served_and_no_other() -> None:
    served = {Path(file.key).name for file in page_files(PAGE, NEW)}
    assert served == {path.name for path in PAGE.iterdir()} == {"index.html", "main.js", "page.css", "icon.svg"}


def test_assets_may_be_kept_for_ever_and_the_document_is_asked_for_again() -> None:
    for file in page_files(PAGE, NEW):
        assert file.cache_control == (REVALIDATED if file.key == INDEX else IMMUTABLE)
        assert file.key == INDEX or file.key.startswith(f"{ASSETS}{NEW}/")
        assert file.body


def test_the_document_names_the_assets_of_its_version_from_any_path() -> None:
    *assets, document = page_files(PAGE, NEW)
    text = document.body.decode()
    named = re.findall(r'(?:href|src|content)="([^"#]+\.(?:css|js|svg|json))"', text)
    assert f"/{CONFIG}" in named
    assert {name for name in named if name != f"/{CONFIG}"} <= {f"/{file.key}" for file in assets}
    assert f"/{ASSETS}{NEW}/main.js" in named


def test_the_script_imports_nothing() -> None:
    (script,) = (file for file in page_files(PAGE, NEW) if file.key.endswith(".js"))
    assert not re.findall(r'\b(?:from|import)\s*\(?["\']', script.body.decode())


@pytest.mark.parametrize("version", ["", "../x", "0123456", "G" * 16, "0" * 65])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="invalid version of the page"):
        list(page_files(PAGE, version))


# --- uploads ---


def test_the_document_is_uploaded_after_the_assets_that_it_names(
    bucket: MemoryBucket, publisher: PagePublisher
) -> None:
    publisher.handle(files("Create", NEW))
    assert bucket.steps[-1] == ("put", INDEX)
    assert {what for what, _ in bucket.steps} == {"put"}
    assert versions(bucket) == {NEW}


def test_an_update_keeps_the_previous_version_and_removes_earlier_ones_last(
    bucket: MemoryBucket, publisher: PagePublisher
) -> None:
    publisher.handle(files("Create", OLD))
    publisher.handle(files("Update", NEW, OLD))
    assert versions(bucket) == {OLD, NEW}
    bucket.steps.clear()
    publisher.handle(files("Update", NEXT, NEW))
    assert versions(bucket) == {NEW, NEXT}
    first_delete = next(i for i, (what, _) in enumerate(bucket.steps) if what == "delete")
    assert bucket.steps[first_delete - 1] == ("put", INDEX)
    assert NEXT in bucket.files[INDEX].body.decode()


@settings(max_examples=25)
@given(fails_at=st.integers(0, 80))
def test_an_upload_that_breaks_off_leaves_a_whole_page_and_can_be_repeated(fails_at: int) -> None:
    bucket = MemoryBucket()
    publisher = PagePublisher(bucket, PAGE, MemoryCors())
    publisher.handle(files("Create", OLD))
    bucket.steps.clear()
    bucket.fails_at = fails_at
    with contextlib.suppress(OSError):
        publisher.handle(files("Update", NEW, OLD))
    named = re.findall(r'"/(assets/[^"]+)"', bucket.files[INDEX].body.decode())
    assert named
    assert set(named) <= bucket.files.keys()
    bucket.fails_at = None
    publisher.handle(files("Update", NEW, OLD))
    publisher.handle(files("Update", OLD, NEW))  # as a rolled back stack asks for
    assert OLD in bucket.files[INDEX].body.decode()


def test_the_configuration_and_the_deployers_own_files_stay(bucket: MemoryBucket, publisher: PagePublisher) -> None:
    publisher.handle(ResourceRequest("Create", CONFIGURATION, {"Config": '{"a":1}'}))
    bucket.files["robots.txt"] = PageFile("robots.txt", b"", "text/plain", "")
    publisher.handle(files("Create", OLD))
    publisher.handle(files("Update", NEW, OLD))
    config = bucket.files[CONFIG]
    assert (config.body, config.content_type, config.cache_control) == (b'{"a":1}', "application/json", REVALIDATED)
    assert "robots.txt" in bucket.files


def test_the_bucket_is_emptied_with_its_stack_where_the_deployer_says_so(
    bucket: MemoryBucket, publisher: PagePublisher
) -> None:
    publisher.handle(ResourceRequest("Create", CONFIGURATION, {"Config": "{}"}))
    publisher.handle(files("Create", NEW))
    publisher.handle(ResourceRequest("Delete", CONFIGURATION, {"Config": "{}"}))
    assert CONFIG not in bucket.files
    publisher.handle(files("Delete", NEW))
    assert INDEX in bucket.files
    publisher.handle(files("Delete", NEW, on_delete="destroy"))
    assert bucket.files == {}
    publisher.handle(files("Delete", NEW, on_delete="destroy"))  # asked twice


def test_a_resource_of_another_kind_is_refused(publisher: PagePublisher) -> None:
    with pytest.raises(ValueError, match="unsupported resource type Custom::Other"):
        publisher.handle(ResourceRequest("Create", "Custom::Other", {}))


# --- S3 ---


class Client:
    """S3 that denies its first lists."""

    def __init__(self, denied: int, code: str = "AccessDenied") -> None:
        self.denied = denied
        self.code = code
        self.lists = 0

    def get_paginator(self, name: str) -> Client:
        assert name == "list_objects_v2"
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        self.lists += 1
        if self.lists <= self.denied:
            raise ClientError({"Error": {"Code": self.code, "Message": ""}}, "ListObjectsV2")
        return [{"Contents": [{"Key": "assets/a"}]}, {}]


def test_a_policy_that_is_not_known_everywhere_yet_is_waited_for() -> None:
    client = Client(denied=ACCESS_ATTEMPTS - 1)
    assert S3PageBucket(client, "b", sleep=lambda _: None).keys(ASSETS) == ["assets/a"]


@pytest.mark.parametrize(("client", "lists"), [(Client(99), ACCESS_ATTEMPTS), (Client(99, "NoSuchBucket"), 1)])
def test_access_that_is_denied_for_good_is_told(client: Client, lists: int) -> None:
    with pytest.raises(ClientError):
        S3PageBucket(client, "b", sleep=lambda _: None).keys(ASSETS)
    assert client.lists == lists
