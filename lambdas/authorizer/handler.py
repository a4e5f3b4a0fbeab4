"""The ``$connect`` authorizer: checks the token and returns a policy and the identity."""

from __future__ import annotations

import os
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext
from jwt import PyJWKClient

from cicada.authorization import ForbiddenOrigin, TokenVerifier
from cicada.errors import Unauthorized
from cicada.settings import AuthorizerSettings
from cicada.telemetry import logger

settings = AuthorizerSettings.read(os.environ)
verifier = TokenVerifier(
    PyJWKClient(settings.jwks_url, cache_keys=True, lifespan=3600, timeout=3),
    issuer=settings.jwt_issuer,
    audience=settings.jwt_audience,
    origins=settings.origins(),
    tenant_claim=settings.tenant_claim or None,
)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Allow a connection, deny a wrong origin (403), refuse an invalid token (401)."""
    try:
        identity = verifier.identify(event)
    except ForbiddenOrigin as error:
        logger.warning("connection denied", extra={"why": str(error)})
        return _policy("Deny", "denied", event["methodArn"])
    except Unauthorized as error:
        logger.info("connection refused", extra={"why": str(error)})
        raise Exception("Unauthorized") from None
    return _policy("Allow", identity.subject, event["methodArn"]) | {
        "context": {
            "subject": identity.subject,
            "expires_at": str(identity.expires_at),
            **({} if identity.tenant is None else {"tenant": identity.tenant}),
        }
    }


def _policy(effect: str, principal: str, arn: str) -> dict[str, Any]:
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": arn}
    return {"principalId": principal, "policyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
