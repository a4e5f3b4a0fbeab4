"""Uploads by users: there is nothing of them by default, and where somebody may, no more than they need."""

from __future__ import annotations

import json

from cicada.ingest.settings import UploadSettings
from cicada.ingest.uploads.limits import UploadLimits
from cicada.rights import ConfiguredAccess, Uploaders
from cicada.settings import CorpusSettings
from stacks.findings import flat
from tests.template.templates import Synthesis

BUCKET = "arn:<AWS::Partition>:s3:::<{0}-Data.IndexBucket>"
ORIGIN = "https://<{0}-Data.IndexBucket>.s3.<AWS::Region>.<AWS::URLSuffix>"


def connect_sources(synthesis: Synthesis) -> list[str]:
    policy = synthesis.one("AWS::CloudFront::ResponseHeadersPolicy").properties["ResponseHeadersPolicyConfig"]
    text = flat(policy["SecurityHeadersConfig"]["ContentSecurityPolicy"]["ContentSecurityPolicy"])
    (directive,) = (part for part in text.split("; ") if part.startswith("connect-src "))
    return directive.split()[1:]


def routes(synthesis: Synthesis) -> set[str]:
    return {route.properties["RouteKey"] for route in synthesis.resources("AWS::ApiGatewayV2::Route")}


def test_by_default_nothing_of_uploads_is_deployed(shipped: Synthesis) -> None:
    text = json.dumps(shipped.templates())
    for name in ("UserUploads", "UploadOrigin", "PutBucketCORS", "UPLOADERS"):
        assert name not in text
    assert ORIGIN.format("Cicada") not in connect_sources(shipped)
    assert "upload" not in routes(shipped)


def test_the_function_may_put_and_delete_uploads_and_read_what_its_lists_need(full: Synthesis) -> None:
    here = "<AWS::Region>:<AWS::AccountId>"
    bucket = BUCKET.format("Other")
    found = {
        (action, resource)
        for action, resource, _ in full.permissions("UserUploadsRole")
        if action.partition(":")[0] not in ("kms", "logs", "xray", "dynamodb")
    }
    assert found == {
        ("s3:PutObject", f"{bucket}/incoming/*"),
        ("s3:DeleteObject", f"{bucket}/incoming/*"),
        ("s3:GetObject", f"{bucket}/ingested/*"),
        ("s3:GetObject", f"{bucket}/ingests/*"),
        ("s3:GetObject", f"{bucket}/index/access.json"),
        ("s3:ListBucket", bucket),
        ("s3:PutObject", f"{bucket}/audit/*"),
        ("states:DescribeExecution", f"arn:<AWS::Partition>:states:{here}:execution:Other-ingest:*"),
    }
    table = {action for action, _, _ in full.permissions("UserUploadsRole") if action.startswith("dynamodb:")}
    assert table == {"dynamodb:GetItem"}


def test_the_function_reads_its_settings(full: Synthesis, local: Synthesis) -> None:
    variables = full.function("uploads").properties["Environment"]["Variables"]
    settings = UploadSettings.read({name: flat(value) for name, value in variables.items()})
    assert settings.uploaders == Uploaders(collections={"script": ("readers",), "*": ("Cicada admins",)})
    assert settings.upload_limits == UploadLimits(
        max_bytes=8 * 2**20, max_documents=100, lifetime_s=60, declarations=True
    )
    assert settings.access == ConfiguredAccess(default="nobody", collections={"script": ("readers",)})
    assert (settings.upload_url, settings.auth) == (f"{ORIGIN.format('Other')}/", "jwt")
    assert settings.ingest_machine_arn.endswith(":stateMachine:Other-ingest")
    assert full.function("uploads").properties["Timeout"] < 29
    variables = local.function("uploads").properties["Environment"]["Variables"]
    on_a_laptop = UploadSettings.read({name: flat(value) for name, value in variables.items()})
    assert (on_a_laptop.uploaders, on_a_laptop.auth) == (Uploaders(everybody=True), "none")


def test_users_are_told_where_they_may_upload(full: Synthesis, shipped: Synthesis) -> None:
    told = CorpusSettings.read(full.environment("corpus")).uploaders
    assert told == Uploaders(collections={"script": ("readers",), "*": ("Cicada admins",)})
    assert CorpusSettings.read(shipped.environment("corpus")).uploaders is None


def test_the_route_replies(full: Synthesis) -> None:
    (route,) = (
        route for route in full.resources("AWS::ApiGatewayV2::Route") if route.properties["RouteKey"] == "upload"
    )
    assert route.properties["RouteResponseSelectionExpression"] == "$default"


def test_the_page_may_speak_to_the_bucket_and_the_bucket_accepts_the_page_alone(full: Synthesis) -> None:
    assert connect_sources(full)[-1] == ORIGIN.format("Other")
    rule = full.one("Custom::UploadOrigin", stack="Page").properties
    assert rule["Origin"] == "https://ask.example.org"
    assert flat(rule["Bucket"]) == "<Other-Data.IndexBucket>"
    may = {(action, resource) for action, resource, _ in full.permissions("PageFilesRole")}
    assert ("s3:PutBucketCORS", BUCKET.format("Other")) in may
