"""The web page: a private bucket, a distribution that alone reads it, headers of the page's own list, and its files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cicada.page.files import INDEX, page_files
from stacks.context import parse
from stacks.findings import flat
from stacks.page_bundle import page_bundle
from stacks.page_headers import page_headers
from stacks.settings import ContextInvalid
from tests.template.templates import Synthesis, flat_all

API = "wss://<Cicada-Data.ApiId>.execute-api.<AWS::Region>.<AWS::URLSuffix>"


@pytest.fixture(scope="session")
def without(make: Callable[[dict[str, Any]], Synthesis], local_settings: dict[str, Any]) -> Synthesis:
    return make(local_settings | {"page": {"enabled": False}})


def distribution(synthesis: Synthesis) -> dict[str, Any]:
    config: dict[str, Any] = synthesis.one("AWS::CloudFront::Distribution").properties["DistributionConfig"]
    return config


def test_the_bucket_is_private_and_encrypted(each: Synthesis) -> None:
    bucket = each.one("AWS::S3::Bucket", stack="Page").properties
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"


def test_only_this_distribution_reads_the_bucket(each: Synthesis) -> None:
    statements = each.one("AWS::S3::BucketPolicy", stack="Page").properties["PolicyDocument"]["Statement"]
    (allowed,) = (statement for statement in statements if statement["Effect"] == "Allow")
    bucket = each.one("AWS::S3::Bucket", stack="Page").id
    assert (allowed["Action"], flat(allowed["Resource"])) == ("s3:GetObject", f"<{bucket}.Arn>/*")
    assert allowed["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    served = each.one("AWS::CloudFront::Distribution").id
    own = f"arn:<AWS::Partition>:cloudfront::<AWS::AccountId>:distribution/<{served}>"
    assert flat_all(allowed["Condition"]) == {"StringEquals": {"AWS:SourceArn": own}}
    (origin,) = distribution(each)["Origins"]
    assert flat(origin["OriginAccessControlId"]) == f"<{each.one('AWS::CloudFront::OriginAccessControl').id}.Id>"
    access = each.one("AWS::CloudFront::OriginAccessControl").properties["OriginAccessControlConfig"]
    assert (access["SigningBehavior"], access["SigningProtocol"]) == ("always", "sigv4")


def test_it_is_read_over_tls_compressed_and_by_one_way(each: Synthesis) -> None:
    behavior = distribution(each)["DefaultCacheBehavior"]
    assert behavior["ViewerProtocolPolicy"] == "redirect-to-https"
    assert behavior["AllowedMethods"] == ["GET", "HEAD"]
    assert behavior["Compress"] is True
    assert behavior["CachePolicyId"] == "658327ea-f89d-4fab-a63d-7e88639e58f6"  # AWS's CachingOptimized
    assert distribution(each)["DefaultRootObject"] == INDEX
    assert "CacheBehaviors" not in distribution(each)


def test_any_path_shows_the_page(each: Synthesis) -> None:
    for response in distribution(each)["CustomErrorResponses"]:
        assert (response["ResponseCode"], response["ResponsePagePath"]) == (200, f"/{INDEX}")
    assert [response["ErrorCode"] for response in distribution(each)["CustomErrorResponses"]] == [403, 404]


def test_nothing_of_it_bills_by_time(each: Synthesis) -> None:
    assert distribution(each)["PriceClass"] == "PriceClass_100"
    assert not {"Logging", "WebACLId"} & distribution(each).keys()


def headers_of(synthesis: Synthesis) -> dict[str, str]:
    """The headers that the policy sends, as CloudFront writes them."""
    config = synthesis.one("AWS::CloudFront::ResponseHeadersPolicy").properties["ResponseHeadersPolicyConfig"]
    security = config["SecurityHeadersConfig"]
    transport = security["StrictTransportSecurity"]
    assert all(part["Override"] for part in (*security.values(), *config["CustomHeadersConfig"]["Items"]))
    assert not transport["IncludeSubdomains"]
    return {
        "Content-Security-Policy": flat(security["ContentSecurityPolicy"]["ContentSecurityPolicy"]),
        "Strict-Transport-Security": f"max-age={transport['AccessControlMaxAgeSec']}",
        "X-Frame-Options": security["FrameOptions"]["FrameOption"],
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": security["ReferrerPolicy"]["ReferrerPolicy"],
        **{item["Header"]: item["Value"] for item in config["CustomHeadersConfig"]["Items"]},
    }


def test_the_headers_are_those_of_the_pages_own_list(shipped: Synthesis) -> None:
    assert headers_of(shipped) == page_headers(API, COGNITO)


COGNITO = [
    "https://cognito-idp.<AWS::Region>.<AWS::URLSuffix>",
    "https://cicada-<AWS::AccountId>.auth.<AWS::Region>.amazoncognito.com",
]


UPLOADS = "https://<Cicada-Data.IndexBucket>.s3.<AWS::Region>.<AWS::URLSuffix>"


def test_the_page_may_call_the_api_and_the_issuer_and_nobody_else(
    shipped: Synthesis, full: Synthesis, local: Synthesis
) -> None:
    def called(synthesis: Synthesis) -> list[str]:
        policy = headers_of(synthesis)["Content-Security-Policy"]
        (directive,) = (part for part in policy.split("; ") if part.startswith("connect-src "))
        return directive.split()[1:]

    assert called(shipped) == ["'self'", API, *COGNITO]
    assert called(full) == [
        "'self'",
        API.replace("Cicada", "Other"),
        "https://issuer.example.org",
        "https://tokens.example.org",
        UPLOADS.replace("Cicada", "Other"),
    ]
    assert called(local) == ["'self'", API, UPLOADS]


def test_names_are_unique_where_several_regions_have_a_deployment(each: Synthesis) -> None:
    headers = each.one("AWS::CloudFront::ResponseHeadersPolicy").properties["ResponseHeadersPolicyConfig"]["Name"]
    access = each.one("AWS::CloudFront::OriginAccessControl").properties["OriginAccessControlConfig"]["Name"]
    assert flat(headers) == flat(access) == f"{each.prefix}-Page-<AWS::Region>"
    longest = f"{'x' * 40}-Page-ap-southeast-99"
    assert len(longest) <= 64  # an origin access control's


def test_a_domain_of_ones_own_comes_with_its_certificate(shipped: Synthesis, full: Synthesis) -> None:
    assert not {"Aliases", "ViewerCertificate"} & distribution(shipped).keys()
    assert distribution(full)["Aliases"] == ["ask.example.org"]
    certificate = distribution(full)["ViewerCertificate"]
    assert (certificate["MinimumProtocolVersion"], certificate["SslSupportMethod"]) == ("TLSv1.2_2021", "sni-only")
    assert full.template("Gateway")["Outputs"]["PageUrl"]["Value"] == "https://ask.example.org"


def test_the_pages_address_is_an_output_and_where_sign_ins_return(shipped: Synthesis) -> None:
    url = flat(shipped.template("Gateway")["Outputs"]["PageUrl"]["Value"])
    assert url.startswith("https://<Cicada-Page.PublishOutputFnGetAttDistribution")
    client = shipped.one("AWS::Cognito::UserPoolClient").properties
    assert flat(client["CallbackURLs"][0]) == flat(client["LogoutURLs"][0]) == f"{url}/"


def test_the_files_are_uploaded_again_when_their_content_changes(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, on_delete in ((shipped, "retain"), (full, "destroy")):
        uploaded = synthesis.one("Custom::PageFiles").properties
        assert uploaded["OnDelete"] == on_delete
        assert list(page_files(page_bundle(), uploaded["Version"]))
        assert int(uploaded["ServiceTimeout"]) == 120  # a function that cannot answer holds the stack up no longer
    assert shipped.one("Custom::PageFiles").properties["Version"] == full.one("Custom::PageFiles").properties["Version"]


def test_the_configuration_names_the_api_once_it_can_be_called(shipped: Synthesis, full: Synthesis) -> None:
    made = shipped.one("Custom::PageConfig")
    config = json.loads(flat(made.properties["Config"]))
    outputs = shipped.template("Gateway")["Outputs"]
    assert config == {
        "webSocketUrl": f"{API}/live",
        "signIn": {
            "issuer": flat(outputs["Issuer"]["Value"]),
            "clientId": flat(outputs["ClientId"]["Value"]),
            "scopes": "openid email",
        },
    }
    assert made.rest["DependsOn"] == [shipped.one("AWS::ApiGatewayV2::Stage").id]
    config = json.loads(flat(full.one("Custom::PageConfig").properties["Config"]))
    assert config["examples"] == ["Who locked the boathouse?"]
    assert config["signIn"] == {
        "issuer": "https://issuer.example.org/",
        "clientId": "cicada-page",
        "scopes": "openid offline_access",
        "groupsClaim": "roles",
        "groups": ["readers", "Cicada admins"],
    }


def test_a_page_that_signs_nobody_in_calls_no_issuer(
    make: Callable[[dict[str, Any]], Synthesis], shipped_settings: dict[str, Any]
) -> None:
    without = make(shipped_settings | {"page": {"signIn": False}})
    assert "signIn" not in json.loads(flat(without.one("Custom::PageConfig").properties["Config"]))
    assert "https:" not in headers_of(without)["Content-Security-Policy"]


def test_the_function_writes_what_it_made_and_nothing_else(shipped: Synthesis) -> None:
    bucket = f"<{shipped.one('AWS::S3::Bucket', stack='Page').id}.Arn>"
    may = {(action, resource) for action, resource, _ in shipped.permissions("PageFilesRole") if action[:3] == "s3:"}
    assert may == {("s3:ListBucket", bucket)} | {
        (action, f"{bucket}/{key}")
        for action in ("s3:PutObject", "s3:DeleteObject")
        for key in ("assets/*", "index.html", "config.json")
    }


def test_further_origins_are_allowed_beside_a_user_pool_too(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    made = make({"page": {"connectOrigins": ["https://tokens.example.org"]}})
    assert headers_of(made) == page_headers(API, [*COGNITO, "https://tokens.example.org"])


def test_without_a_page_there_is_none(without: Synthesis) -> None:
    assert "Page" not in without.stacks
    assert not list(without.resources("Custom::PageConfig"))
    assert "PageUrl" not in without.template("Gateway")["Outputs"]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ({"domainName": "ask.example.org"}, "domainName and certificateArn belong together"),
        ({"domainName": "Ask Me"}, "page.domainName"),
        (
            {"domainName": "a.example", "certificateArn": "arn:aws:acm:eu-west-1:123456789012:certificate/a"},
            "page.certificateArn",
        ),
        ({"connectOrigins": ["http://a.example"]}, "must be an origin such as https://example.org"),
        ({"connectOrigins": ["https://a.example/"]}, "must be an origin such as https://example.org"),
        ({"connectOrigins": ["https://*; script-src *"]}, "must be an origin such as https://example.org"),
        ({"examples": [""]}, "page.examples.0"),
    ],
)
def test_a_wrong_setting_is_named(local_settings: dict[str, Any], page: dict[str, Any], told: str) -> None:
    with pytest.raises(ContextInvalid, match="not ready to deploy") as error:
        parse(local_settings | {"page": page}, source="the test")
    assert told in str(error.value)
