"""The WebSocket API: routes, authorizer, stage, and the order in which its parts come to be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from stacks.findings import flat
from tests.template.templates import Resource, Synthesis


def routes(synthesis: Synthesis) -> dict[str, Resource]:
    return {route.properties["RouteKey"]: route for route in synthesis.resources("AWS::ApiGatewayV2::Route")}


def target(synthesis: Synthesis, key: str) -> str:
    """The function that a route leads to."""
    integration = flat(routes(synthesis)[key].properties["Target"]).removeprefix("integrations/")
    (found,) = (i for i in synthesis.resources("AWS::ApiGatewayV2::Integration") if f"<{i.id}>" == integration)
    assert found.properties["IntegrationType"] == "AWS_PROXY"
    return flat(found.properties["IntegrationUri"]).split("/functions/")[1].removesuffix("/invocations")


def test_frames_are_told_apart_by_their_action(each: Synthesis) -> None:
    api = each.one("AWS::ApiGatewayV2::Api").properties
    assert api["ProtocolType"] == "WEBSOCKET"
    assert api["RouteSelectionExpression"] == "$request.body.action"


def test_every_frame_reaches_the_message_processor(each: Synthesis) -> None:
    corpus = {"collections", "documents", "search", "read"}
    assert routes(each).keys() - {"upload"} == {"$connect", "$disconnect", "$default", *corpus}
    assert len({target(each, action) for action in corpus}) == 1
    assert "CorpusReader" in target(each, "search")
    assert "MessageProcessorFunction" in target(each, "$default")
    assert target(each, "$connect") == target(each, "$disconnect") == f"<{each.function('connection').id}.Arn>"


def test_what_a_function_returns_for_a_frame_is_the_reply_frame(each: Synthesis) -> None:
    replying = {key: route for key, route in routes(each).items() if key not in ("$connect", "$disconnect")}
    assert {route.properties["RouteResponseSelectionExpression"] for route in replying.values()} == {"$default"}
    responses = [one.properties for one in each.resources("AWS::ApiGatewayV2::RouteResponse")]
    assert {one["RouteResponseKey"] for one in responses} == {"$default"}
    assert {one["RouteId"]["Ref"] for one in responses} == {route.id for route in replying.values()}


def test_integrations_use_all_the_time_that_api_gateway_grants(each: Synthesis) -> None:
    timeouts = {i.properties["TimeoutInMillis"] for i in each.resources("AWS::ApiGatewayV2::Integration")}
    assert timeouts == {29_000}


def test_nobody_connects_without_the_authorizer(shipped: Synthesis) -> None:
    authorizer = shipped.one("AWS::ApiGatewayV2::Authorizer")
    connect = routes(shipped)["$connect"].properties
    assert connect["AuthorizationType"] == "CUSTOM"
    assert connect["AuthorizerId"] == {"Ref": authorizer.id}
    assert authorizer.properties["AuthorizerType"] == "REQUEST"
    assert f"<{shipped.function('authorizer').id}.Arn>" in flat(authorizer.properties["AuthorizerUri"])


def test_the_authorizer_is_asked_wherever_the_token_is(shipped: Synthesis) -> None:
    # API Gateway refuses a handshake that lacks any identity source; the Host header is in all of them.
    assert shipped.one("AWS::ApiGatewayV2::Authorizer").properties["IdentitySource"] == ["route.request.header.Host"]


def test_the_page_may_connect_where_origins_are_listed(
    shipped: Synthesis, make: Callable[[dict[str, Any]], Synthesis]
) -> None:
    assert shipped.environment("authorizer")["ALLOWED_ORIGINS"] == ""
    listed = {"auth": {"allowedOrigins": ["https://script.example"]}}
    mine, page = flat(make(listed).environment("authorizer")["ALLOWED_ORIGINS"]).split(",")
    assert mine == "https://script.example"
    assert page.startswith("https://<Cicada-Page.")
    hosted_elsewhere = make(listed | {"page": {"enabled": False}})
    assert hosted_elsewhere.environment("authorizer")["ALLOWED_ORIGINS"] == mine


def test_the_local_cloud_has_no_authorizer(local: Synthesis) -> None:
    assert not list(local.resources("AWS::ApiGatewayV2::Authorizer"))
    assert routes(local)["$connect"].properties["AuthorizationType"] == "NONE"
    assert not [f for f in local.resources("AWS::Lambda::Function") if f.id.startswith("Authorizer")]


def test_the_stage_is_throttled(shipped: Synthesis, full: Synthesis) -> None:
    for synthesis, rate, burst in ((shipped, 100, 200), (full, 5, 7)):
        settings = synthesis.one("AWS::ApiGatewayV2::Stage").properties["DefaultRouteSettings"]
        assert settings["ThrottlingRateLimit"] == rate
        assert settings["ThrottlingBurstLimit"] == burst
        assert "DataTraceEnabled" not in settings  # it would log what people ask


def access_logs(synthesis: Synthesis) -> str:
    (group,) = (group.id for group in synthesis.resources("AWS::Logs::LogGroup") if group.id.startswith("AccessLogs"))
    return group


def test_no_text_of_others_can_break_a_line_of_the_access_log(shipped: Synthesis) -> None:
    shown = str(shipped.one("AWS::ApiGatewayV2::Stage").properties["AccessLogSettings"]["Format"])
    variables = re.findall(r"\$context\.[A-Za-z.]+", shown)
    free_text = ("message", "Message", "messageString", "error", "validationErrorString")
    assert not [variable for variable in variables if variable.rpartition(".")[2].endswith(free_text)]
    assert all(f'"{variable}"' in shown for variable in variables)  # a variable without a value is a bare dash


def test_the_access_log_names_request_and_connection(shipped: Synthesis) -> None:
    log = shipped.one("AWS::ApiGatewayV2::Stage").properties["AccessLogSettings"]
    line = json.loads(log["Format"])
    assert line["requestId"] == "$context.requestId"
    assert line["connectionId"] == "$context.connectionId"
    assert flat(log["DestinationArn"]) == (
        f"arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:<{access_logs(shipped)}>"
    )
    # Nothing of the handshake's headers or query, where the token travels, and not who connects.
    of_the_caller = ("authorizer.principalId", "querystring", "header", "path", "identity.user")
    assert not any(name in value for value in line.values() for name in of_the_caller)


def test_api_gateway_may_log_before_the_stage_asks_it_to(shipped: Synthesis, full: Synthesis) -> None:
    account = shipped.one("AWS::ApiGateway::Account")
    assert account.id in shipped.one("AWS::ApiGatewayV2::Stage").rest["DependsOn"]
    assert account.rest["DeletionPolicy"] == "Retain"  # the account's other APIs rely on it
    assert not list(full.resources("AWS::ApiGateway::Account"))


def test_a_snapshot_is_taken_of_finished_routes(each: Synthesis) -> None:
    deployment = each.one("AWS::ApiGatewayV2::Deployment")
    parts = each.resources(
        "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::RouteResponse",
        "AWS::ApiGatewayV2::Integration",
        "AWS::ApiGatewayV2::Authorizer",
    )
    assert set(deployment.rest["DependsOn"]) == {part.id for part in parts}
    assert each.one("AWS::ApiGatewayV2::Stage").properties["DeploymentId"] == {"Ref": deployment.id}


def test_changed_routes_get_a_new_snapshot_and_unchanged_ones_do_not(
    make: Callable[[dict[str, Any]], Synthesis], local: Synthesis, local_settings: dict[str, Any]
) -> None:
    def snapshot(synthesis: Synthesis) -> str:
        return synthesis.one("AWS::ApiGatewayV2::Deployment").id

    auth = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}
    with_auth = local_settings | {"auth": auth}
    assert snapshot(make(with_auth)) != snapshot(local)
    assert snapshot(make(local_settings | {"retentionDays": 3})) == snapshot(local)


def test_the_outputs_are_what_clients_and_loaders_need(shipped: Synthesis) -> None:
    outputs = {name: flat(output["Value"]) for name, output in shipped.template("Gateway")["Outputs"].items()}
    assert outputs.keys() == {
        "Release",
        "WebSocketUrl",
        "PageUrl",
        "Dashboard",
        "IndexBucket",
        "RequestsTable",
        "StateMachineArn",
        "EmbeddingModelId",
        "EmbeddingDimensions",
        "RerankerModelId",
        "Access",
        "UsageLimits",
        "ExpansionModelId",
        "Settings",
        "AuthMode",
        "Issuer",
        "ClientId",
        "Scopes",
        "UserPoolId",
    }
    assert outputs["WebSocketUrl"] == "wss://<Cicada-Data.ApiId>.execute-api.<AWS::Region>.<AWS::URLSuffix>/live"
    assert outputs["IndexBucket"] == "<Cicada-Data.IndexBucket>"
    assert (outputs["EmbeddingModelId"], outputs["EmbeddingDimensions"]) == ("amazon.titan-embed-text-v2:0", "1024")
    assert (outputs["AuthMode"], outputs["Scopes"]) == ("cognito", "openid email")
    assert all(outputs[name].startswith("<Cicada-SignIn.") for name in ("Issuer", "ClientId", "UserPoolId"))
    assert outputs["RerankerModelId"] == outputs["ExpansionModelId"] == "us.amazon.nova-micro-v1:0"


def test_the_outputs_say_how_to_sign_in(full: Synthesis, local: Synthesis) -> None:
    outputs = {name: flat(output["Value"]) for name, output in full.template("Gateway")["Outputs"].items()}
    told = {name: outputs.get(name) for name in ("AuthMode", "Issuer", "ClientId", "Scopes", "UserPoolId")}
    assert told == {
        "AuthMode": "oidc",
        "Issuer": "https://issuer.example.org/",
        "ClientId": "cicada-page",
        "Scopes": "openid offline_access",
        "UserPoolId": None,
    }
    without = local.template("Gateway")["Outputs"]
    assert without["AuthMode"]["Value"] == "none"
    assert not {"Issuer", "ClientId", "Scopes", "UserPoolId"} & without.keys()
