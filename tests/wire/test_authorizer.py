"""The authorizer's function against an issuer over HTTP: what it returns, raises and logs."""

from __future__ import annotations

import importlib.util
import io
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.import_time import ENVIRONMENT
from cicada.issuer_keys import IssuerUnavailable
from cicada.settings import AuthorizerSettings
from tests.wire.test_issuer_keys import AUDIENCE, Issuer

HANDLER = Path(__file__).parents[2] / "lambdas" / "authorizer" / "handler.py"
ARN = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3/live/$connect"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.server.shutdown()
    issuer.server.server_close()


@pytest.fixture
def log() -> io.StringIO:
    """The function's log."""
    return io.StringIO()


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, issuer: Issuer, log: io.StringIO) -> Iterator[Callable[..., ModuleType]]:
    """Loads the function with settings, for the issuer's tokens."""
    logger = logging.getLogger("cicada")
    handlers, level = list(logger.handlers), logger.level

    def load(**settings: str) -> ModuleType:
        of_the_issuer = dict.fromkeys((name.upper() for name in AuthorizerSettings.model_fields), "")
        of_the_issuer |= {"JWT_ISSUER": issuer.issuer, "JWT_AUDIENCE": AUDIENCE}
        for name, value in (ENVIRONMENT | of_the_issuer | settings).items():
            monkeypatch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("authorizer_handler", HANDLER)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        to_log = logging.StreamHandler(log)
        to_log.setFormatter(module.logger.registered_formatter)
        logger.handlers[:] = [to_log]
        logger.setLevel(logging.DEBUG)
        return module

    yield load
    logger.handlers[:] = handlers
    logger.setLevel(level)


def ask(module: ModuleType, token: str, **event: Any) -> dict[str, Any]:
    context = SimpleNamespace(
        function_name="authorizer",
        function_version="1",
        invoked_function_arn="arn",
        memory_limit_in_mb=512,
        aws_request_id="r",
    )
    headers = {"Host": "h", "Sec-WebSocket-Protocol": f"cicada.v1, cicada.bearer.{token}"}
    whole = {"type": "REQUEST", "methodArn": ARN, "headers": headers, "requestContext": {"connectionId": "c="}} | event
    answer: dict[str, Any] = module.handler(whole, context)
    return answer


def test_a_valid_token_is_allowed_with_who_it_is(load: Callable[..., ModuleType], issuer: Issuer) -> None:
    allowed = ask(load(), issuer.token())
    (statement,) = allowed["policyDocument"]["Statement"]
    assert statement == {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": ARN}
    assert allowed["principalId"] == "mara"
    assert allowed["context"] == {"subject": "mara", "expires_at": "9999999999"}


def test_a_user_outside_the_required_groups_is_denied_with_what_to_do(
    load: Callable[..., ModuleType], issuer: Issuer, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = ask(load(GROUPS_CLAIM="groups", REQUIRED_GROUPS="readers,the staff"), issuer.token())
    (statement,) = denied["policyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert "auth.requiredGroups (readers, the staff)" in log.getvalue()
    assert '"ConnectionsRefused"' in capsys.readouterr().out


def test_an_unreachable_issuer_fails_the_function_and_is_counted(
    load: Callable[..., ModuleType], issuer: Issuer, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    """API Gateway answers the upgrade by 500: the client tries again, and does not ask for another token."""
    issuer.answer_all(503)
    with pytest.raises(IssuerUnavailable, match="answered 503"):
        ask(load(), issuer.token())
    assert "the issuer's keys are unavailable" in log.getvalue()
    assert issuer.issuer in log.getvalue()
    assert '"IssuerUnavailable"' in capsys.readouterr().out


def test_nothing_of_a_token_is_logged_on_any_path(
    load: Callable[..., ModuleType], issuer: Issuer, log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    good = issuer.token()
    header, claims, signature = good.split(".")
    refusals: list[str] = []
    tokens = [
        good,
        f"{header}.{claims}.{signature[:-8]}AAAAAAAA",
        f"marked-{claims}",
        issuer.token("unknown-key"),
    ]
    all_settings: list[dict[str, str]] = [
        {},
        {"ALLOWED_ORIGINS": "https://a.example"},
        {"REQUIRED_GROUPS": "x", "GROUPS_CLAIM": "g"},
        {"TOKEN_IN_URL": "true"},
    ]
    for settings in all_settings:
        module = load(LOG_LEVEL="DEBUG", **settings)
        for token in tokens:
            for event in (
                {},
                {"headers": {"Authorization": f"Bearer {token}"}},
                {"headers": {}, "queryStringParameters": {"token": token}},
            ):
                try:
                    ask(module, token, **event)
                except Exception as error:
                    refusals.append(str(error))
    assert set(refusals) == {"Unauthorized"}
    issuer.answer_all(500)
    with pytest.raises(IssuerUnavailable) as fault:
        ask(load(), good)
    seen = capsys.readouterr()
    everything = f"{log.getvalue()}{seen.out}{seen.err}{fault.value!r}"
    assert "connection refused" in everything
    assert "connection denied" in everything
    for part in (claims, signature[:-8], "marked-"):
        assert part not in everything


def test_what_is_attached_is_json_that_api_gateway_takes(load: Callable[..., ModuleType], issuer: Issuer) -> None:
    allowed = ask(load(), issuer.token())
    assert json.loads(json.dumps(allowed)) == allowed
