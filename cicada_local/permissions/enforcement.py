"""Holds each request to the policies of whoever signed it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from aiohttp import web

from cicada_local.calls import Call
from cicada_local.permissions import refusals
from cicada_local.permissions.conditions import PolicyInvalid
from cicada_local.permissions.policies import Effect, Required, evaluate, speaking_of
from cicada_local.permissions.principals import Principal, Principals, TokenInvalid, role_documents
from cicada_local.permissions.requirements import Asked, asked, requirements
from cicada_local.permissions.resources import function_policy, policy_of
from cicada_local.places import ACCOUNT_ID, REGION

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_ROOT = (f"arn:aws:iam::{ACCOUNT_ID}:root", ACCOUNT_ID)
_TOKEN = "X-Amz-Security-Token"  # noqa: S105 - a header's name
_READ_OBJECT = ("GetObject", "HeadObject")
_REQUEST_CONTEXT = {
    "aws:requestedregion": (REGION,),
    # AWS's own endpoints are spoken to over TLS; that those of this machine are not, is nothing that a policy is for.
    "aws:securetransport": ("true",),
    "s3:tlsversion": ("1.3",),
}


class Enforcement:
    """Identifies callers, and refuses what their policies do not allow."""

    def __init__(self, principals: Principals) -> None:
        self._principals = principals

    def identify(self, call: Call, headers: Mapping[str, str], query: Mapping[str, str]) -> Principal | None:
        """Whose call it is; None for an administrator's.

        Raises:
            TokenInvalid: the credentials are not valid.
        """
        return self._principals.find(call.caller, headers.get(_TOKEN) or query.get(_TOKEN))

    async def guard(
        self, principal: Principal, call: Call, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """Hand a request on, or refuse it."""
        request_parts = asked(call, request.raw_path, request.headers, await _body(request, call))
        refused = self._refusal(principal, request_parts)
        if refused is not None:
            return refused
        response = await handler(request)
        if response.status == 404 and call.service == "s3" and call.operation in _READ_OBJECT:
            return self._hidden(principal, call) or response
        return response

    def refusal(self, principal: Principal, call: Call, raw_path: str) -> web.Response | None:
        """The refusal of a call without headers of its own; None if it is allowed."""
        return self._refusal(principal, asked(call, raw_path, {}, b""))

    def _refusal(self, principal: Principal, request: Asked) -> web.Response | None:
        service = request.call.service
        for required in requirements(request):
            denied, by = decide(principal, required)
            if denied:
                message = refusals.sentence(principal.arn, service, required, denied_by=by)
                logger.warning("%s", message)
                return refusals.access_denied(service, message)
        return None

    @staticmethod
    def _hidden(principal: Principal, call: Call) -> web.Response | None:
        """S3's answer to those who may not list the bucket: not whether an object is there."""
        required = Required("s3:ListBucket", f"arn:aws:s3:::{call.resource.partition('/')[0]}")
        denied, by = decide(principal, required)
        if not denied:
            return None
        return refusals.access_denied("s3", refusals.sentence(principal.arn, "s3", required, denied_by=by))


async def _body(request: web.Request, call: Call) -> bytes:
    """The body, where something in it is of consequence; those of invocations and posts are streamed."""
    if call.service in ("lambda", "apigatewaymanagementapi"):
        return b""
    if call.service == "s3" and call.operation != "DeleteObjects":
        return b""
    return await request.read()


def decide(principal: Principal, required: Required) -> tuple[bool, str | None]:
    """Whether a principal is refused, and the kind of policy that denies it explicitly, if one does."""
    required = replace(required, context={**_REQUEST_CONTEXT, **principal.context, **required.context})
    identity = _identity(principal, required)
    own = policy_of(required.resource)
    named = evaluate((one for one in own if one.names("AWS", principal.named)), required)
    for effect, kind in ((identity, "identity-based"), (named, "resource-based")):
        if effect is Effect.DENY:
            return True, kind
    if required.action.startswith("kms:"):  # a key's policy must allow it, or leave it to the account's policies
        delegated = evaluate((one for one in own if one.names("AWS", _ROOT)), required)
        identity = identity if delegated is Effect.ALLOW else Effect.NOTHING
    return Effect.ALLOW not in (identity, named), None


def _identity(principal: Principal, required: Required) -> Effect:
    try:
        return evaluate(speaking_of(tuple(principal.documents()), required.action), required)
    except PolicyInvalid as error:
        logger.error("a policy of %s cannot be evaluated: %s", principal.arn, error)
        return Effect.DENY


def role_allows(role_arn: str, *required: Required) -> bool:
    """Whether the policies of a role that a service acts in allow all of this."""
    documents = tuple(role_documents(role_arn))
    return all(evaluate(speaking_of(documents, one.action), one) is Effect.ALLOW for one in required)


def service_may_invoke(service: str, function_arn: str, source_arn: str) -> bool:
    """Whether a function's own policy lets a service invoke it for one of its resources.

    Args:
        service: its principal, such as ``apigateway.amazonaws.com``.
        function_arn: the function.
        source_arn: the route, rule or agent for which the service acts.
    """
    required = Required(
        "lambda:InvokeFunction",
        ":".join(function_arn.split(":")[:7]),
        {"aws:sourcearn": (source_arn,), "aws:sourceaccount": (ACCOUNT_ID,)},
    )
    statements = (one for one in function_policy(function_arn) if one.names("Service", (service,)))
    return evaluate(statements, required) is Effect.ALLOW


def everybody_may_invoke_by_url(function_arn: str, auth_type: str) -> bool:
    """Whether a function's own policy lets everybody invoke it through its URL.

    Since October 2025 that takes both actions: AWS Lambda Developer Guide, "Control access to Lambda function URLs".

    Args:
        function_arn: the function.
        auth_type: the URL's.
    """
    needed = (
        Required("lambda:InvokeFunctionUrl", function_arn, {"lambda:functionurlauthtype": (auth_type,)}),
        Required("lambda:InvokeFunction", function_arn, {"lambda:invokedviafunctionurl": ("true",)}),
    )
    statements = [one for one in function_policy(function_arn) if one.names("AWS", ())]
    return all(evaluate(statements, one) is Effect.ALLOW for one in needed)


def service_may(service: str, action: str, resource: str, source_arn: str = "") -> bool:
    """Whether a queue's or topic's own policy lets a service act on it.

    A topic without a policy has the default one, which lets the account's services publish; a queue has none then.

    Args:
        service: its principal, such as ``cloudwatch.amazonaws.com``.
        action: such as ``sns:Publish``.
        resource: the queue's or topic's ARN.
        source_arn: the rule for which the service acts, if it acts for one.
    """
    statements = policy_of(resource)
    if not statements:
        return ":sns:" in resource
    source = {"aws:sourcearn": (source_arn,)} if source_arn else {}
    required = Required(action, resource, {**_REQUEST_CONTEXT, "aws:sourceaccount": (ACCOUNT_ID,), **source})
    return evaluate((one for one in statements if one.names("Service", (service,))), required) is Effect.ALLOW


__all__ = [
    "Enforcement",
    "TokenInvalid",
    "decide",
    "everybody_may_invoke_by_url",
    "role_allows",
    "service_may",
    "service_may_invoke",
]
