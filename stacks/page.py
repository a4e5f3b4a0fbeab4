"""The web page: a private bucket behind Amazon CloudFront, and the function that fills it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from aws_cdk import CustomResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cicada.page.files import ASSETS, CONFIG, INDEX
from cicada.page.publishing import CONFIGURATION, FILES, UPLOAD_ORIGIN
from stacks.data import DataStack
from stacks.findings import accept
from stacks.function import CicadaFunction, Functions
from stacks.layers import Layers
from stacks.page_bundle import page_bundle, page_key
from stacks.page_headers import page_headers
from stacks.settings import Settings
from stacks.sign_in import domain_prefix

UPLOAD_S = 60
"""How long an upload may take: some forty small files."""

ERROR_TTL_S = 10
"""How long CloudFront answers without looking again that a file is not there."""


class PageStack(Stack):
    """The page's bucket, distribution, headers and files; its configuration is made by the last stack."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, **stack: Any) -> None:
        """Make the stack; ``stack`` are the CDK's own properties."""
        super().__init__(scope, id, description="Cicada: the web page", **stack)
        self._settings = settings
        self._bucket = self._private_bucket()
        distribution = self._distribution(self._headers(data))
        self.url = f"https://{settings.page.domain_name or distribution.distribution_domain_name}"
        """The page's address, without a closing slash."""
        layers = Layers(self, "Layers", local=settings.local)
        self._uploader = self._function(Functions(self, settings, layers, data.encryption_key))
        self._files()
        if settings.uploads.enabled(settings.auth):
            self._accept_uploads(data)

    def configure(self, scope: Construct, config: str) -> CustomResource:
        """Have ``config.json`` made by another stack, which knows what is in it.

        Args:
            scope: that stack.
            config: the JSON.
        """
        return CustomResource(
            scope,
            "PageConfig",
            resource_type=CONFIGURATION,
            service_token=self._uploader.function.function_arn,
            service_timeout=Duration.seconds(2 * UPLOAD_S),
            properties={"Config": config},
        )

    def _private_bucket(self) -> s3.Bucket:
        keep = self._settings.on_delete == "retain"
        bucket = s3.Bucket(
            self,
            "Files",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
            lifecycle_rules=[s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(7))],
        )
        accept(
            bucket,
            {
                "AwsSolutions-S1": "The bucket holds the page's published source, which CloudFront alone reads. Access "
                "logs would grow for ever in a second bucket."
            },
        )
        return bucket

    def _headers(self, data: DataStack) -> cloudfront.ResponseHeadersPolicy:
        """The list of ``web/headers.json``; CloudFront has properties of their own for the security headers."""
        uploads = data.upload_origin if self._settings.uploads.enabled(self._settings.auth) else ""
        headers = page_headers(data.origin("wss"), self._sign_in_origins(), uploads)
        max_age = headers.pop("Strict-Transport-Security").removeprefix("max-age=")
        if (headers.pop("X-Content-Type-Options"), headers.pop("X-Frame-Options")) != ("nosniff", "DENY"):
            raise ValueError("web/headers.json: X-Content-Type-Options and X-Frame-Options must be nosniff and DENY")
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            response_headers_policy_name=f"{self.stack_name}-{self.region}",  # unique in the account
            comment="web/headers.json",
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=headers.pop("Content-Security-Policy"), override=True
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy[
                        headers.pop("Referrer-Policy").replace("-", "_").upper()
                    ],
                    override=True,
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.seconds(int(max_age)), include_subdomains=False, override=True
                ),
            ),
            custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
                custom_headers=[
                    cloudfront.ResponseCustomHeader(header=name, value=value, override=True)
                    for name, value in headers.items()
                ]
            ),
        )

    def _sign_in_origins(self) -> list[str]:
        """Where the page asks for tokens: the issuer, the user pool's domain, and what the deployer adds."""
        auth, page = self._settings.auth, self._settings.page
        if auth.mode == "none" or not page.sign_in:
            return []
        if auth.issuer is not None:
            issuer = urlsplit(auth.issuer)
            return [f"{issuer.scheme}://{issuer.netloc}", *page.connect_origins]
        domain = domain_prefix(self._settings, self.account)
        return [
            f"https://cognito-idp.{self.region}.{self.url_suffix}",
            f"https://{domain}.auth.{self.region}.amazoncognito.com",
            *page.connect_origins,
        ]

    def _distribution(self, headers: cloudfront.ResponseHeadersPolicy) -> cloudfront.Distribution:
        page = self._settings.page
        access = cloudfront.S3OriginAccessControl(
            self,
            "Access",
            origin_access_control_name=f"{self.stack_name}-{self.region}",  # unique in the account
        )
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=f"{self.stack_name}: the web page",
            default_root_object=INDEX,
            default_behavior=cloudfront.BehaviorOptions(
                origin=origins.S3BucketOrigin.with_origin_access_control(self._bucket, origin_access_control=access),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
                compress=True,
                # It goes by each file's own Cache-Control; what says no-cache it keeps for a second.
                cache_policy=cloudfront.CachePolicy.CACHING_OPTIMIZED,
                response_headers_policy=headers,
            ),
            # Without the right to list the bucket, S3 answers 403 for a file that is not there.
            error_responses=[
                cloudfront.ErrorResponse(
                    http_status=status,
                    response_http_status=200,
                    response_page_path=f"/{INDEX}",
                    ttl=Duration.seconds(ERROR_TTL_S),
                )
                for status in (403, 404)
            ],
            domain_names=None if page.domain_name is None else [page.domain_name],
            certificate=None
            if page.certificate_arn is None
            else acm.Certificate.from_certificate_arn(self, "Certificate", page.certificate_arn),
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
            http_version=cloudfront.HttpVersion.HTTP2_AND_3,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
        )
        reasons = {
            "AwsSolutions-CFR1": "The page is static and holds no data: whom it may answer is decided by the sign-in.",
            "AwsSolutions-CFR2": "A web ACL bills by the month. The page is static, and the API has its own throttles.",
            "AwsSolutions-CFR3": "Access logs would grow for ever and hold the visitors' addresses. The API has an "
            "access log of its own.",
        }
        if page.domain_name is None:
            reasons["AwsSolutions-CFR4"] = (
                "CloudFront fixes the protocols of its own domain's certificate. With a domain of one's own "
                "(page.domainName) TLS 1.2 is the least."
            )
        accept(distribution, reasons)
        return distribution

    def _function(self, functions: Functions) -> CicadaFunction:
        made = functions.make(
            "PageFiles",
            "page_files",
            timeout_s=UPLOAD_S,
            memory_mb=256,
            environment={"PAGE_BUCKET": self._bucket.bucket_name},
            brings=(page_bundle(),),
        )
        ours = [self._bucket.arn_for_objects(key) for key in (f"{ASSETS}*", INDEX, CONFIG)]
        made.allow(["s3:ListBucket"], self._bucket.bucket_arn)
        made.allow(
            ["s3:PutObject", "s3:DeleteObject"],
            *ours,
            because="The assets of a version are named by its content.",
        )
        return made

    def _files(self) -> None:
        uploaded = CustomResource(
            self,
            "PageFilesUploaded",
            resource_type=FILES,
            service_token=self._uploader.function.function_arn,
            service_timeout=Duration.seconds(2 * UPLOAD_S),
            properties={"Version": page_key(), "OnDelete": self._settings.on_delete},
        )
        # The bucket's policy is what lets the function in over TLS alone, and it goes first when the stack is deleted.
        uploaded.node.add_dependency(self._bucket)

    def _accept_uploads(self, data: DataStack) -> None:
        """Have the index's bucket accept uploads from the page's own origin (CORS).

        The bucket's stack cannot: it is made before the page has an address.
        """
        self._uploader.allow(["s3:PutBucketCORS"], data.bucket_arn)
        CustomResource(
            self,
            "UploadOrigin",
            resource_type=UPLOAD_ORIGIN,
            service_token=self._uploader.function.function_arn,
            service_timeout=Duration.seconds(2 * UPLOAD_S),
            properties={"Bucket": data.bucket_name, "Origin": self.url},
        )
