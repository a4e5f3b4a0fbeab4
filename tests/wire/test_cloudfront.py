"""The local CloudFront: what a viewer gets of a deployed distribution. Each line of its CONFORMANCE.md is kept here."""

from __future__ import annotations

import gzip
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from cicada_local.cloudfront.distribution import read_distribution
from cicada_local.cloudfront.headers import read_headers
from tests.wire.local_services import Services, deployed_stack, running_services
from tests.wire.page_stack import OPTIMIZED, deployed_page, page_resources, put

PAGE = b"<title>The page</title>"
LONG = b"// " + b"code " * 1000


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running_services() as running:
        yield running


@pytest.fixture
def bucket(services: Services) -> Iterator[str]:
    files = {"index.html": PAGE, "app.js": LONG, "small.js": b"1", "a b/ü.js": b"odd", "sub/index.html": b"sub"}
    with deployed_page(services, files) as bucket:
        yield bucket


class Response:
    def __init__(self, services: Services, path: str, method: str = "GET", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(services.endpoint_url + path, method=method, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            self.status, self.headers, self.body = error.code, error.headers, error.read()


@pytest.mark.usefixtures("bucket")
def test_the_root_is_the_default_root_object_and_no_other_folder_has_one(services: Services) -> None:
    root = Response(services, "/")
    assert (root.status, root.body, root.headers["Content-Type"]) == (200, PAGE, "text/html; charset=utf-8")
    assert Response(services, "/?code=1&state=2").body == PAGE
    assert Response(services, "/sub/index.html").body == b"sub"
    assert Response(services, "/sub/").body == PAGE  # by the error response


@pytest.mark.usefixtures("bucket")
def test_a_path_is_a_key_percent_decoded(services: Services) -> None:
    assert Response(services, "/a%20b/%C3%BC.js").body == b"odd"


@pytest.mark.usefixtures("bucket")
def test_what_is_not_there_is_answered_by_the_error_response(services: Services) -> None:
    found = Response(services, "/some/where")
    assert (found.status, found.body) == (200, PAGE)
    assert found.headers["X-Cache"] == "Error from cloudfront"


def test_without_an_error_response_s3s_answer_stands(services: Services) -> None:
    with deployed_page(services, {"index.html": PAGE}, CustomErrorResponses=[]):
        found = Response(services, "/some/where")
        assert found.status == 403  # not 404: the distribution may not list the bucket
        assert b"<Code>AccessDenied</Code>" in found.body
        assert found.headers["X-Ours"] == "yes"


def test_only_what_the_bucket_allows_the_distribution_is_served(services: Services) -> None:
    resources = page_resources()
    del resources["Policy"]
    template = {"Resources": resources, "Outputs": {"Bucket": {"Value": {"Ref": "Bucket"}}}}
    with deployed_stack(services, "closed", template) as stack:
        bucket = stack["Outputs"][0]["OutputValue"]
        put(services, bucket, "index.html", PAGE)
        assert Response(services, "/index.html").status == 403
        services.client("s3").delete_object(Bucket=bucket, Key="index.html")


@pytest.mark.usefixtures("bucket")
def test_the_policy_sets_headers_over_or_under_those_of_the_origin(services: Services) -> None:
    for path in ("/", "/app.js", "/nothing"):
        headers = Response(services, path).headers
        assert headers["Content-Security-Policy"] == "default-src 'self'"
        assert headers["Strict-Transport-Security"] == "max-age=60; includeSubDomains"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Ours"] == "yes"


@pytest.mark.usefixtures("bucket")
def test_long_texts_are_compressed_for_those_who_can_read_them(services: Services) -> None:
    plain = Response(services, "/app.js")
    assert (plain.body, plain.headers["Content-Encoding"], plain.headers["Vary"]) == (LONG, None, "Accept-Encoding")
    packed = Response(services, "/app.js", Accept_Encoding="gzip, br")
    assert (gzip.decompress(packed.body), packed.headers["Content-Encoding"]) == (LONG, "gzip")
    assert packed.headers["ETag"] == f"W/{plain.headers['ETag']}"
    assert int(packed.headers["Content-Length"]) == len(packed.body) < len(LONG)
    assert Response(services, "/small.js", Accept_Encoding="gzip").headers["Content-Encoding"] is None


def test_files_of_other_types_and_sizes_are_not_compressed(services: Services, bucket: str) -> None:
    put(services, bucket, "image.png", LONG)
    put(services, bucket, "short.js", b"x" * 999)
    for path in ("/image.png", "/short.js"):
        assert Response(services, path, Accept_Encoding="gzip").headers["Content-Encoding"] is None


@pytest.mark.usefixtures("bucket")
def test_a_viewer_who_has_it_is_told_that_it_is_the_same(services: Services) -> None:
    for encoding in ("identity", "gzip"):
        first = Response(services, "/app.js", Accept_Encoding=encoding)
        again = Response(services, "/app.js", Accept_Encoding=encoding, If_None_Match=first.headers["ETag"])
        assert (again.status, again.body) == (304, b"")
        assert again.headers["X-Ours"] == "yes"
    assert Response(services, "/app.js", If_None_Match='"other"').status == 200


@pytest.mark.parametrize(
    ("cache_control", "kept_s"),
    [
        ("no-cache", 1),
        ("no-store", 1),
        ("private", 1),
        ("max-age=0", 1),
        ("max-age=60", 60),
        ("max-age=60, s-maxage=5", 5),
        ("public, max-age=31536000, immutable", 31_536_000),
        ("max-age=99999999", 31_536_000),
        ("", 86_400),
    ],
)
def test_a_file_is_kept_as_long_as_it_says_within_the_policys_bounds(
    services: Services, bucket: str, cache_control: str, kept_s: int
) -> None:
    put(services, bucket, "kept.js", b"1", cache_control)
    first = Response(services, "/kept.js")
    assert (first.body, first.headers["X-Cache"]) == (b"1", "Miss from cloudfront")
    put(services, bucket, "kept.js", b"2", cache_control)
    services.now += kept_s - 0.5
    kept = Response(services, "/kept.js")
    assert (kept.body, kept.headers["X-Cache"]) == (b"1", "Hit from cloudfront")
    assert kept.headers["Age"] == str(int(kept_s - 0.5))
    services.now += 0.5
    assert Response(services, "/kept.js").body == b"2"


def test_an_error_is_kept_as_long_as_the_template_says(services: Services, bucket: str) -> None:
    assert Response(services, "/new.js").body == PAGE
    put(services, bucket, "new.js", b"new")
    services.now += 9.9
    assert Response(services, "/new.js").body == PAGE
    services.now += 0.1
    assert Response(services, "/new.js").body == b"new"


@pytest.mark.usefixtures("bucket")
def test_head_tells_the_headers_alone(services: Services) -> None:
    found = Response(services, "/app.js", method="HEAD")
    assert (found.status, found.body, found.headers["Content-Length"]) == (200, b"", str(len(LONG)))
    assert found.headers["X-Ours"] == "yes"


def test_behaviors_are_chosen_by_path_in_their_order(services: Services) -> None:
    plain = {"TargetOriginId": "files", "ViewerProtocolPolicy": "https-only", "CachePolicyId": OPTIMIZED}
    behaviors = [{**plain, "PathPattern": "/raw/*"}, {**plain, "PathPattern": "*.?s", "Compress": True}]
    files = {"index.html": PAGE, "raw/app.js": LONG, "app.js": LONG}
    with deployed_page(services, files, CacheBehaviors=behaviors):
        assert Response(services, "/raw/app.js", Accept_Encoding="gzip").headers["Content-Encoding"] is None
        assert Response(services, "/app.js", Accept_Encoding="gzip").headers["Content-Encoding"] == "gzip"
        assert Response(services, "/app.js").headers["X-Ours"] is None
        assert Response(services, "/").headers["X-Ours"] == "yes"


# --- what cannot be deployed ---

ORIGIN = {
    "Id": "files",
    "DomainName": "b.s3.us-east-1.amazonaws.com",
    "OriginAccessControlId": "A",
    "S3OriginConfig": {},
}
BEHAVIOR = {"TargetOriginId": "files", "CachePolicyId": OPTIMIZED, "ViewerProtocolPolicy": "https-only"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"Logging": {}}, "a distribution with Logging is not simulated"),
        ({"Aliases": ["a.example"]}, "you must attach a trusted certificate"),
        ({"Origins": [{**ORIGIN, "OriginAccessControlId": "B"}]}, "NoSuchOriginAccessControl"),
        ({"Origins": [{**ORIGIN, "DomainName": "a.example"}]}, "no S3 bucket"),
        ({"DefaultCacheBehavior": {**BEHAVIOR, "TargetOriginId": "b"}}, "NoSuchOrigin"),
        ({"DefaultCacheBehavior": {**BEHAVIOR, "CachePolicyId": "b"}}, "NoSuchCachePolicy"),
        ({"DefaultCacheBehavior": {**BEHAVIOR, "ResponseHeadersPolicyId": "b"}}, "NoSuchResponseHeadersPolicy"),
        ({"DefaultCacheBehavior": {**BEHAVIOR, "FunctionAssociations": []}}, "FunctionAssociations is not simulated"),
        ({"DefaultCacheBehavior": {**BEHAVIOR, "AllowedMethods": ["GET", "HEAD", "OPTIONS"]}}, "other methods"),
    ],
)
def test_a_distribution_that_cannot_be_is_refused(changed: dict[str, Any], told: str) -> None:
    config = {"Origins": [ORIGIN], "DefaultCacheBehavior": BEHAVIOR}
    assert read_distribution(config, "arn", headers={}, access_controls={"A": {}})
    with pytest.raises(ValueError, match=told):
        read_distribution(config | changed, "arn", headers={}, access_controls={"A": {}})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"CustomHeadersConfig": {"Items": [{"Header": "X-Frame-Options", "Value": "DENY", "Override": True}]}},
            "is a security header and cannot be set as custom header",
        ),
        ({"CorsConfig": {}}, "CorsConfig is not simulated"),
        ({"SecurityHeadersConfig": {"XSSProtection": {}}}, "XSSProtection are not simulated"),
    ],
)
def test_a_headers_policy_that_cannot_be_is_refused(config: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_headers(config)
