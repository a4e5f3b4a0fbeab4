"""A stack with a page: a bucket, and a distribution that serves it, as the CDK declares them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.wire.local_services import Services, deployed_stack, outputs_of

OPTIMIZED = "658327ea-f89d-4fab-a63d-7e88639e58f6"
"""The id of AWS's cache policy CachingOptimized."""


def page_resources(**config: Any) -> dict[str, Any]:
    """The resources; ``config`` changes the distribution's."""
    arn = {"Fn::Sub": "arn:aws:cloudfront::${AWS::AccountId}:distribution/${Distribution}"}
    return {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}},
        "Policy": {
            "Type": "AWS::S3::BucketPolicy",
            "Properties": {
                "Bucket": {"Ref": "Bucket"},
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": {"Service": "cloudfront.amazonaws.com"},
                            "Action": "s3:GetObject",
                            "Resource": {"Fn::Sub": "${Bucket.Arn}/*"},
                            "Condition": {"StringEquals": {"AWS:SourceArn": arn}},
                        }
                    ],
                },
            },
        },
        "Access": {
            "Type": "AWS::CloudFront::OriginAccessControl",
            "Properties": {
                "OriginAccessControlConfig": {
                    "Name": "page",
                    "OriginAccessControlOriginType": "s3",
                    "SigningBehavior": "always",
                    "SigningProtocol": "sigv4",
                }
            },
        },
        "Headers": {
            "Type": "AWS::CloudFront::ResponseHeadersPolicy",
            "Properties": {
                "ResponseHeadersPolicyConfig": {
                    "Name": "page",
                    "SecurityHeadersConfig": {
                        "ContentSecurityPolicy": {"ContentSecurityPolicy": "default-src 'self'", "Override": True},
                        "ContentTypeOptions": {"Override": True},
                        "FrameOptions": {"FrameOption": "DENY", "Override": True},
                        "ReferrerPolicy": {"ReferrerPolicy": "no-referrer", "Override": False},
                        "StrictTransportSecurity": {
                            "AccessControlMaxAgeSec": 60,
                            "IncludeSubdomains": True,
                            "Override": True,
                        },
                    },
                    "CustomHeadersConfig": {"Items": [{"Header": "X-Ours", "Value": "yes", "Override": True}]},
                }
            },
        },
        "Distribution": {
            "Type": "AWS::CloudFront::Distribution",
            "Properties": {
                "DistributionConfig": {
                    "Enabled": True,
                    "DefaultRootObject": "index.html",
                    "Origins": [
                        {
                            "Id": "files",
                            "DomainName": {"Fn::GetAtt": ["Bucket", "RegionalDomainName"]},
                            "OriginAccessControlId": {"Fn::GetAtt": ["Access", "Id"]},
                            "S3OriginConfig": {"OriginAccessIdentity": ""},
                        }
                    ],
                    "DefaultCacheBehavior": {
                        "TargetOriginId": "files",
                        "ViewerProtocolPolicy": "redirect-to-https",
                        "CachePolicyId": OPTIMIZED,
                        "Compress": True,
                        "ResponseHeadersPolicyId": {"Ref": "Headers"},
                    },
                    "CustomErrorResponses": [
                        {
                            "ErrorCode": 403,
                            "ResponseCode": 200,
                            "ResponsePagePath": "/index.html",
                            "ErrorCachingMinTTL": 10,
                        }
                    ],
                    **config,
                }
            },
        },
    }


@contextmanager
def deployed_page(services: Services, files: dict[str, bytes], **config: Any) -> Iterator[str]:
    """Deploy it with some files, by their keys; gives the bucket's name."""
    outputs = {"Bucket": {"Value": {"Ref": "Bucket"}}}
    template = {"Resources": page_resources(**config), "Outputs": outputs}
    with deployed_stack(services, "page", template) as stack:
        assert stack["StackStatus"] == "CREATE_COMPLETE", stack
        bucket = outputs_of(stack)["Bucket"]
        for key, body in files.items():
            put(services, bucket, key, body)
        services.now += 100_000_000  # nothing of an earlier page is in the cache any more
        yield bucket
        empty(services, bucket)


def put(services: Services, bucket: str, key: str, body: bytes, cache_control: str = "no-cache") -> None:
    """Store a file."""
    types = {
        "html": "text/html; charset=utf-8",
        "js": "text/javascript",
        "png": "image/png",
        "json": "application/json",
    }
    services.client("s3").put_object(
        Bucket=bucket, Key=key, Body=body, ContentType=types[key.rpartition(".")[2]], CacheControl=cache_control
    )


def empty(services: Services, bucket: str) -> None:
    """Delete all files, without which a bucket cannot be deleted."""
    client = services.client("s3")
    for entry in client.list_objects_v2(Bucket=bucket).get("Contents", []):
        client.delete_object(Bucket=bucket, Key=entry["Key"])
