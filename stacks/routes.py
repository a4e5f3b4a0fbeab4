"""The routes of a WebSocket API, and the snapshot of them that a stage serves."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_apigatewayv2 as apigw
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.findings import accept

INTEGRATION_TIMEOUT_MS = 29_000
"""The longest that API Gateway waits for a function behind a WebSocket route (AWS)."""


class Routes(Construct):
    """Routes from frames to functions, filled in one by one, then deployed."""

    def __init__(self, scope: Construct, id: str, *, api_id: str, stage_arn: str) -> None:
        """Begin without routes.

        Args:
            scope: the stack.
            id: the construct's id.
            api_id: the API's.
            stage_arn: of the stage that will serve them; only it may invoke the functions.
        """
        super().__init__(scope, id)
        self._api_id = api_id
        self._stage_arn = stage_arn
        self._shown: list[CfnResource] = []
        self._described: list[Any] = []

    def authorize(self, function: lambda_.IFunction, *, name: str) -> apigw.CfnAuthorizer:
        """An authorizer: ``function`` decides who may connect."""
        properties: dict[str, Any] = {
            "authorizer_type": "REQUEST",
            "authorizer_uri": self._invocation_uri(function),
            # API Gateway answers 401 by itself unless every source named here is present. A token may come in one of
            # several places, so the one named is a header that each handshake has, and the function looks for the rest.
            "identity_source": ["route.request.header.Host"],
        }
        authorizer = apigw.CfnAuthorizer(self, "Authorizer", api_id=self._api_id, name=name, **properties)
        self._show(authorizer, properties)
        stack = Stack.of(self)
        self._permit(
            "InvokeAuthorizer",
            function,
            f"arn:{stack.partition}:execute-api:{stack.region}:{stack.account}:{self._api_id}/authorizers/{authorizer.ref}",
        )
        return authorizer

    def integrate(self, id: str, function: lambda_.IFunction) -> apigw.CfnIntegration:
        """An integration: routes lead to ``function`` through it."""
        properties: dict[str, Any] = {
            "integration_type": "AWS_PROXY",
            "integration_method": "POST",
            "integration_uri": self._invocation_uri(function),
            "timeout_in_millis": INTEGRATION_TIMEOUT_MS,
        }
        integration = apigw.CfnIntegration(self, id, api_id=self._api_id, **properties)
        self._show(integration, properties)
        return integration

    def add(
        self,
        key: str,
        function: lambda_.IFunction,
        integration: apigw.CfnIntegration,
        *,
        authorizer: apigw.CfnAuthorizer | None = None,
        replies: bool = False,
    ) -> None:
        """Add a route.

        Args:
            key: an action, or one of API Gateway's own, such as ``$connect``.
            function: what it leads to.
            integration: the function's.
            authorizer: decides who may pass; API Gateway allows one on ``$connect`` only.
            replies: whether what the function returns goes back to the client as a frame.
        """
        name = key.removeprefix("$").capitalize()
        properties: dict[str, Any] = {
            "route_key": key,
            "target": f"integrations/{integration.ref}",
            "authorization_type": "CUSTOM" if authorizer else "NONE",
            "authorizer_id": authorizer.ref if authorizer else None,
            "route_response_selection_expression": "$default" if replies else None,
        }
        route = apigw.CfnRoute(self, f"{name}Route", api_id=self._api_id, **properties)
        self._show(route, properties)
        self._permit(f"Invoke{name}", function, f"{self._stage_arn}/{key}")
        if replies:
            response: dict[str, Any] = {"route_id": route.ref, "route_response_key": "$default"}
            self._show(apigw.CfnRouteResponse(self, f"{name}RouteResponse", api_id=self._api_id, **response), response)
        if authorizer is None:
            accept(
                route,
                {
                    "AwsSolutions-APIG4": "A WebSocket API authorizes at $connect only; each later frame is checked "
                    "against what the connection carries. Only the local cloud's $connect lacks an authorizer."
                },
            )

    def deploy(self) -> apigw.CfnDeployment:
        """Take the snapshot. What has changed needs a new one, so its logical id follows what it shows."""
        described = json.dumps(Stack.of(self).resolve(self._described), sort_keys=True)
        fingerprint = hashlib.sha256(described.encode()).hexdigest()[:8]
        deployment = apigw.CfnDeployment(self, f"Deployment{fingerprint}", api_id=self._api_id)
        for resource in self._shown:
            deployment.add_resource_dependency(resource)
        return deployment

    def _show(self, resource: CfnResource, properties: dict[str, Any]) -> None:
        self._shown.append(resource)
        self._described.append(properties)

    def _invocation_uri(self, function: lambda_.IFunction) -> str:
        stack = Stack.of(self)
        return (
            f"arn:{stack.partition}:apigateway:{stack.region}:lambda:path/2015-03-31/functions/"
            f"{function.function_arn}/invocations"
        )

    def _permit(self, id: str, function: lambda_.IFunction, source_arn: str) -> None:
        lambda_.CfnPermission(
            self,
            id,
            action="lambda:InvokeFunction",
            function_name=function.function_arn,
            principal="apigateway.amazonaws.com",
            source_arn=source_arn,
        )
