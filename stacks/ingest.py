"""The ingest of uploaded documents: functions, workflow, and the rule that starts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cicada.ingest.contracts import ENRICHED, PREPARED, LoadingPlan, LoadingRules
from cicada.ingest.incoming.places import INCOMING, INGESTED, INGESTS
from stacks import ingest_settings
from stacks.bedrock import invoke_statements
from stacks.data import INDEX_PREFIX, REFERENCES, DataStack
from stacks.endpoints import allow_keys, endpoint_environment
from stacks.findings import accept, as_reported
from stacks.function import CicadaFunction, Functions
from stacks.ingest_states import COMMIT_TIMEOUT_S, DOCUMENT_TIMEOUT_S, PLAN_TIMEOUT_S, definition
from stacks.keys import TABLE_READER, object_key_actions
from stacks.layers import Layers
from stacks.logs import log_group
from stacks.settings import Settings

START_TIMEOUT_S = 30
UPLOADS_TIMEOUT_S = 20  # API Gateway waits 29 s for the reply
OWN_RUNS = "Executions come and go; the ARN allows those of this state machine only."
BY_NAME = "Objects are named by what they hold; the ARN allows those of one folder only."


def loading_plan(settings: Settings) -> LoadingPlan:
    """How each collection's documents are cut and enriched, as the functions are told."""
    ingest = settings.ingest
    model_id = ingest.enrichment_model_id or settings.models.direct_model_id

    def rules(of: ingest_settings.LoadingRulesSettings) -> LoadingRules:
        return LoadingRules(chunks=of.chunks(), enrichment=of.enrichment(model_id))

    others = rules(ingest)
    own = {name: rules(of) for name, of in ingest.collections.items()}
    return LoadingPlan(others=others, collections={name: its for name, its in own.items() if its != others})


class IngestStack(Stack):
    """Uploads below ``incoming/`` start a workflow that prepares documents side by side and commits them together."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, **stack: Any) -> None:
        """Make the stack; ``stack`` are the CDK's own properties."""
        super().__init__(scope, id, description="Cicada: ingestion of uploaded documents", **stack)
        self._settings = settings
        self._data = data
        self._functions = Functions(self, settings, Layers(self, "Layers", local=settings.local), data.encryption_key)
        self._machine_name = f"{settings.stack_prefix}-ingest"
        self.machine_arn = f"arn:{self.partition}:states:{self.region}:{self.account}:stateMachine:{self._machine_name}"
        self.plan = self._plan()
        self.document = self._document()
        self.commit = self._commit()
        self.workflow = self._workflow()
        self.dead_letters = self._dead_letters()
        """Events of uploads that were handed to nobody, or that no run could be started for."""
        self.start = self._start()
        if self.node.try_get_context(REFERENCES) == "both":
            self.export_value(self.start.function.function_name)  # an alarm of release 0.1.0 imports it
        self.uploads = self._uploads() if settings.uploads.enabled(settings.auth) else None
        """Serves uploads by users; None where nobody may upload."""
        CfnOutput(self, "DeadLetterQueueUrl", value=self.dead_letters.queue_url)
        CfnOutput(self, "IngestMachineArn", value=self.workflow.state_machine_arn)

    def _plan(self) -> CicadaFunction:
        plan = self._step(
            "Plan",
            "ingest_plan",
            "yaml",
            timeout_s=PLAN_TIMEOUT_S,
            memory_mb=1769,
            environment={"INGEST_MACHINE_ARN": self.machine_arn},
        )
        # Whether a run that has the collection's turn is still at work.
        plan.allow(("states:DescribeExecution",), self._runs(":"), because=OWN_RUNS)
        self._data.allow_list(plan, INCOMING, INDEX_PREFIX, INGESTED, INGESTS)
        self._allow_objects(plan, ("s3:GetObject",), INCOMING, INDEX_PREFIX)
        self._allow_objects(plan, ("s3:GetObject", "s3:PutObject"), INGESTED, INGESTS)
        return plan

    def _document(self) -> CicadaFunction:
        models = self._settings.models
        document = self._step(
            "Document",
            "ingest_document",
            "documents",
            "yaml",
            timeout_s=DOCUMENT_TIMEOUT_S,
            memory_mb=self._settings.ingest.memory_mb,
        )
        self._data.allow_list(document, INDEX_PREFIX, PREPARED, ENRICHED, INGESTS)
        self._allow_objects(document, ("s3:GetObject",), INCOMING, INDEX_PREFIX)
        self._allow_objects(document, ("s3:GetObject", "s3:PutObject"), ENRICHED, INGESTS)
        self._allow_objects(document, ("s3:DeleteObject", "s3:GetObject", "s3:PutObject"), PREPARED)
        enriching = loading_plan(self._settings).model_ids()
        allow_keys(document, models, enriching)
        model_ids = [models.embedding_model_id, *enriching]
        for model_id in dict.fromkeys(model_ids):
            document.allow_statement(
                *invoke_statements(
                    self, model_id, action="bedrock:InvokeModel", more_regions=models.destination_regions
                )
            )
        return document

    def _commit(self) -> CicadaFunction:
        commit = self._step(
            "Commit",
            "ingest_commit",
            timeout_s=COMMIT_TIMEOUT_S,
            memory_mb=self._settings.ingest.memory_mb,
        )
        self._data.allow_list(commit, INCOMING, INDEX_PREFIX, INGESTED, INGESTS, PREPARED)
        self._allow_objects(commit, ("s3:GetObject",), PREPARED)
        self._data.allow_records(commit)
        self._allow_objects(commit, ("s3:GetObject", "s3:PutObject"), INDEX_PREFIX, INGESTED, INGESTS)
        return commit

    def _step(
        self,
        id: str,
        folder: str,
        *vendor: str,
        timeout_s: int,
        memory_mb: int,
        environment: Mapping[str, str] | None = None,
    ) -> CicadaFunction:
        models = self._settings.models
        return self._functions.make(
            id,
            folder,
            "search",
            *vendor,
            timeout_s=timeout_s,
            memory_mb=memory_mb,
            environment={
                "INDEX_BUCKET": self._data.bucket_name,
                "EMBEDDING_MODEL_ID": models.embedding_model_id,
                "EMBEDDING_DIMENSIONS": str(models.embedding_dimensions),
                "LOADING": loading_plan(self._settings).model_dump_json(by_alias=True, exclude_defaults=True),
                "OPENBLAS_NUM_THREADS": "1",
                **endpoint_environment(models, loading_plan(self._settings).model_ids()),
                **(environment or {}),
            },
        )

    def _start(self) -> CicadaFunction:
        start = self._functions.make(
            "Start",
            "ingest_start",
            timeout_s=START_TIMEOUT_S,
            memory_mb=256,
            environment={
                "INGEST_MACHINE_ARN": self.workflow.state_machine_arn,
                "QUIET_S": str(self._settings.ingest.quiet_s),
            },
        )
        start.allow(("states:StartExecution",), self.workflow.state_machine_arn)
        start.allow(("sqs:SendMessage",), self.dead_letters.queue_arn)
        start.function.configure_async_invoke(retry_attempts=2, max_event_age=Duration.hours(6))
        # The property itself: the CDK's own method would allow the function more than it needs.
        asynchronous = start.function.node.find_child("EventInvokeConfig").node.default_child
        assert isinstance(asynchronous, lambda_.CfnEventInvokeConfig)
        asynchronous.destination_config = lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
            on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=self.dead_letters.queue_arn)
        )
        events.Rule(
            self,
            "Uploads",
            rule_name=f"{self._settings.stack_prefix}-uploads",
            description="Uploaded and deleted documents",
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created", "Object Deleted"],
                detail={"bucket": {"name": [self._data.bucket_name]}, "object": {"key": [{"prefix": INCOMING}]}},
            ),
            targets=[
                targets.LambdaFunction(
                    start.function,
                    retry_attempts=8,
                    max_event_age=Duration.hours(6),
                    dead_letter_queue=self.dead_letters,
                )
            ],
        )
        accept(start, {"Serverless-LambdaDLQ": "Its on-failure destination holds what a dead letter would, and why."})
        return start

    def _uploads(self) -> CicadaFunction:
        settings, data = self._settings, self._data
        uploads = self._functions.make(
            "UserUploads",
            "uploads",
            timeout_s=UPLOADS_TIMEOUT_S,
            memory_mb=512,
            environment={
                "INDEX_BUCKET": data.bucket_name,
                "UPLOAD_URL": f"{data.upload_origin}/",
                "INGEST_MACHINE_ARN": self.machine_arn,
                "REQUESTS_TABLE": data.table.table_name,
                "UPLOAD_LIMITS": settings.uploads.limits().model_dump_json(),
                "AUTH": "none" if settings.auth.mode == "none" else "jwt",
                **settings.uploads.uploaders_environment(settings.auth),
                **settings.access.environment(),
            },
        )
        # It signs forms with its own rights: a form can do nothing that the function may not.
        self._allow_objects(uploads, ("s3:DeleteObject", "s3:PutObject"), INCOMING)
        self._allow_objects(uploads, ("s3:GetObject",), INGESTED, INGESTS)
        uploads.allow(("s3:GetObject",), data.access_arn)
        data.allow_list(uploads, INCOMING, INDEX_PREFIX, INGESTED, INGESTS)
        data.allow_records(uploads)
        uploads.allow(("states:DescribeExecution",), self._runs(":"), because=OWN_RUNS)
        if settings.auth.mode != "none":  # whether the user's tokens were revoked
            uploads.allow(("dynamodb:GetItem",), data.table.table_arn)
            if data.key is not None:
                uploads.allow(TABLE_READER, data.key.key_arn)
        return uploads

    def _dead_letters(self) -> sqs.Queue:
        """A queue that holds events until the operator has seen them. It holds names of documents, no text."""
        queue = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=f"{self._settings.stack_prefix}-dead-letters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        is_one = "It holds dead letters itself, and nobody but the operator receives from it."
        accept(queue, {"AwsSolutions-SQS3": is_one, "Serverless-SQSRedrivePolicy": is_one})
        return queue

    def _workflow(self) -> sfn.StateMachine:
        steps = (self.plan, self.document, self.commit)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            description="Ingestion workflow",
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[step.function.function_arn for step in steps]
            )
        )
        role.add_to_policy(iam.PolicyStatement(actions=["states:StartExecution"], resources=[self.machine_arn]))
        runs, batches = self._runs(":"), self._runs("/")
        role.add_to_policy(
            iam.PolicyStatement(actions=["states:DescribeExecution", "states:StopExecution"], resources=[runs, batches])
        )
        plans = self._objects(INGESTS)
        role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=[plans]))
        accept(
            role,
            {
                "AwsSolutions-IAM5[Resource::*]": "The actions that set up log delivery and write X-Ray traces know no "
                "resources.",
                f"AwsSolutions-IAM5[Resource::{as_reported(self, runs)}]": OWN_RUNS,
                f"AwsSolutions-IAM5[Resource::{as_reported(self, batches)}]": OWN_RUNS,
                f"AwsSolutions-IAM5[Resource::{as_reported(self, plans)}]": BY_NAME,
            },
        )
        if self._data.key is not None:
            role.add_to_policy(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[self._data.key.key_arn]))
        states = definition(
            partition=self.partition,
            bucket=self._data.bucket_name,
            plan_arn=self.plan.function.function_arn,
            document_arn=self.document.function.function_arn,
            commit_arn=self.commit.function.function_arn,
            concurrency=self._settings.ingest.concurrency,
        )
        group = log_group(
            self,
            "WorkflowLogs",
            settings=self._settings,
            key=self._data.encryption_key,
            name=f"/aws/vendedlogs/states/{self._machine_name}",
        )
        return sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=self._machine_name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(self.to_json_string(states)),
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=group, level=sfn.LogLevel.ALL, include_execution_data=False),
        )

    def _runs(self, separator: str) -> str:
        """The ARNs of the workflow's executions (``:``), or of its batches' (``/``)."""
        return f"{self.machine_arn.replace(':stateMachine:', ':execution:')}{separator}*"

    def _objects(self, prefix: str) -> str:
        return f"arn:{self.partition}:s3:::{self._data.bucket_name}/{prefix}*"

    def _allow_objects(self, step: CicadaFunction, actions: tuple[str, ...], *prefixes: str) -> None:
        step.allow(actions, *(self._objects(prefix) for prefix in prefixes), because=BY_NAME)
        if self._data.key is not None:
            step.allow(object_key_actions(actions), self._data.key.key_arn)
