"""Requests of our own to S3: signed as the SDK signs them, sent where the SDK sends them."""

from __future__ import annotations

from datetime import UTC, datetime

import botocore.auth
import botocore.session
import pytest
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials as SdkCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.errors import IndexUnavailable, SettingsInvalid
from cicada.index.s3_signing import Credentials, CredentialSource, Signer, encoded_path, endpoint_of, region_of

HOSTS = ("bucket.s3.eu-central-1.amazonaws.com", "127.0.0.1:4566", "[::1]:9000")
WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=40)
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=40)
VALUES = st.text(st.sampled_from("ab19 =-,\"'*  "), max_size=20).map(str.strip)


def by_the_sdk(host, path, headers, credentials, region, now):
    """The SDK's ``Authorization`` for the same request."""
    request = AWSRequest("GET", f"https://{host}{path}", headers=dict(headers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: now.replace(tzinfo=None))
        signer = botocore.auth.S3SigV4Auth(
            SdkCredentials(credentials.access_key_id, credentials.secret_access_key, credentials.session_token),
            "s3",
            region,
        )
        signer.add_auth(request)
    return dict(request.headers.items())


@settings(max_examples=150)
@given(
    host=st.sampled_from(HOSTS),
    parts=st.lists(KEYS, min_size=1, max_size=2),
    headers=st.dictionaries(st.sampled_from(("range", "if-none-match", "x-amz-request-payer")), VALUES),
    credentials=st.builds(Credentials, WORDS, WORDS, st.none() | WORDS),
    region=st.sampled_from(("us-east-1", "eu-central-1", "cn-north-1")),
    now=st.datetimes(min_value=datetime(2015, 1, 1), timezones=st.just(UTC)),
)
def test_a_request_is_signed_as_the_sdk_signs_it(host, parts, headers, credentials, region, now):
    path = encoded_path(*parts)
    ours = Signer(region).headers(host, path, headers, credentials, now)
    theirs = by_the_sdk(host, path, headers, credentials, region, now)
    assert ours.pop("host") == host  # the SDK leaves this header to its connection
    assert ours == {name.lower(): value for name, value in theirs.items()}


def test_the_signature_follows_the_credentials_and_the_day():
    signer = Signer("us-east-1")
    first, second = Credentials("id", "secret"), Credentials("id", "other")
    today, tomorrow = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    for credentials, now in ((first, today), (first, tomorrow), (second, tomorrow), (first, today)):
        ours = signer.headers(HOSTS[0], "/key", {}, credentials, now)
        assert ours["authorization"] == by_the_sdk(HOSTS[0], "/key", {}, credentials, "us-east-1", now)["Authorization"]


def test_secrets_are_not_shown():
    shown = repr(Credentials("the-id", "the-secret", "the-token"))
    assert "the-secret" not in shown
    assert "the-token" not in shown


# --- where a bucket is ---


REGIONAL = {"us_east_1_regional_endpoint": "regional"}  # else the oldest region is asked under S3's first, global name


class _SeenError(Exception):
    """The SDK was about to send a request."""


SDK = botocore.session.Session()
"""One for all: each would read the SDK's own description of S3 anew."""


def sdk_url(bucket, region, **settings):
    client = SDK.create_client(
        "s3", region, aws_access_key_id="x", aws_secret_access_key="x", config=Config(s3=REGIONAL, **settings)
    )

    def see(request, **_):
        raise _SeenError(request.url)

    client.meta.events.register("before-send.s3.GetObject", see)
    with pytest.raises(_SeenError) as seen:
        client.get_object(Bucket=bucket, Key="a/b")
    return str(seen.value)


REGIONS = (
    *("us-east-1", "eu-central-1", "ap-northeast-1", "cn-north-1", "us-gov-west-1"),
    *("us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1", "eusc-de-east-1"),
)


@pytest.mark.parametrize("region", REGIONS)
def test_a_bucket_is_found_where_the_sdk_finds_it(region):
    ours = endpoint_of("bucket", region, {})
    assert f"https://{ours.named}{ours.path('a/b')}" == sdk_url("bucket", region)


def test_a_bucket_with_dots_has_no_certificate_of_its_own():
    ours = endpoint_of("my.bucket", "eu-central-1", {})
    assert f"https://{ours.named}{ours.path('a/b')}" == sdk_url("my.bucket", "eu-central-1")


def test_fips_and_dual_stack_endpoints_are_taken_where_they_are_asked_for():
    ours = endpoint_of("bucket", "us-east-1", {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "true"})
    sdk = sdk_url("bucket", "us-east-1", use_fips_endpoint=True, use_dualstack_endpoint=True)
    assert f"https://{ours.named}/a/b" == sdk


@pytest.mark.parametrize(
    ("url", "secure", "host", "port", "named", "path"),
    [
        ("http://127.0.0.1:4566", False, "127.0.0.1", 4566, "127.0.0.1:4566", "/bucket/a%20b"),
        ("https://store.example/", True, "store.example", 443, "store.example", "/bucket/a%20b"),
        ("https://store.example:443", True, "store.example", 443, "store.example", "/bucket/a%20b"),
        ("http://[::1]:9000/base/", False, "::1", 9000, "[::1]:9000", "/base/bucket/a%20b"),
    ],
)
def test_an_endpoint_in_s3s_place_has_the_bucket_in_its_path(url, secure, host, port, named, path):
    ours = endpoint_of("bucket", "us-east-1", {"AWS_ENDPOINT_URL": url})
    assert (ours.secure, ours.host, ours.port, ours.named, ours.path("a b")) == (secure, host, port, named, path)


def test_s3s_own_endpoint_setting_goes_before_the_common_one():
    environ = {"AWS_ENDPOINT_URL": "http://common", "AWS_ENDPOINT_URL_S3": "http://own"}
    assert endpoint_of("bucket", "us-east-1", environ).host == "own"
    ignoring = environ | {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}
    assert endpoint_of("bucket", "us-east-1", ignoring).host == "bucket.s3.us-east-1.amazonaws.com"


@pytest.mark.parametrize("url", ["127.0.0.1:4566", "ftp://host", "http://", "http://host:port"])
def test_an_endpoint_that_is_none_is_told(url):
    with pytest.raises(SettingsInvalid):
        endpoint_of("bucket", "us-east-1", {"AWS_ENDPOINT_URL": url})


def test_the_region_is_the_environments():
    assert region_of({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}) == "a"
    assert region_of({"AWS_DEFAULT_REGION": "b"}) == "b"
    with pytest.raises(SettingsInvalid, match="AWS_REGION"):
        region_of({})


# --- credentials ---


def test_the_environments_credentials_are_read_anew_for_each_request():
    environ = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    source = CredentialSource(environ)
    first = source.current()
    assert first == Credentials("id", "secret", "token")
    assert source.renewed(first) is None
    environ["AWS_SESSION_TOKEN"] = "newer"
    assert source.renewed(first) == Credentials("id", "secret", "newer")


@pytest.fixture
def laptop(monkeypatch, tmp_path):
    """A machine without credentials; returns where its profile would lie."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    profile = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return profile


def test_without_any_in_the_environment_the_sdks_chain_is_asked(laptop):
    laptop.write_text("[default]\naws_access_key_id = profile-id\naws_secret_access_key = profile-secret\n")
    source = CredentialSource({})
    first = source.current()
    assert first == Credentials("profile-id", "profile-secret", None)
    laptop.write_text("[default]\naws_access_key_id = newer-id\naws_secret_access_key = newer-secret\n")
    assert source.current() == first  # until they are refused
    assert source.renewed(first) == Credentials("newer-id", "newer-secret", None)


@pytest.mark.usefixtures("laptop")
def test_no_credentials_at_all_is_told():
    with pytest.raises(IndexUnavailable, match="credentials"):
        CredentialSource({}).current()
