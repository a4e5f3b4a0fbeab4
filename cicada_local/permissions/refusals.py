"""Refusals of IAM, written as each service writes them.

Source: IAM User Guide, "Troubleshoot access denied error messages"; botocore's models for each service's protocol.
"""

from __future__ import annotations

import uuid
from xml.sax.saxutils import escape

from aiohttp import web

from cicada_local.permissions.policies import Required
from cicada_local.permissions.principals import TokenInvalid
from cicada_local.places import ACCOUNT_ID

_JSON_1_1 = ("cognito-idp", "kendra", "kms", "logs", "secretsmanager", "ssm")
_JSON_1_0 = ("cloudwatch", "dynamodb", "sqs", "stepfunctions")
_ONCE_QUERY = ("cloudwatch", "sqs")
"""Services whose JSON errors also carry the code that they had in the query protocol."""
_REST_JSON = (
    *("apigatewaymanagementapi", "bedrock-agent-runtime", "bedrock-agentcore", "bedrock-runtime"),
    *("lambda", "s3vectors"),
)
_TOKEN_ERRORS = {  # by code: in JSON
    "InvalidClientTokenId": "UnrecognizedClientException",
    "ExpiredToken": "ExpiredTokenException",
}


def sentence(principal_arn: str, service: str, required: Required, *, denied_by: str | None) -> str:
    """What AWS says of a call that no policy allows, or that a policy denies.

    Args:
        principal_arn: who called.
        service: the called one's name in boto3.
        required: what was not allowed.
        denied_by: ``identity-based`` or ``resource-based`` for an explicit denial; None if nothing allows it.
    """
    resource, action = required.resource, required.action
    if service == "s3":
        resource = f'"{resource}"'
    elif service == "apigatewaymanagementapi":
        resource = resource.replace(ACCOUNT_ID, f"********{ACCOUNT_ID[-4:]}")
    why = (
        f"because no identity-based policy allows the {action} action"
        if denied_by is None
        else f"with an explicit deny in a {denied_by} policy"
        if denied_by.startswith("resource")
        else f"with an explicit deny in an {denied_by} policy"
    )
    return f"User: {principal_arn} is not authorized to perform: {action} on resource: {resource} {why}"


def access_denied(service: str, message: str) -> web.Response:
    """The refusal of a call that is not allowed."""
    if service == "s3" or not _speaks_json(service):
        return _xml(service, 403, "AccessDenied", message)
    return _json(service, "AccessDeniedException", message)


def token_invalid(service: str, error: TokenInvalid) -> web.Response:
    """The refusal of a call whose credentials are not valid."""
    if _speaks_json(service):
        return _json(service, _TOKEN_ERRORS[error.code], f"{error}.")
    if service == "s3":
        wrong = error.code == "InvalidClientTokenId"
        message = (
            "The provided token is malformed or otherwise invalid." if wrong else "The provided token has expired."
        )
        return _xml(service, 400, "InvalidToken" if wrong else error.code, message)
    return _xml(service, 403, error.code, str(error))


def wrongly_signed(service: str, message: str) -> web.Response:
    """The refusal of a call that was signed too early or too late."""
    if _speaks_json(service):
        return _json(service, "InvalidSignatureException", message)
    return _xml(service, 403, "RequestTimeTooSkewed" if service == "s3" else "SignatureDoesNotMatch", message)


def s3_error(status: int, code: str, message: str) -> web.Response:
    """An error of S3."""
    return _xml("s3", status, code, message)


def _speaks_json(service: str) -> bool:
    return service in (*_JSON_1_0, *_JSON_1_1, *_REST_JSON)


def _json(service: str, code: str, message: str) -> web.Response:
    headers = {"x-amzn-RequestId": str(uuid.uuid4())}
    if service in _ONCE_QUERY:
        headers["x-amzn-query-error"] = f"{code.removesuffix('Exception')};Sender"
    if service in _REST_JSON:
        headers["x-amzn-ErrorType"] = code
        member = "Message" if service == "lambda" else "message"
        return web.json_response({member: message}, status=403, headers=headers)
    version = "1.0" if service in _JSON_1_0 else "1.1"
    kind = f"com.amazon.coral.service#{code}" if service == "dynamodb" else code
    member = "Message" if service == "dynamodb" else "message"
    return web.json_response(
        {"__type": kind, member: message},
        status=400,
        headers=headers,
        content_type=f"application/x-amz-json-{version}",
    )


def _xml(service: str, status: int, code: str, message: str) -> web.Response:
    told = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    request_id = uuid.uuid4()
    text = (
        f"<Error>{told}<RequestId>{request_id}</RequestId></Error>"
        if service == "s3"
        else f"<ErrorResponse><Error><Type>Sender</Type>{told}</Error></ErrorResponse>"
    )
    return web.Response(
        status=status, text=f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', content_type="application/xml"
    )
