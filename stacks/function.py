"""One function: its code, layers, role, logs and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cicada.metrics import NAMESPACE
from stacks.findings import accept, as_reported
from stacks.layers import ARCHITECTURE, RUNTIME, Layers, function_code
from stacks.logs import log_group
from stacks.settings import Settings


class CicadaFunction(Construct):
    """A function of ``lambdas/``, with a role of its own that allows its logs and traces, and what is added by name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        folder: str,
        layers: Sequence[lambda_.ILayerVersion],
        environment: Mapping[str, str],
        timeout_s: int,
        memory_mb: int,
        concurrency: int | None = None,
        quiet: bool = False,
        key: kms.IKey | None = None,
        name: str | None = None,
        brings: Sequence[Path] = (),
    ) -> None:
        """Make the function.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            folder: its folder below ``lambdas/``, with ``handler.py``.
            layers: what its handler imports.
            environment: its own variables; the shared ones are added.
            timeout_s: when Lambda kills it.
            memory_mb: its memory; its share of a CPU grows with it.
            concurrency: how many run at once at most; the account's quota when None.
            quiet: leave no trace and no line of the platform's of a run that went well, for one that runs all the time.
            key: encrypts the logs.
            name: the function's, for those whom people call by it; CloudFormation chooses one when None.
            brings: folders that lie beside the handler, under their own names.
        """
        super().__init__(scope, id)
        self.folder = folder
        self.logs = log_group(self, "Logs", settings=settings, key=key)
        self.role = iam.Role(
            self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=f"Function {folder}"
        )
        self.logs.grant_write(self.role)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            code=function_code(folder, brings=brings, local=settings.local),
            handler="handler.handler",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            layers=list(layers),
            environment={
                "LOG_LEVEL": settings.log_level,
                "POWERTOOLS_SERVICE_NAME": settings.stack_prefix,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                **environment,
            },
            timeout=Duration.seconds(timeout_s),
            memory_size=memory_mb,
            reserved_concurrent_executions=concurrency,
            role=self.role,
            log_group=self.logs,
            logging_format=lambda_.LoggingFormat.JSON,
            # Lambda's own filter would drop metrics, which have no level: the logger filters instead.
            application_log_level_v2=lambda_.ApplicationLogLevel.TRACE,
            system_log_level_v2=lambda_.SystemLogLevel.WARN if quiet else lambda_.SystemLogLevel.INFO,
            tracing=lambda_.Tracing.DISABLED if quiet else lambda_.Tracing.ACTIVE,
        )
        accept(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "AWS X-Ray's two actions for writing traces know no resources.",
                "AwsSolutions-L1": "Python 3.13 is supported until 2029; the vendor layers' wheels are built for it.",
                "Serverless-LambdaLatestVersion": "Python 3.13 is supported until 2029; the wheels are built for it.",
                "Serverless-LambdaDLQ": "It is only ever invoked synchronously: a failure returns to the caller.",
            },
        )

    def allow(self, actions: Sequence[str], *resources: str, because: str | None = None) -> None:
        """Allow some actions on some resources.

        Args:
            actions: their full names.
            resources: their ARNs.
            because: why an ARN with a wildcard is the narrowest there is.
        """
        self.allow_statement(iam.PolicyStatement(actions=list(actions), resources=list(resources)))
        if because is not None:
            accept(
                self, {f"AwsSolutions-IAM5[Resource::{as_reported(self, resource)}]": because for resource in resources}
            )

    def deny(self, actions: Sequence[str], *resources: str) -> None:
        """Deny what a wildcard of this role would allow."""
        self.allow_statement(
            iam.PolicyStatement(effect=iam.Effect.DENY, actions=list(actions), resources=list(resources))
        )

    def allow_statement(self, *statements: iam.PolicyStatement) -> None:
        """Allow what the statements say."""
        for statement in statements:
            self.role.add_to_principal_policy(statement)


@dataclass(frozen=True)
class Functions:
    """Makes the functions of one stack, with what all of them have."""

    scope: Construct
    settings: Settings
    layers: Layers
    key: kms.IKey | None
    """Encrypts their logs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of all functions."""

    def make(
        self,
        id: str,
        folder: str,
        *vendor: str,
        timeout_s: int,
        memory_mb: int,
        environment: Mapping[str, str] | None = None,
        concurrency: int | None = None,
        quiet: bool = False,
        name: str | None = None,
        brings: Sequence[Path] = (),
    ) -> CicadaFunction:
        """Make a function; ``vendor`` are its vendor layers besides the base. See CicadaFunction for the rest."""
        return CicadaFunction(
            self.scope,
            id,
            settings=self.settings,
            folder=folder,
            layers=self.layers.of("base", *vendor),
            environment={**self.environment, **(environment or {})},
            timeout_s=timeout_s,
            memory_mb=memory_mb,
            concurrency=concurrency,
            quiet=quiet,
            key=self.key,
            name=name,
            brings=brings,
        )
