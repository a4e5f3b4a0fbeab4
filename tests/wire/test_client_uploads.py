"""The client's uploads: a file is streamed by the form that the server gives out, to a store as strict as S3."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cicada.errors import UploadForbidden
from cicada.ingest.uploads.bucket import S3UploadFolders
from cicada.protocol.actions import ManageUploads
from cicada.protocol.events import Refused, Reply
from cicada.protocol.uploads import UploadBegun, UploadDeleted, UploadedDocument, Uploads
from cicada_client import CicadaClient, InvalidQuestion, RequestRefused, SyncCicadaClient, UploadFailed
from cicada_client.uploads import CHUNK_BYTES
from tests.support.scripted_deployment import ScriptedDeployment
from tests.wire.local_services import Services, create_role, running_services
from tests.wire.test_s3_forms import client_of_role

BUCKET = "client-uploads"


class Store:
    """The deployment's replies, with forms for a bucket of the local services."""

    def __init__(self, services: Services, client: Any) -> None:
        self.url = f"{services.endpoint_url}/{BUCKET}"
        self.folders = S3UploadFolders(client, BUCKET)
        self.tampered = False

    def reply(self, action: ManageUploads) -> Reply:
        if action.collection == "closed":
            return Refused.of(UploadForbidden(), action.request_id)
        of = {"request_id": action.request_id, "collection": action.collection}
        if action.operation == "list":
            document = UploadedDocument(name="a.md", bytes=1, uploaded_at_ms=1, state="loaded", passages=2)
            return Uploads(**of, documents=(document,), run=None, max_bytes=10, next=action.cursor)
        name = action.name or ""
        if action.operation == "delete":
            return UploadDeleted(**of, name=name)
        assert action.bytes is not None
        assert action.sha256 is not None
        sha256 = "0" * 64 if self.tampered else action.sha256
        fields = self.folders.form(f"incoming/shelf/{name}", size=action.bytes, sha256=sha256, lifetime_s=60)
        return UploadBegun(**of, name=name, url=self.url, fields=fields, expires_at_ms=1)


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        running.client("s3").create_bucket(Bucket=BUCKET)
        yield running


@pytest.fixture
def store(services: Services) -> Store:
    role = create_role(services, "uploader", allowed={"s3:PutObject": f"arn:aws:s3:::{BUCKET}/incoming/*"})
    credentials = services.principals.credentials(role, "uploads", service="lambda.amazonaws.com")
    return Store(services, client_of_role(services, credentials))


@pytest.fixture
def deployment(store: Store) -> Iterator[ScriptedDeployment]:
    with ScriptedDeployment(reply=store.reply) as deployment:
        yield deployment


def test_a_file_is_streamed_with_its_progress(
    deployment: ScriptedDeployment, services: Services, tmp_path: Path
) -> None:
    data = bytes(range(256)) * (CHUNK_BYTES // 128) + b"--end"
    file = tmp_path / "ferry.pdf"
    file.write_bytes(data)
    told: list[tuple[int, int]] = []

    async def upload() -> None:
        async with CicadaClient(deployment.url) as client:
            begun = await client.uploads.send(
                "shelf", file, name="boats/ferry.pdf", on_progress=lambda *sent: told.append(sent)
            )
            assert begun.name == "boats/ferry.pdf"
            await asyncio.sleep(0)

    asyncio.run(upload())
    found = services.client("s3").get_object(Bucket=BUCKET, Key="incoming/shelf/boats/ferry.pdf")
    assert found["Body"].read() == data
    assert told == [(CHUNK_BYTES, len(data)), (2 * CHUNK_BYTES, len(data)), (len(data), len(data))]


def test_the_client_that_waits_lists_deletes_and_is_refused(deployment: ScriptedDeployment, tmp_path: Path) -> None:
    with SyncCicadaClient(deployment.url) as client:
        page = client.uploads.list("shelf", cursor="a.md")
        assert ([one.name for one in page.documents], page.next) == (["a.md"], "a.md")
        assert client.uploads.delete("shelf", "a.md").name == "a.md"
        with pytest.raises(RequestRefused, match="upload_forbidden"):
            client.uploads.list("closed")
        with pytest.raises(InvalidQuestion):
            client.uploads.begin("shelf", "a.md", size=1, sha256="none")
        with pytest.raises(OSError, match="missing"):
            client.uploads.send("shelf", tmp_path / "missing.md")


def test_what_the_store_refuses_is_told_with_its_code(
    deployment: ScriptedDeployment, store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "ferry.md"
    file.write_text("The ferry leaves at nine.")
    with SyncCicadaClient(deployment.url) as client:
        store.tampered = True
        with pytest.raises(UploadFailed) as refused:
            client.uploads.send("shelf", file)
        assert refused.value.code == "BadDigest"
        store.url = "http://127.0.0.1:1/nobody"
        with pytest.raises(UploadFailed, match="could not be reached"):
            client.uploads.send("shelf", file)
        store.url = "http://store.example/bucket"
        with pytest.raises(UploadFailed, match="without TLS"):
            client.uploads.send("shelf", file)
