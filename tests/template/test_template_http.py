"""HTTP access: one function with a public URL, which may do nothing but write its own logs and traces."""

from __future__ import annotations

from pathlib import Path

from cicada_http.settings import HttpSettings
from stacks.findings import flat
from stacks.http_access import BRINGS
from stacks.layers import function_code
from tests.template.templates import ROOT, Synthesis


def test_there_is_none_until_it_is_asked_for(shipped: Synthesis) -> None:
    assert not list(shipped.resources("AWS::Lambda::Url"))
    assert "HttpUrl" not in shipped.template("Gateway")["Outputs"]


def test_the_url_streams_to_everybody_by_both_permissions(full: Synthesis) -> None:
    url = full.one("AWS::Lambda::Url")
    assert (url.properties["AuthType"], url.properties["InvokeMode"]) == ("NONE", "RESPONSE_STREAM")
    assert url.properties["Cors"]["AllowOrigins"] == ["https://app.example.org"]
    assert "AllowCredentials" not in url.properties["Cors"]
    permissions = [
        {name: value for name, value in one.properties.items() if name != "FunctionName"}
        for one in full.resources("AWS::Lambda::Permission")
        if one.properties["Principal"] == "*"
    ]
    assert sorted(permissions, key=lambda one: one["Action"]) == [
        {"Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True, "Principal": "*"},
        {"Action": "lambda:InvokeFunctionUrl", "FunctionUrlAuthType": "NONE", "Principal": "*"},
    ]
    assert flat(full.template("Gateway")["Outputs"]["HttpUrl"]["Value"]) == f"<{url.id}.FunctionUrl>"


def test_without_origins_no_page_is_answered(local: Synthesis) -> None:
    assert "Cors" not in local.one("AWS::Lambda::Url").properties


def test_the_function_may_write_its_logs_and_traces_alone(full: Synthesis) -> None:
    actions = {action for action, _, _ in full.permissions("HttpRole")}
    assert actions == {
        *("logs:CreateLogStream", "logs:PutLogEvents"),
        *("xray:PutTraceSegments", "xray:PutTelemetryRecords"),
    }


def test_what_it_costs_is_bounded(full: Synthesis) -> None:
    function = full.function("http").properties
    assert function["ReservedConcurrentExecutions"] == 5
    assert function["Timeout"] == 120 + 30
    assert function["MemorySize"] == 512


def test_the_function_knows_the_deployment_and_its_issuer(full: Synthesis, local: Synthesis) -> None:
    environment = full.environment("http")
    settings = HttpSettings.read(environment)
    assert settings.websocket_url == "wss://<Other-Data.ApiId>.execute-api.<AWS::Region>.<AWS::URLSuffix>/live"
    assert (settings.auth, settings.jwt_issuer) == ("jwt", "https://issuer.example.org/")
    assert settings.jwt_scopes == "openid offline_access"
    assert settings.origins() == {"https://app.example.org"}
    assert environment["AWS_LAMBDA_EXEC_WRAPPER"] == "/var/task/bridge.sh"
    assert HttpSettings.read(local.environment("http")).auth == "none"


def test_the_package_has_a_script_that_can_be_run_and_all_that_it_imports() -> None:
    code = function_code("http", brings=BRINGS, local=True)
    folder = Path(str(code.path))  # type: ignore[attr-defined]
    assert (folder / "bridge.sh").stat().st_mode & 0o111 == 0o111
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {path.name for path in BRINGS}
    assert not list(folder.rglob("__pycache__"))
    assert (ROOT / "lambdas" / "http" / "bridge.sh").read_text().startswith("#!/bin/sh\n")
