"""The uploaded files of the documents that are read."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
from botocore.config import Config
from botocore.stub import Stubber

from cicada.ingest.incoming.originals import LINK_CONFIG, LINK_S, S3Originals


def client() -> Any:
    config = LINK_CONFIG.merge(Config(max_pool_connections=1))
    return boto3.client(
        "s3", region_name="eu-west-1", aws_access_key_id="key", aws_secret_access_key="secret", config=config
    )


def test_a_link_downloads_the_file_for_five_minutes() -> None:
    s3 = client()
    with Stubber(s3) as stub:
        stub.add_response("head_object", {}, {"Bucket": "b", "Key": "incoming/manual/guides/a b.md"})
        found = S3Originals(s3, "b", now_s=lambda: 1_000.0).link("manual", "guides/a b.md")
    assert found is not None
    assert found.expires_at_ms == (1_000 + LINK_S) * 1000
    url = urlsplit(found.url)
    assert unquote(url.path).endswith("/incoming/manual/guides/a b.md")
    asked = parse_qs(url.query)
    assert asked["X-Amz-Expires"] == ["300"]
    assert asked["response-content-disposition"] == ["attachment; filename*=UTF-8''a%20b.md"]


def test_a_file_that_is_not_kept_or_cannot_be_looked_for_has_no_link() -> None:
    s3 = client()
    with Stubber(s3) as stub:
        for status, code in ((404, "404"), (403, "AccessDenied"), (503, "SlowDown")):
            stub.add_client_error("head_object", code, http_status_code=status)
            assert S3Originals(s3, "b").link("manual", "a.md") is None


def test_only_documents_below_the_collections_folder_are_looked_for() -> None:
    s3 = client()
    with Stubber(s3):
        assert S3Originals(s3, "b").link("manual", "../secret/a.md") is None
        assert S3Originals(s3, "b").link("manual", "") is None
        assert S3Originals(s3, "b").kept("manual", []) == frozenset()


def test_which_documents_have_a_file() -> None:
    s3 = client()
    with Stubber(s3) as stub:
        stub.add_response("head_object", {}, {"Bucket": "b", "Key": "incoming/manual/a.md"})
        assert S3Originals(s3, "b").kept("manual", ["a.md"]) == frozenset({"a.md"})
