"""What an upload says of itself in its headers."""

from __future__ import annotations

import io
from base64 import b64encode
from pathlib import Path

import pytest

from cicada.errors import DocumentInvalid
from cicada.ingest.contracts import SourceItem
from cicada.ingest.incoming.bucket import IncomingBucket

ITEM = SourceItem(collection="shelf", source="a.md", key="incoming/shelf/a.md", size=4)


class Client:
    """S3, with one object."""

    def __init__(self, **said: str) -> None:
        self._said = {name.replace("_", "-"): value for name, value in said.items()}

    def get_object(self, **_asked: str) -> dict[str, object]:
        return {"Body": io.BytesIO(b"Text"), "Metadata": self._said}


def downloaded(folder: Path, **said: str) -> SourceItem:
    item = IncomingBucket(Client(**said), "bucket").download(ITEM, folder / "document")
    assert (folder / "document").read_bytes() == b"Text"
    return item


def word(data: bytes) -> str:
    return f"=?UTF-8?B?{b64encode(data).decode()}?="


def test_title_and_workflow_are_taken_over_and_nothing_else(tmp_path: Path) -> None:
    item = downloaded(tmp_path, title="The Mill", workflow_id="w7", secret="x")
    assert (item.title, item.metadata) == ("The Mill", {"workflow_id": "w7"})
    assert downloaded(tmp_path) == ITEM


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (word("Über die Mühle".encode()), "Über die Mühle"),
        ("=?UTF-8?Q?=E6=BD=AE=E8=A6=8B=E8=A1=A8?=", "潮見表"),
        (word("Mühle".encode().decode("latin-1").encode()), "Mühle"),  # what S3 makes of UTF-8 that was sent as it is
        ("  The =? Mill", "  The =? Mill"),
        ("=?UTF-8?B?w4PC?=", "=?UTF-8?B?w4PC?="),
        ("=?nobody-knows?B?w4Q=?=", "=?nobody-knows?B?w4Q=?="),
    ],
)
def test_what_s3_gives_back_encoded_is_read(tmp_path: Path, said: str, meant: str) -> None:
    assert downloaded(tmp_path, title=said).title == meant
    assert downloaded(tmp_path, workflow_id=said).metadata == {"workflow_id": meant}


@pytest.mark.parametrize("wrong", ["", "  ", "w" * 1_001, "w\t7", word(b"w\n7")])
def test_a_workflow_that_is_none_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(DocumentInvalid, match="x-amz-meta-workflow-id: a metadata value must be one line"):
        downloaded(tmp_path, workflow_id=wrong)
