"""The WebSocket API's stage, what its routes lead to, and who may connect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import ArnFormat, CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_apigateway as apigw_v1
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cicada import __version__
from cicada.protocol.actions import CorpusAction, actions_of
from stacks.alarms import Alarms
from stacks.answering import AnsweringStack
from stacks.dashboard import OperatorsDashboard
from stacks.data import STAGE, DataStack
from stacks.findings import accept
from stacks.function import Functions
from stacks.http_access import HttpAccess
from stacks.ingest import IngestStack
from stacks.layers import Layers
from stacks.logs import log_group
from stacks.page import PageStack
from stacks.queries import log_groups, save_queries
from stacks.routes import Routes
from stacks.settings import Settings
from stacks.settings_record import record, written
from stacks.sign_in import TokenIssuer

ACCESS_LOG = {
    "requestId": "$context.requestId",
    "extendedRequestId": "$context.extendedRequestId",
    "requestTime": "$context.requestTime",
    "eventType": "$context.eventType",
    "routeKey": "$context.routeKey",
    "connectionId": "$context.connectionId",
    "messageId": "$context.messageId",
    "status": "$context.status",
    "sourceIp": "$context.identity.sourceIp",
    "integrationStatus": "$context.integrationStatus",
    "integrationLatencyMs": "$context.integrationLatency",
    "integrationRequestId": "$context.integration.requestId",
    "functionStatus": "$context.integration.status",
    "authorizerStatus": "$context.authorizer.status",
    "error": "$context.error.responseType",
}
"""What the stage logs of each connect, frame and disconnect, one JSON line each.

Messages of errors are left out: they can hold quotation marks, which would break the line, and the variable that quotes
its message gives an unquoted dash where there is no error. The functions' own logs have their messages.
"""


class GatewayStack(Stack):
    """Fills the bare API with routes and serves it.

    It is deployed last, so it has the outputs of all: they appear once everything is there.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        data: DataStack,
        page: PageStack | None,
        answering: AnsweringStack,
        ingest: IngestStack,
        issuer: TokenIssuer | None,
        **stack: Any,
    ) -> None:
        """Make the stack.

        Args:
            scope: the app.
            id: the stack's name.
            settings: the deployer's.
            data: the stack with the bare API.
            answering: the stack with the message processor, and what reads the corpus.
            ingest: the stack that the alarms watch too.
            issuer: whose tokens are accepted; None lets everybody in.
            stack: the CDK's own properties.
        """
        super().__init__(scope, id, description="Cicada: routes and stage of the WebSocket API", **stack)
        self._settings = settings
        self._data = data
        self._functions = Functions(self, settings, Layers(self, "Layers", local=settings.local), data.encryption_key)
        connection = self._functions.make("Connection", "connection", timeout_s=5, memory_mb=256).function
        processor = answering.message_processor.function
        routes = Routes(self, "Routes", api_id=data.api_id, stage_arn=data.stage_arn)
        authorizer = None if issuer is None else routes.authorize(self._authorizer(issuer, page), name="jwt")
        to_connection = routes.integrate("ToConnection", connection)
        routes.add("$connect", connection, to_connection, authorizer=authorizer)
        routes.add("$disconnect", connection, to_connection)
        routes.add("$default", processor, routes.integrate("ToMessageProcessor", processor), replies=True)
        corpus = answering.corpus.function
        to_corpus = routes.integrate("ToCorpus", corpus)
        for action in actions_of(CorpusAction):
            routes.add(action, corpus, to_corpus, replies=True)
        if ingest.uploads is not None:
            uploads = ingest.uploads.function
            routes.add("upload", uploads, routes.integrate("ToUploads", uploads), replies=True)
        access_log = log_group(self, "AccessLogs", settings=settings, key=data.encryption_key)
        stage = self._stage(routes.deploy(), access_log)
        if page is not None:  # it is told of the API when that can be called
            page.configure(self, self._page_config(issuer)).node.add_dependency(stage)
        http = self._http_access(issuer)
        groups = log_groups(self, access_log)
        save_queries(self, prefix=settings.stack_prefix, groups=groups)
        if settings.alarm_email is not None:
            Alarms(
                self,
                "Alarms",
                settings=settings,
                email=settings.alarm_email,
                data=data,
                answering=answering,
                ingest=ingest,
            )
        # The last: it shows the alarms.
        dashboard = self._dashboard(answering, ingest, groups) if settings.dashboard else None
        for name, value in {
            "Release": __version__,
            "WebSocketUrl": data.address("wss"),
            **({} if page is None else {"PageUrl": page.url}),
            **({} if http is None else {"HttpUrl": http.url}),
            **({} if dashboard is None else {"Dashboard": dashboard.name}),
            "IndexBucket": data.bucket_name,
            "RequestsTable": data.table.table_name,
            "StateMachineArn": answering.workflow.machine.state_machine_arn,
            "EmbeddingModelId": settings.models.embedding_model_id,
            "EmbeddingDimensions": str(settings.models.embedding_dimensions),
            "RerankerModelId": settings.retrieval.reranker_model_id or settings.models.direct_model_id,
            "ExpansionModelId": settings.retrieval.expansion_model_id or settings.models.direct_model_id,
            "Access": settings.access.environment().get("ACCESS", "{}"),
            "UsageLimits": self.to_json_string(settings.usage_limits.told(settings.budget)),
            "Settings": written(record(settings)),
            **({} if data.vector_index_arn is None else {"VectorIndexArn": data.vector_index_arn}),
            "AuthMode": settings.auth.mode,
            **({} if issuer is None else issuer.outputs()),
        }.items():
            CfnOutput(self, name, value=value)

    def _http_access(self, issuer: TokenIssuer | None) -> HttpAccess | None:
        if not self._settings.http.enabled:
            return None
        return HttpAccess(
            self,
            "HttpAccess",
            settings=self._settings,
            functions=self._functions,
            websocket_url=self._data.address("wss"),
            issuer=issuer,
        )

    def _authorizer(self, issuer: TokenIssuer, page: PageStack | None) -> lambda_.IFunction:
        auth = self._settings.auth
        # Where origins are listed, the deployment's own page is one of them.
        own = [] if page is None or not auth.allowed_origins else [page.url]
        return self._functions.make(
            "Authorizer",
            "authorizer",
            "auth",
            timeout_s=10,
            memory_mb=512,
            environment={
                **issuer.environment(),
                "ALLOWED_ORIGINS": ",".join([*auth.allowed_origins, *own]),
                **({} if auth.tenant_claim is None else {"TENANT_CLAIM": auth.tenant_claim}),
                **({} if auth.groups_in is None else {"GROUPS_CLAIM": auth.groups_in}),
                "REQUIRED_GROUPS": ",".join(auth.required_groups),
                "TOKEN_IN_URL": str(auth.token_in_url).lower(),
            },
        ).function

    def _dashboard(
        self, answering: AnsweringStack, ingest: IngestStack, groups: Mapping[str, str]
    ) -> OperatorsDashboard:
        return OperatorsDashboard(
            self,
            "Operators",
            settings=self._settings,
            data=self._data,
            answering=answering,
            ingest=ingest,
            log_groups=groups,
        )

    def _page_config(self, issuer: TokenIssuer | None) -> str:
        """The page's ``config.json``."""
        page, auth = self._settings.page, self._settings.auth
        config: dict[str, Any] = {"webSocketUrl": self._data.address("wss")}
        if issuer is not None and page.sign_in:
            config["signIn"] = {
                "issuer": issuer.issuer,
                "clientId": issuer.client_id,
                "scopes": " ".join(issuer.scopes),
                # Whom the authorizer refuses, a browser is not told: the page looks by itself.
                **(
                    {"groupsClaim": auth.groups_in, "groups": list(auth.required_groups)}
                    if auth.required_groups
                    else {}
                ),
            }
        if page.examples:
            config["examples"] = list(page.examples)
        return self.to_json_string(config)

    def _stage(self, deployment: apigw.CfnDeployment, access_log: logs.ILogGroup) -> apigw.CfnStage:
        stage = apigw.CfnStage(
            self,
            "Stage",
            api_id=self._data.api_id,
            stage_name=STAGE,
            deployment_id=deployment.ref,
            default_route_settings=apigw.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=self._settings.throttling.rate_per_s,
                throttling_burst_limit=self._settings.throttling.burst,
                detailed_metrics_enabled=False,  # by the route, each a metric that is billed
            ),
            access_log_settings=apigw.CfnStage.AccessLogSettingsProperty(
                # Without the `:*` that the group's own attribute ends with: API Gateway keeps the ARN so, and a stage
                # that asks for the other would differ from its template for ever.
                destination_arn=self.format_arn(
                    service="logs",
                    resource="log-group",
                    resource_name=access_log.log_group_name,
                    arn_format=ArnFormat.COLON_RESOURCE_NAME,
                ),
                format=json.dumps(ACCESS_LOG),
            ),
        )
        if self._settings.create_api_logging_role:
            stage.add_resource_dependency(self._logging_account())
        return stage

    def _logging_account(self) -> apigw_v1.CfnAccount:
        """Let API Gateway write logs, without which it refuses a stage that has any.

        It is one setting for the account and Region, so it stays when the stack goes, and allows what AWS's own policy
        for it does: other APIs rely on it too.
        """
        role = iam.Role(
            self,
            "ApiLoggingRole",
            assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"),
            managed_policies=[
                iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AmazonAPIGatewayPushToCloudWatchLogs")
            ],
        )
        role.apply_removal_policy(RemovalPolicy.RETAIN)
        account = apigw_v1.CfnAccount(self, "ApiLogging", cloud_watch_role_arn=role.role_arn)
        account.apply_removal_policy(RemovalPolicy.RETAIN)
        accept(
            role,
            {
                "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/"
                "AmazonAPIGatewayPushToCloudWatchLogs]": "The policy that AWS names for this account-wide setting; a "
                "narrower one would silence the account's other APIs."
            },
        )
        return account
