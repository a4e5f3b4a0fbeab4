"""What is deployed, read from moto: functions for the Lambda service, APIs for the gateway, outputs of stacks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cicada_local.calls import function_name
from cicada_local.cloudformation.event_invoke import EVENT_INVOKE_CONFIGS
from cicada_local.cloudformation.websocket_api import APIS, DeployedApi
from cicada_local.deploy import TOOLKIT_STACK
from cicada_local.functions.async_events import DEAD_LETTERS
from cicada_local.functions.config import AsyncConfig, FunctionConfig, Layer
from cicada_local.functions.log_levels import DEFAULT_LEVEL, JSON_FORMAT, LOGGING
from cicada_local.gateway.config import AccessLog, ApiConfig, AuthorizerConfig, RouteConfig
from cicada_local.places import ACCOUNT_ID, REGION

_INVOKED = re.compile(r"/functions/(arn:[^/]+)/invocations$")
_SOCKET = re.compile(r"wss://([a-z0-9]+)\.execute-api\.[a-z0-9-]+\.amazonaws\.com(/[A-Za-z0-9_-]+)?")
_BUCKET = re.compile(r"https://([a-z0-9-]+)\.s3\.[a-z0-9-]+\.amazonaws\.com(/?)")
_CALLBACK = re.compile(r"^https?://([a-z0-9]+)\.execute-api\.[^/]+/([^/]+)/?$")


class DeployedFunctions:
    """The Lambda service's view of the deployed functions."""

    def __init__(self, backend: Any) -> None:
        """Read from moto's Lambda backend of one account and region."""
        self._backend = backend
        self._digests: dict[int, tuple[bytes, str]] = {}

    def lookup(self, name_or_arn: str) -> FunctionConfig | None:
        """The function as it stands now; None when there is none."""
        from moto.awslambda.exceptions import LambdaClientError

        try:
            found = self._backend.get_function(function_name(name_or_arn))
        except LambdaClientError:
            return None
        return FunctionConfig(
            name=found.function_name,
            arn=found.function_arn,
            handler=found.handler,
            code_zip=found.code_bytes,
            code_sha=self._digest(found.code_bytes),
            layers=[self._layer(layer["Arn"]) for layer in found.layers],
            environment=dict(found.environment_vars),
            timeout_s=float(found.timeout),
            memory_mb=int(found.memory_size),
            runtime=found.run_time,
            architecture=found.architectures[0],
            reserved_concurrency=found.reserved_concurrency,
            role=found.role,
            **_log_levels(getattr(found, LOGGING, {})),
            asynchronous=replace(
                EVENT_INVOKE_CONFIGS.get(found.function_name, AsyncConfig()),
                dead_letter=getattr(found, DEAD_LETTERS, ""),
            ),
        )

    def _layer(self, arn: str) -> Layer:
        version = self._backend.layers_versions_by_arn(arn)
        return Layer(name=version.name, zip_bytes=version.code_bytes, sha=self._digest(version.code_bytes))

    def _digest(self, content: bytes) -> str:
        """The content's SHA-256, computed once an object: layers are tens of megabytes and looked up at every call."""
        known = self._digests.get(id(content))
        if known is None or known[0] is not content:
            known = self._digests[id(content)] = (content, hashlib.sha256(content).hexdigest())
        return known[1]


def reserved_concurrency() -> int:
    """The concurrency that all functions have reserved together."""
    from moto.awslambda.models import lambda_backends

    functions = lambda_backends[ACCOUNT_ID][REGION].list_functions()
    return sum(int(function.reserved_concurrency or 0) for function in functions)


def _log_levels(logging: Mapping[str, str]) -> dict[str, Any]:
    if logging.get("LogFormat") != JSON_FORMAT:
        return {}
    own, system = (logging.get(f"{kind}LogLevel", DEFAULT_LEVEL) for kind in ("Application", "System"))
    return {"log_level": own, "system_log_level": system}


def lookup_api(api_id: str, stage_name: str) -> ApiConfig | None:
    """One stage of a deployed WebSocket API, for the gateway; None when there is none."""
    api = APIS.get(api_id)
    if api is None or stage_name not in api.stages:
        return None
    answering = {properties["RouteId"] for properties in api.route_responses.values()}
    routes = {
        properties["RouteKey"]: RouteConfig(
            function_arn=_integrated_function(api, properties),
            authorizer=_authorizer(api, properties),
            two_way=route_id in answering,
        )
        for route_id, properties in api.routes.items()
    }
    return ApiConfig(
        api_id=api_id,
        stage=stage_name,
        routes=routes,
        route_selection_expression=api.properties.get("RouteSelectionExpression", "$request.body.action"),
        region=REGION,
        account_id=ACCOUNT_ID,
        stage_variables=api.stages[stage_name].get("StageVariables", {}),
        access_log=_access_log(api.stages[stage_name].get("AccessLogSettings", {})),
    )


def _access_log(settings: Mapping[str, str]) -> AccessLog | None:
    if "DestinationArn" not in settings or "Format" not in settings:
        return None
    return AccessLog(settings["DestinationArn"].split(":log-group:", 1)[1].removesuffix(":*"), settings["Format"])


def _integrated_function(api: DeployedApi, route: Mapping[str, Any]) -> str:
    integration = api.integrations[route["Target"].removeprefix("integrations/")]
    if integration["IntegrationType"] != "AWS_PROXY":
        raise ValueError(
            f"route {route['RouteKey']}: the gateway knows no integration {integration['IntegrationType']}"
        )
    return _function_of(integration["IntegrationUri"])


def _authorizer(api: DeployedApi, route: Mapping[str, Any]) -> AuthorizerConfig | None:
    if route.get("AuthorizationType", "NONE") != "CUSTOM":
        return None
    authorizer = api.authorizers[route["AuthorizerId"]]
    return AuthorizerConfig(
        function_arn=_function_of(authorizer["AuthorizerUri"]),
        identity_sources=tuple(authorizer.get("IdentitySource", ())),
        authorizer_id=route["AuthorizerId"],
    )


def _function_of(uri: str) -> str:
    found = _INVOKED.search(uri)
    if found is None:
        raise ValueError(f"no function is named by the integration URI {uri}")
    return found[1]


def callback_url(endpoint_url: str, aws_url: str) -> str | None:
    """The callback endpoint of the local gateway that stands for an API's own; None when it is no API's.

    Args:
        endpoint_url: the local cloud's.
        aws_url: as the stack has it, ``https://<api>.execute-api.<region>.<suffix>/<stage>``.
    """
    found = _CALLBACK.match(aws_url)
    return f"{endpoint_url}/_ws/{found[1]}/{found[2]}" if found else None


def websocket_url(endpoint_url: str, aws_url: str) -> str:
    """Where the local gateway serves the stage whose address on AWS is ``wss://<api>.execute-api…/<stage>``."""
    local = callback_url(endpoint_url, aws_url.replace("wss://", "https://", 1))
    return local.replace("http://", "ws://", 1) if local else aws_url


def localised(endpoint_url: str, text: str) -> str:
    """A text, such as a policy, with the addresses of WebSocket APIs and buckets replaced by those of this machine."""
    text = _BUCKET.sub(lambda found: f"{endpoint_url}/{found[1]}" if found[2] else endpoint_url, text)
    origin = endpoint_url.replace("http", "ws", 1)
    return _SOCKET.sub(lambda found: f"{origin}/_ws/{found[1]}{found[2]}" if found[2] else origin, text)


def origin_buckets() -> set[str]:
    """The buckets that distributions serve: each deployment fills them anew."""
    from cicada_local.cloudformation.cloudfront import DISTRIBUTIONS

    return {behavior.bucket for distribution in DISTRIBUTIONS.values() for behavior in distribution.behaviors}


def stacks() -> list[Any]:
    """The deployed stacks but the CDK's own, in the order of their creation."""
    from moto.cloudformation.models import cloudformation_backends

    backend = cloudformation_backends[ACCOUNT_ID][REGION]
    return [stack for stack in list(backend.stacks.values()) if stack.name != TOOLKIT_STACK]


def outputs() -> dict[str, str]:
    """The outputs of all deployed stacks by their names; of those that are being deployed there are none yet."""
    return {
        output["OutputKey"]: output["OutputValue"]
        for stack in stacks()
        if stack.status.endswith("_COMPLETE")
        for output in stack.outputs or ()
        if not output["OutputKey"].startswith(("Export", "Publish"))  # the CDK's own, for references between stacks
    }
