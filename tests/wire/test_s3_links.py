"""Presigned links to objects, as strict as S3: signature, expiry, the signer's rights; and who may follow them."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from cicada.ingest.incoming.originals import LINK_CONFIG, S3Originals
from cicada_local.s3_links import LinkRefused, check_link
from tests.wire.local_services import Services, create_role, running_services

BUCKET = "links-tests"
SOURCE = "guides/fähre & co.md"
BODY = b"The ferry leaves at nine."
FOLLOWED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        s3 = running.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for name in ("incoming", "secret"):
            s3.put_object(Bucket=BUCKET, Key=f"{name}/shelf/{SOURCE}", Body=BODY)
        yield running


@pytest.fixture(scope="module")
def client(services: Services) -> Any:
    """Of a role that may read uploads alone."""
    allowed = {"s3:GetObject": f"arn:aws:s3:::{BUCKET}/incoming/*"}
    role = create_role(services, f"role-{uuid.uuid4()}", allowed=allowed)
    credentials = services.principals.credentials(role, "corpus", service="lambda.amazonaws.com")
    return boto3.client(
        "s3",
        endpoint_url=services.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials["AWS_SESSION_TOKEN"],
        config=LINK_CONFIG,
    )


@pytest.fixture
def url(client: Any) -> str:
    found = S3Originals(client, BUCKET).link("shelf", SOURCE)
    assert found is not None
    return found.url


def get(url: str, **headers: str) -> tuple[int, str]:
    """The status, and the body or S3's code."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        found = re.search(r"<Code>(\w+)</Code>", error.read().decode())
        return error.code, found[1] if found else ""


def test_a_link_downloads_the_file_for_a_program_and_for_whoever_follows_it(url: str) -> None:
    assert get(url) == (200, BODY.decode())
    assert get(url, **FOLLOWED) == (200, BODY.decode())


def test_no_page_reads_a_link(url: str) -> None:
    assert get(url, **FOLLOWED | {"Sec-Fetch-Dest": "iframe"})[0] == 403
    assert get(url, Origin="https://evil.example")[0] == 403


@pytest.mark.parametrize(
    ("part", "other", "code"),
    [
        ("/guides/", "/guidez/", "SignatureDoesNotMatch"),
        ("X-Amz-Expires=300", "X-Amz-Expires=301", "SignatureDoesNotMatch"),
        ("X-Amz-Expires=300", "X-Amz-Expires=700000", "AuthorizationQueryParametersError"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Algorithm=none", "AuthorizationQueryParametersError"),
        ("attachment", "inline", "SignatureDoesNotMatch"),
    ],
)
def test_a_changed_link_is_refused(url: str, part: str, other: str, code: str) -> None:
    assert part in url
    assert get(url.replace(part, other)) == (403, code)


def test_a_link_to_what_its_signer_may_not_read_is_refused(client: Any) -> None:
    params = {"Bucket": BUCKET, "Key": f"secret/shelf/{SOURCE}"}
    assert get(client.generate_presigned_url("get_object", Params=params)) == (403, "AccessDenied")


def test_a_link_expires(services: Services, url: str) -> None:
    raw_path, host = url.removeprefix(services.endpoint_url), urlsplit(url).netloc
    now = datetime.now(UTC)
    check_link(raw_path, host, services.principals.secret_of, now)
    with pytest.raises(LinkRefused, match="expired"):
        check_link(raw_path, host, services.principals.secret_of, now + timedelta(seconds=302))
