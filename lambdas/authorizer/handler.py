"""The ``$connect`` authorizer: checks the token and returns a policy and the identity."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.authorization import Forbidden, TokenRules, TokenVerifier
from cicada.errors import Unauthorized
from cicada.issuer_keys import IssuerKeys, IssuerUnavailable
from cicada.metrics import CONNECTIONS_REFUSED, ISSUER_UNAVAILABLE
from cicada.settings import AuthorizerSettings
from cicada.telemetry import logger, report

settings = AuthorizerSettings.read(os.environ)
verifier = TokenVerifier(
    IssuerKeys(settings.jwt_issuer, settings.jwks_url or None),
    TokenRules(
        settings.jwt_issuer,
        settings.audiences(),
        tenant_claim=settings.tenant_claim or None,
        groups_claim=settings.groups_claim or None,
        required_groups=settings.groups(),
    ),
    origins=settings.origins(),
    token_in_url=settings.token_in_url,
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Allow a connection; deny a wrong origin or group (403), refuse a bad token (401), fail without keys (500)."""
    try:
        identity = verifier.identify(event)
    except Forbidden as error:
        logger.warning("connection denied", extra={"why": str(error)})
        report({CONNECTIONS_REFUSED: 1})
        return _policy("Deny", "denied", event["methodArn"])
    except Unauthorized as error:
        logger.warning("connection refused", extra={"why": str(error)})
        report({CONNECTIONS_REFUSED: 1})
        raise Exception("Unauthorized") from None
    except IssuerUnavailable as error:
        logger.error("the issuer's keys are unavailable", extra={"issuer": settings.jwt_issuer, "why": str(error)})
        report({ISSUER_UNAVAILABLE: 1})
        raise
    return _policy("Allow", identity.subject, event["methodArn"]) | {"context": identity.context()}


def _policy(effect: str, principal: str, arn: str) -> dict[str, Any]:
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": arn}
    return {"principalId": principal, "policyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
