"""Calls of AWS services: whose they are, told from the request as it came in, and how many there were."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote

from aiohttp import web

_KEPT = 20_000
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")
_MODEL = re.compile(r"^/model/([^/]+)/(converse-stream|converse|invoke-with-response-stream|invoke)$")
_GUARDRAIL = re.compile(r"^/guardrail/([^/]+)/version/[^/]+/apply$")
_AGENT = re.compile(r"^/agents/([^/]+)/agentAliases/[^/]+/sessions/[^/]+/text$")
_HARNESS = "/harnesses/invoke"
_FUNCTION = re.compile(r"^/2015-03-31/functions/([^/]+)/invocations$")
_RESOURCE = re.compile(rb'"(?:TableName|stateMachineArn|executionArn|logGroupName|indexArn|IndexId)"\s*:\s*"([^"]+)"')
_CONNECTION = re.compile(r"/@connections/([^/]+)$")

_MODEL_OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "invoke": "InvokeModel",
    "invoke-with-response-stream": "InvokeModelWithResponseStream",
}
_CONNECTION_OPERATIONS = {"POST": "PostToConnection", "GET": "GetConnection", "DELETE": "DeleteConnection"}
_TARGETS = {  # the prefix of X-Amz-Target, before any version
    "DynamoDB": "dynamodb",
    "AWSStepFunctions": "stepfunctions",
    "Logs": "logs",
    "AmazonSSM": "ssm",
    "AWSKendraFrontendService": "kendra",
    "GraniteServiceVersion20100801": "cloudwatch",
}


QUOTA_TOKENS = web.ResponseKey("quota_tokens", int)
"""Under which a model's response tells how many tokens of the quota the call took."""


@dataclass(frozen=True)
class Call:
    """What a request asks of which service."""

    service: str
    """The service's name in boto3, for example ``dynamodb``."""
    operation: str
    """The API's name of the operation, for example ``PutItem``; the HTTP method where it is not known."""
    resource: str = ""
    """The table, bucket and key, function, model, agent, harness or state machine that it names."""
    caller: str = ""
    """Who signed it: a function's name, ``states`` for the workflow, a user's name, or another access key id."""


@dataclass
class Entry:
    """A call and what becomes of it."""

    call: Call
    at: float
    """When it came in, seconds since the epoch."""
    status: int | None = None
    """The answer's HTTP status; None while there is none."""
    took_s: float | None = None


class CallLog:
    """Counts calls by service and operation, and keeps the last of them one by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._last: deque[Entry] = deque(maxlen=_KEPT)

    def begin(self, call: Call) -> Entry:
        """Count a call that has just come in; :meth:`end` takes what this returns."""
        entry = Entry(call, time.time())
        with self._lock:
            self._counts[call.service, call.operation] += 1
            self._last.append(entry)
        return entry

    @staticmethod
    def end(entry: Entry, status: int) -> None:
        """Note that a call was answered."""
        entry.status, entry.took_s = status, time.time() - entry.at

    def clear(self) -> None:
        """Begin at nothing."""
        with self._lock:
            self._counts.clear()
            self._last.clear()

    def counts(self) -> dict[str, int]:
        """How many calls of each ``service.operation``."""
        with self._lock:
            return {f"{service}.{operation}": count for (service, operation), count in sorted(self._counts.items())}

    def last(self) -> list[dict[str, Any]]:
        """The calls one by one, oldest first, as plain data: at most the last 20,000."""
        with self._lock:
            kept = list(self._last)
        return [
            {
                **asdict(entry.call),
                "at": entry.at,
                "status": entry.status,
                "tookMs": None if entry.took_s is None else round(entry.took_s * 1000, 2),
            }
            for entry in kept
        ]


def identify_by_path(method: str, raw_path: str, headers: Mapping[str, str]) -> Call | None:
    """Tell what a request asks for if its path says it all, and its body is for nobody else to read; None if not.

    Args:
        method: the HTTP method.
        raw_path: path and query string as sent.
        headers: looked up case-insensitively.
    """
    path, _, query = raw_path.partition("?")
    caller, _ = _signer(headers, query)
    if found := _MODEL.match(path):
        return Call("bedrock-runtime", _MODEL_OPERATIONS[found[2]], unquote(found[1]), caller)
    if found := _GUARDRAIL.match(path):
        return Call("bedrock-runtime", "ApplyGuardrail", unquote(found[1]), caller)
    if found := _AGENT.match(path):
        return Call("bedrock-agent-runtime", "InvokeAgent", unquote(found[1]), caller)
    if path == _HARNESS:
        arn = parse_qs(query).get("harnessArn", [""])[0]
        return Call("bedrock-agentcore", "InvokeHarness", arn.rpartition("/")[2], caller)
    if found := _FUNCTION.match(path):
        return Call("lambda", "Invoke", function_name(unquote(found[1])), caller)
    if found := _CONNECTION.search(path):
        return Call("apigatewaymanagementapi", _CONNECTION_OPERATIONS.get(method, method), unquote(found[1]), caller)
    return None


def identify(method: str, raw_path: str, headers: Mapping[str, str], body: bytes) -> Call:
    """Tell which operation a request to any other service asks for.

    Args:
        method: the HTTP method.
        raw_path: path and query string as sent.
        headers: looked up case-insensitively.
        body: looked into where the protocol puts the operation's or the resource's name there.
    """
    path, _, query = raw_path.partition("?")
    caller, signing_name = _signer(headers, query)
    if target := headers.get("X-Amz-Target"):
        prefix, _, operation = target.partition(".")
        service = _TARGETS.get(prefix.split("_")[0], signing_name or prefix)
        return Call(service, operation, _named_in_json(body), caller)
    if signing_name == "s3vectors":
        return Call(signing_name, path.lstrip("/"), _named_in_json(body), caller)
    if signing_name in ("s3", "") and not _is_form(headers):
        return _s3(method, path, query, headers, caller)
    if action := _action(query, body, headers):
        return Call(signing_name or "sts", action, "", caller)
    return Call(signing_name or "unknown", method, unquote(path), caller)


def _signer(headers: Mapping[str, str], query: str) -> tuple[str, str]:
    """The access key id and the service's signing name; empty for a request that is not signed."""
    signed = _CREDENTIAL.search(headers.get("Authorization", "")) or _CREDENTIAL.search(unquote(query))
    return (signed[1], signed[3]) if signed else ("", "")


def function_name(name_or_arn: str) -> str:
    """The name of a function that is given by name, partial ARN or ARN, with or without a qualifier."""
    parts = name_or_arn.split(":")
    return parts[parts.index("function") + 1] if "function" in parts else parts[0]


def _named_in_json(body: bytes) -> str:
    """The resource that a JSON request names, without parsing all of it: bodies are up to 16 MB."""
    found = _RESOURCE.search(body)
    return found[1].decode() if found else ""


def _is_form(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded")


def _action(query: str, body: bytes, headers: Mapping[str, str]) -> str:
    fields = parse_qs(body.decode("utf-8", "replace")) if _is_form(headers) else parse_qs(query)
    return fields.get("Action", [""])[0]


def _s3(method: str, path: str, query: str, headers: Mapping[str, str], caller: str) -> Call:
    bucket, _, key = unquote(path).lstrip("/").partition("/")
    fields = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if not bucket:
        return Call("s3", "ListBuckets", "", caller)
    if not key:
        return Call("s3", _bucket_operation(method, query, fields), bucket, caller)
    return Call("s3", _object_operation(method, fields, headers), f"{bucket}/{key}", caller)


def _bucket_operation(method: str, query: str, fields: set[str]) -> str:
    if method == "GET" and "list-type=2" in query:
        return "ListObjectsV2"
    if method == "POST" and "delete" in fields:
        return "DeleteObjects"
    configured = sorted(fields - {"x-id"})
    plain = {"GET": "ListObjects", "PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}
    if configured and method in ("GET", "PUT", "DELETE"):
        return f"{method.title()}Bucket{configured[0].title()}"
    return plain.get(method, method)


def _object_operation(method: str, fields: set[str], headers: Mapping[str, str]) -> str:
    if "uploads" in fields:
        return "CreateMultipartUpload"
    if "uploadId" in fields:
        multipart = {"PUT": "UploadPart", "POST": "CompleteMultipartUpload", "DELETE": "AbortMultipartUpload"}
        return multipart.get(method, "ListParts")
    if "tagging" in fields:
        return f"{method.title()}ObjectTagging"
    if method == "PUT" and "x-amz-copy-source" in headers:
        return "CopyObject"
    plain = {"GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
    return plain.get(method, method)
