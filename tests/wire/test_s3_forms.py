"""Uploads to S3 by forms (POST Object), as strict as S3: policy, signature, rights, digest, and origins of pages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from cicada.ingest.uploads.bucket import CLIENT_CONFIG, S3UploadFolders
from cicada.page.publishing import S3CrossOrigin
from tests.wire.local_services import Services, create_role, running_services

BUCKET = "forms-tests"
KEY = "incoming/shelf/ferry.md"
BODY = b"The ferry leaves at nine.\r\n\x00\xff"
SHA256 = hashlib.sha256(BODY).hexdigest()
PAGE = "https://page.example"


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        running.client("s3").create_bucket(Bucket=BUCKET)
        yield running


@pytest.fixture(scope="module")
def credentials(services: Services) -> Mapping[str, str]:
    allowed = {"s3:PutObject": f"arn:aws:s3:::{BUCKET}/incoming/*"}
    role = create_role(services, f"role-{uuid.uuid4()}", allowed=allowed)
    return services.principals.credentials(role, "uploads", service="lambda.amazonaws.com")


@pytest.fixture(scope="module")
def client(services: Services, credentials: Mapping[str, str]) -> Any:
    return client_of_role(services, credentials)


def client_of_role(services: Services, credentials: Mapping[str, str]) -> Any:
    """An S3 client as the function that serves uploads has it."""
    return boto3.client(
        "s3",
        endpoint_url=services.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials["AWS_SESSION_TOKEN"],
        config=CLIENT_CONFIG,
    )


@pytest.fixture
def fields(client: Any) -> dict[str, str]:
    """Of a form as the function gives it out."""
    return S3UploadFolders(client, BUCKET).form(KEY, size=len(BODY), sha256=SHA256, lifetime_s=300)


def post(
    services: Services, fields: Mapping[str, str], body: bytes | None = BODY, *, after: str = "", **headers: str
) -> tuple[int, str, Mapping[str, str]]:
    """The status, S3's code, and the headers of the answer."""
    parts = [f'name="{name}"\r\n\r\n{value}'.encode() for name, value in fields.items()]
    if body is not None:
        parts.append(b'name="file"; filename="C:\\\\boats\\\\x.md"\r\nContent-Type: text/markdown\r\n\r\n' + body)
    if after:
        parts.append(f'name="{after}"\r\n\r\nlate'.encode())
    data = b"".join(b"--part\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--part--\r\n"
    return send(services, "POST", {"Content-Type": "multipart/form-data; boundary=part", **headers}, data)


def send(
    services: Services, method: str, headers: Mapping[str, str], data: bytes | None = None
) -> tuple[int, str, Mapping[str, str]]:
    request = urllib.request.Request(
        f"{services.endpoint_url}/{BUCKET}", data=data, headers=dict(headers), method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, "", dict(answer.headers)
    except urllib.error.HTTPError as error:
        found = re.search(r"<Code>(\w+)</Code>", error.read().decode())
        return error.code, found[1] if found else "", dict(error.headers)


def signed(credentials: Mapping[str, str], policy: object, *, secret: str | None = None, **more: str) -> dict[str, str]:
    """A form with any policy, signed as S3 wants it."""
    day = f"{datetime.now(UTC):%Y%m%d}"
    text = base64.b64encode(policy if isinstance(policy, bytes) else json.dumps(policy).encode()).decode()
    key = f"AWS4{secret or credentials['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in (day, "us-east-1", "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return {
        "key": KEY,
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": f"{credentials['AWS_ACCESS_KEY_ID']}/{day}/us-east-1/s3/aws4_request",
        "x-amz-date": f"{day}T000000Z",
        "x-amz-security-token": credentials["AWS_SESSION_TOKEN"],
        "policy": text,
        "x-amz-signature": hmac.new(key, text.encode(), "sha256").hexdigest(),
        **more,
    }


def policy_of(*conditions: object, minutes: int = 5, bucket: str = BUCKET, key: str = KEY) -> dict[str, Any]:
    names = ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-security-token")
    return {
        "expiration": f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}",
        "conditions": [{"bucket": bucket}, {"key": key}, *(["starts-with", f"${n}", ""] for n in names), *conditions],
    }


def test_a_form_of_the_function_stores_its_document(services: Services, fields: dict[str, str]) -> None:
    services.calls.clear()
    status, _, headers = post(services, fields)
    assert status == 204
    assert headers["Location"].endswith(f"/{BUCKET}/{KEY}")
    found = services.client("s3").get_object(Bucket=BUCKET, Key=KEY)
    assert found["Body"].read() == BODY
    assert found["ETag"] == headers["ETag"]
    assert services.calls.counts()["s3.PostObject"] == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (BODY[:-1], (400, "EntityTooSmall")),
        (BODY + b"x", (400, "EntityTooLarge")),
        (b"x" * len(BODY), (400, "BadDigest")),
        (None, (400, "InvalidArgument")),
    ],
)
def test_other_bytes_are_refused(services: Services, fields: dict[str, str], body: bytes, told: Any) -> None:
    assert post(services, fields, body)[:2] == told


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"key": "incoming/other/ferry.md"}, (403, "AccessDenied")),
        ({"key": "index/current.json"}, (403, "AccessDenied")),
        ({"x-amz-checksum-sha256": base64.b64encode(b"0" * 32).decode()}, (403, "AccessDenied")),
        ({"x-amz-meta-workflow-id": "mine"}, (403, "AccessDenied")),  # a field without a condition
        ({"x-amz-signature": "0" * 64}, (403, "SignatureDoesNotMatch")),
        ({"policy": base64.b64encode(b"{}").decode()}, (403, "SignatureDoesNotMatch")),
        ({"x-amz-security-token": "another"}, (403, "AccessDenied")),
        ({"x-amz-credential": "ASIAUNKNOWN/20260504/us-east-1/s3/aws4_request"}, (403, "InvalidAccessKeyId")),
        ({"x-amz-signature": None}, (400, "InvalidArgument")),
        ({"policy": None}, (403, "AccessDenied")),
        ({"key": None}, (400, "InvalidArgument")),
        ({"x-amz-checksum-sha256": None}, (403, "AccessDenied")),
        ({"x-ignore-this": "x" * 20_000}, (400, "MaxPostPreDataLengthExceeded")),
        ({"x-ignore-this": "x"}, (204, "")),
    ],
    ids=str,
)
def test_a_changed_form_is_refused(services: Services, fields: dict[str, str], changed: Any, told: Any) -> None:
    sent = {name: value for name, value in {**fields, **changed}.items() if value is not None}
    assert post(services, sent)[:2] == told


def test_what_comes_after_the_file_does_not_count(services: Services, fields: dict[str, str]) -> None:
    assert post(services, fields, after="acl")[0] == 204


def test_an_expired_form_is_refused(services: Services, credentials: Mapping[str, str]) -> None:
    assert post(services, signed(credentials, policy_of(minutes=-1)))[:2] == (403, "AccessDenied")
    assert post(services, signed(credentials, policy_of()))[0] == 204


def test_a_form_can_do_no_more_than_whoever_signed_it(services: Services, credentials: Mapping[str, str]) -> None:
    outside = "index/current.json"
    assert post(services, signed(credentials, policy_of(key=outside), key=outside))[:2] == (403, "AccessDenied")


def test_a_filename_takes_the_place_of_its_variable_before_the_policy_is_checked(
    services: Services, credentials: Mapping[str, str]
) -> None:
    key = "incoming/shelf/${filename}"
    policy = policy_of()
    assert post(services, signed(credentials, policy, key=key))[:2] == (403, "AccessDenied")
    policy["conditions"][1] = ["starts-with", "$key", "incoming/shelf/"]
    assert post(services, signed(credentials, policy, key=key))[0] == 204
    assert services.client("s3").head_object(Bucket=BUCKET, Key="incoming/shelf/x.md")["ContentLength"] == len(BODY)


@pytest.mark.parametrize("policy", [b"{", [], {"conditions": []}, {"expiration": "2100-01-01T00:00:00Z"}], ids=str)
def test_a_policy_that_is_none_is_refused(services: Services, credentials: Mapping[str, str], policy: Any) -> None:
    assert post(services, signed(credentials, policy))[:2] == (400, "InvalidPolicyDocument")


def test_a_body_that_breaks_off_is_refused(services: Services) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=part"}
    assert send(services, "POST", form, b"--part\r\nContent-Disp")[:2] == (400, "MalformedPOSTRequest")
    assert send(services, "POST", {"Content-Type": "multipart/form-data"}, b"")[:2] == (400, "MalformedPOSTRequest")


def test_browsers_may_send_forms_from_the_origin_that_the_bucket_accepts(
    services: Services, fields: dict[str, str]
) -> None:
    own = services.endpoint_url
    asks = {"Origin": own, "Access-Control-Request-Method": "POST"}
    cross_origin = S3CrossOrigin(services.client("s3"))
    assert send(services, "OPTIONS", asks)[:2] == (403, "AccessForbidden")
    assert post(services, fields, Origin=own)[2].get("Access-Control-Allow-Origin") is None

    cross_origin.accept(BUCKET, own)
    status, _, headers = send(services, "OPTIONS", asks)
    assert (status, headers["Access-Control-Allow-Origin"], headers["Access-Control-Max-Age"]) == (200, own, "3600")
    assert post(services, fields, Origin=own)[2]["Access-Control-Allow-Origin"] == own
    assert send(services, "OPTIONS", {**asks, "Access-Control-Request-Method": "PUT"})[0] == 403
    assert send(services, "OPTIONS", {**asks, "Access-Control-Request-Headers": "x-mine"})[0] == 403

    cross_origin.accept(BUCKET, PAGE)
    assert send(services, "OPTIONS", asks)[0] == 403
    assert send(services, "OPTIONS", {**asks, "Origin": PAGE})[0] == 403  # of another machine: not even asked
    assert post(services, fields, Origin=PAGE)[0] == 403
    cross_origin.accept_none(BUCKET)
    assert send(services, "OPTIONS", asks)[:2] == (403, "AccessForbidden")
