"""The resources that outlive the code: the bucket, the table, and the WebSocket API's address."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, CfnResource, CustomResource, Duration, Fn, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cicada.audit.records import AUDIT_PREFIX
from cicada.audit.settings_recorder import SETTINGS
from cicada.index.access_rules import ACCESS_KEY
from cicada.ingest.contracts import ENRICHED, PREPARED
from cicada.ingest.incoming.places import INGESTS
from stacks.findings import accept, as_reported
from stacks.function import CicadaFunction, Functions
from stacks.keys import OBJECT_READER, OBJECT_WRITER
from stacks.layers import Layers
from stacks.replication import replicate
from stacks.settings import Settings
from stacks.settings_record import record
from stacks.vectors import VectorIndexResource

STAGE = "live"
"""The API's only stage."""

OPEN_REQUESTS = "open"
"""The table's index of open requests, for the recovery sweep."""

INDEX_PREFIX = "index/"
"""Where the index lies in the bucket."""

RECORD_NAMES = "Audit records are named by time and random digits."
RECORD_S = 60
"""How long recording changed settings may take, with the wait for a new role to be known."""

REFERENCES = "@aws-cdk/core:defaultCrossStackReferences"
"""The CDK's context key for references between stacks: ``weak``, or ``both`` for one deployment over release 0.1.0.
That release's stacks import exports, which cannot be removed before the imports are."""


class DataStack(Stack):
    """The index's bucket, the requests' table, and the bare API.

    The API is made here and filled in by the gateway: the functions must know its address, and its routes must know
    the functions. It is also what clients have written down.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings, **stack: Any) -> None:
        """Make the stack; ``stack`` are the CDK's own properties."""
        super().__init__(scope, id, description="Cicada: buckets, table and WebSocket API", **stack)
        removal = RemovalPolicy.RETAIN if settings.on_delete == "retain" else RemovalPolicy.DESTROY
        self.key = self._key(removal) if settings.customer_managed_key is not False else None
        """What functions may read with; None where nothing was ever encrypted with a key of the deployer's."""
        self.encryption_key = self.key if settings.customer_managed_key is True else None
        """What encrypts whatever is written; None for AWS's own keys."""
        self.bucket = self._bucket(removal, settings.ingest.keep_days)
        replicate(self.bucket, self.key, settings.replication)
        self.table = self._table(settings, removal)
        self.api = apigw.CfnApi(
            self,
            "Api",
            name=settings.stack_prefix,
            description="Questions and answers over WebSocket",
            protocol_type="WEBSOCKET",
            route_selection_expression="$request.body.action",
        )
        self.api_id = self._shared("ApiId", self.api.ref)
        self.bucket_name = self._shared("IndexBucket", self.bucket.bucket_name)
        self.vector_index_arn = self._vector_index(settings, removal)
        self._protect_records(keep=settings.on_delete == "retain")
        self._audit_readers(settings)
        self._record_settings(settings)
        # CloudFormation does not take over another deletion policy where nothing else of any resource changes.
        for resource in (self.bucket, self.table):
            made = resource.node.default_child
            assert isinstance(made, CfnResource)
            made.add_metadata("onDelete", settings.on_delete)

    @property
    def stage_arn(self) -> str:
        """The ARN of the API's stage, to which routes and connections are appended."""
        return f"arn:{self.partition}:execute-api:{self.region}:{self.account}:{self.api_id}/{STAGE}"

    @property
    def open_requests_arn(self) -> str:
        """The ARN of the table's index of open requests."""
        return f"{self.table.table_arn}/index/{OPEN_REQUESTS}"

    @property
    def access_arn(self) -> str:
        """The ARN of the rules of access to the index's collections."""
        return f"arn:{self.partition}:s3:::{self.bucket_name}/{ACCESS_KEY}"

    @property
    def index_arn(self) -> str:
        """The ARN of every object of the index."""
        return f"arn:{self.partition}:s3:::{self.bucket_name}/{INDEX_PREFIX}*"

    @property
    def bucket_arn(self) -> str:
        """The bucket's ARN, as the other stacks see it."""
        return f"arn:{self.partition}:s3:::{self.bucket_name}"

    @property
    def upload_origin(self) -> str:
        """The bucket's origin for browsers that upload: its Region's own endpoint, which redirects nowhere."""
        return f"https://{self.bucket_name}.s3.{self.region}.{self.url_suffix}"

    def allow_list(self, function: CicadaFunction, *prefixes: str) -> None:
        """Let a function list folders of the bucket, and learn that an object is not there: else S3 answers 403."""
        function.allow_statement(
            iam.PolicyStatement(
                actions=["s3:ListBucket"],
                resources=[self.bucket_arn],
                # IfExists: a read has no prefix, and without this right S3 answers 403 and not 404.
                conditions={"StringLikeIfExists": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}},
            )
        )

    def allow_records(self, function: CicadaFunction, bucket_arn: str | None = None) -> None:
        """Let a function write audit records: add them, and neither replace nor read nor delete them."""
        records = f"{bucket_arn or self.bucket_arn}/{AUDIT_PREFIX}*"
        function.allow_statement(
            iam.PolicyStatement(
                actions=["s3:PutObject"], resources=[records], conditions={"Null": {"s3:if-none-match": "false"}}
            )
        )
        accept(
            function,
            {f"AwsSolutions-IAM5[Resource::{as_reported(function, records)}]": RECORD_NAMES},
        )
        if self.key is not None:
            function.allow(OBJECT_WRITER, self.key.key_arn)

    def address(self, scheme: str) -> str:
        """The stage's URL: ``wss`` for clients, ``https`` for posting to their connections."""
        return f"{self.origin(scheme)}/{STAGE}"

    def origin(self, scheme: str) -> str:
        """The API's origin, which content security policies name."""
        return f"{scheme}://{self.api_id}.execute-api.{self.region}.{self.url_suffix}"

    def _vector_index(self, settings: Settings, removal: RemovalPolicy) -> str | None:
        """The ARN of the S3 Vectors index, as the other stacks see it, for those who search there."""
        if settings.retrieval.engine != "s3vectors":
            return None
        made = VectorIndexResource(
            self, "Vectors", dimensions=settings.models.embedding_dimensions, removal=removal, key=self.encryption_key
        )
        if self.encryption_key is not None:
            self.encryption_key.add_to_resource_policy(
                iam.PolicyStatement(
                    principals=[iam.ServicePrincipal("indexing.s3vectors.amazonaws.com")],
                    actions=["kms:Decrypt"],
                    resources=["*"],
                    conditions={
                        "StringEquals": {"aws:SourceAccount": self.account},
                        "ArnLike": {"aws:SourceArn": f"arn:{self.partition}:s3vectors:{self.region}:{self.account}:*"},
                    },
                )
            )
        return self._shared("VectorIndexArn", made.index_arn)

    def _shared(self, name: str, value: str) -> str:
        """A value as the other stacks see it: an output, which CloudFormation reads when it creates or updates them.

        The output's name is known while the stacks are made, so accepted findings can repeat it. The reading stack
        must be told to depend on this one.
        """
        CfnOutput(self, name, value=value)
        if self.node.try_get_context(REFERENCES) == "both":
            self.export_value(value, name=f"{self.stack_name}-{name}")  # as release 0.1.0 imports it
        return Fn.get_stack_output(self.stack_name, name)

    def _key(self, removal: RemovalPolicy) -> kms.Key:
        key = kms.Key(
            self,
            "Key",
            description="Cicada: encrypts the bucket, the table and the logs",
            enable_key_rotation=True,
            removal_policy=removal,
        )
        every_log_group = f"arn:{self.partition}:logs:{self.region}:{self.account}:*"
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(f"logs.{self.region}.{self.url_suffix}")],
                actions=["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
                resources=["*"],
                conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": every_log_group}},
            )
        )
        return key

    def _bucket(self, removal: RemovalPolicy, keep_days: int) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Index",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            encryption=s3.BucketEncryption.KMS if self.encryption_key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self.encryption_key,
            bucket_key_enabled=True if self.encryption_key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            removal_policy=removal,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(7),
                    noncurrent_version_expiration=Duration.days(30),
                    expired_object_delete_marker=True,
                ),
                *(
                    # What is needed again is made again, from the documents: nobody restores it.
                    s3.LifecycleRule(
                        prefix=prefix,
                        expiration=Duration.days(keep_days),
                        noncurrent_version_expiration=Duration.days(1),
                    )
                    for prefix in (PREPARED, ENRICHED, INGESTS)
                ),
            ],
        )
        # The property itself: the CDK's own method would bring a function that may configure every bucket.
        made = bucket.node.default_child
        assert isinstance(made, s3.CfnBucket)
        made.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
        )
        accept(
            bucket,
            {
                "AwsSolutions-S1": "Access logs would need a second bucket that grows for ever. Who reads the index is "
                "in CloudTrail for those who record data events."
            },
        )
        return bucket

    def _protect_records(self, *, keep: bool) -> None:
        """Refuse to replace audit records and, where data outlives the stacks, to delete them: to everybody."""
        records = self.bucket.arn_for_objects(f"{AUDIT_PREFIX}*")
        self.bucket.add_to_resource_policy(
            iam.PolicyStatement(
                sid="RecordsAreNotReplaced",
                effect=iam.Effect.DENY,
                principals=[iam.AnyPrincipal()],
                actions=["s3:PutObject"],
                resources=[records],
                conditions={"Null": {"s3:if-none-match": "true"}},
            )
        )
        if keep:
            self.bucket.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="RecordsAreNotDeleted",
                    effect=iam.Effect.DENY,
                    principals=[iam.AnyPrincipal()],
                    actions=["s3:DeleteObject", "s3:DeleteObjectVersion"],
                    resources=[records],
                )
            )

    def _audit_readers(self, settings: Settings) -> None:
        """A managed policy to read audit records; it is attached to no principal."""
        records = self.bucket.arn_for_objects(f"{AUDIT_PREFIX}*")
        readers = iam.ManagedPolicy(
            self,
            "AuditReaders",
            managed_policy_name=f"{settings.stack_prefix}-audit-readers-{self.region}",
            description="Cicada: read access to the audit records",
            statements=[
                iam.PolicyStatement(
                    actions=["s3:ListBucket"],
                    resources=[self.bucket.bucket_arn],
                    conditions={"StringLike": {"s3:prefix": f"{AUDIT_PREFIX}*"}},
                ),
                iam.PolicyStatement(actions=["s3:GetObject"], resources=[records]),
                *(
                    ()
                    if self.key is None
                    else [iam.PolicyStatement(actions=list(OBJECT_READER), resources=[self.key.key_arn])]
                ),
            ],
        )
        accept(
            readers,
            {f"AwsSolutions-IAM5[Resource::{as_reported(self, records)}]": RECORD_NAMES},
        )
        CfnOutput(self, "AuditReadersPolicyArn", value=readers.managed_policy_arn)

    def _record_settings(self, settings: Settings) -> None:
        """Have CloudFormation record a change of settings: with this stack, before those that use them."""
        functions = Functions(self, settings, Layers(self, "Layers", local=settings.local), self.encryption_key)
        recorder = functions.make(
            "RecordSettings",
            "record_settings",
            timeout_s=RECORD_S,
            memory_mb=256,
            environment={"INDEX_BUCKET": self.bucket.bucket_name},
        )
        self.allow_records(recorder, self.bucket.bucket_arn)
        recorded = CustomResource(
            self,
            "RecordedSettings",
            resource_type=SETTINGS,
            service_token=recorder.function.function_arn,
            service_timeout=Duration.seconds(2 * RECORD_S),
            properties={"Settings": record(settings)},
        )
        recorded.node.add_dependency(self.bucket)

    def _table(self, settings: Settings, removal: RemovalPolicy) -> dynamodb.Table:
        table = dynamodb.Table(
            self,
            "Requests",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            time_to_live_attribute="expires_at",
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            max_read_request_units=settings.limits.table_read_units,
            max_write_request_units=settings.limits.table_write_units,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self.encryption_key else None,
            encryption_key=self.encryption_key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=settings.point_in_time_recovery
            ),
            deletion_protection=settings.on_delete == "retain",
            removal_policy=removal,
        )
        # Only an open request has the attribute `open_in`: the index holds what is under way, and costs nothing idle.
        table.add_global_secondary_index(
            index_name=OPEN_REQUESTS,
            partition_key=dynamodb.Attribute(name="open_in", type=dynamodb.AttributeType.NUMBER),
            sort_key=dynamodb.Attribute(name="accepted_at_ms", type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            max_read_request_units=settings.limits.table_read_units,
            max_write_request_units=settings.limits.table_write_units,
        )
        if not settings.point_in_time_recovery:
            accept(
                table,
                {
                    "AwsSolutions-DDB3": "Answers live for days and can be asked for again; backups are billed by "
                    "size. The setting pointInTimeRecovery turns them on."
                },
            )
        return table
