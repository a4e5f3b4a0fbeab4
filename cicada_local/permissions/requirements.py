"""What a request needs to be allowed: IAM's actions, the resources that they are on, and the condition keys.

Source: Service Authorization Reference, and the services' guides where one operation needs several actions. Any other
operation needs ``<service>:<operation>`` on ``*``, which only a policy for all resources allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree

from cicada_local.bedrock.catalogue import PROFILES
from cicada_local.calls import Call
from cicada_local.permissions.policies import Required
from cicada_local.permissions.resources import key_of_bucket, key_of_table
from cicada_local.places import ACCOUNT_ID, REGION

CONDITION_KEYS = frozenset(
    {
        "aws:principalaccount",
        "aws:principalarn",
        "aws:principaltype",
        "aws:requestedregion",
        "aws:securetransport",
        "aws:sourceaccount",
        "aws:sourcearn",
        "aws:username",
        "bedrock:inferenceprofilearn",
        "kms:viaservice",
        "s3:delimiter",
        "s3:if-none-match",
        "s3:max-keys",
        "s3:prefix",
        "s3:tlsversion",
    }
)
"""The condition keys that are filled in, in lower case. A statement that needs another one does not match."""

DESTINATIONS: Mapping[str, tuple[str, ...]] = {
    "us": ("us-east-1", "us-east-2", "us-west-2"),
    "global": ("", REGION),
}
"""Where the inference profiles that can be called from this Region route to; the empty Region stands for all."""


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    call: Call
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The body as a JSON object; empty if it is none."""
        try:
            read = json.loads(self.body or b"{}")
        except ValueError:
            return {}
        return read if isinstance(read, dict) else {}


def asked(call: Call, raw_path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    """A request, taken apart."""
    path, _, query = raw_path.partition("?")
    return Asked(call, unquote(path), dict(parse_qsl(query, keep_blank_values=True)), headers, body)


def requirements(request: Asked) -> list[Required]:
    """What a request needs; nothing for what everybody may ask."""
    found = _SERVICES.get(request.call.service, _others)
    return list(found(request))


def arn(service: str, resource: str) -> str:
    """An ARN of this account and Region."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT_ID}:{resource}"


def _named(service: str, kind: str, name: str) -> str:
    """The ARN of what a request names by its name or its ARN."""
    return name if name.startswith("arn:") else arn(service, f"{kind}{name}")


# --- DynamoDB ---

_READS = ("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems", "ConditionCheckItem")
_DESCRIBES = ("DescribeTable", "DescribeTimeToLive", "ListTagsOfResource", "DescribeContinuousBackups")


def _dynamodb(request: Asked) -> Iterator[Required]:
    operation, document = request.call.operation, request.document
    if operation == "ListTables":
        yield Required("dynamodb:ListTables", "*")
        return
    for action, table, index in _on_tables(operation, document):
        table_arn = _named("dynamodb", "table/", table)
        yield Required(f"dynamodb:{action}", f"{table_arn}/index/{index}" if index else table_arn)
        key = None if action in _DESCRIBES else key_of_table(table_arn.rpartition("/")[2])
        if key is not None:
            yield from (_with_key(key, use, "dynamodb") for use in _uses_of_table(action))


def _on_tables(operation: str, document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Action, table and index, for each table that an operation is on."""
    match operation:
        case "BatchGetItem" | "BatchWriteItem":
            yield from ((operation, table, "") for table in document.get("RequestItems", {}))
        case "TransactGetItems":
            yield from (("GetItem", item["Get"]["TableName"], "") for item in document.get("TransactItems", ()))
        case "TransactWriteItems":
            for item in document.get("TransactItems", ()):
                for kind, asked_for in item.items():
                    action = "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item"
                    yield action, asked_for["TableName"], ""
        case _:
            index = document.get("IndexName", "") if operation in ("Query", "Scan") else ""
            yield operation, document.get("TableName", "*"), index


def _uses_of_table(action: str) -> tuple[str, ...]:
    """What DynamoDB does with a customer's key on behalf of the caller."""
    return ("Decrypt",) if action in _READS else ("Decrypt", "Encrypt", "GenerateDataKey")


def _with_key(key: str, use: str, service: str) -> Required:
    return Required(f"kms:{use}", key, {"kms:viaservice": (f"{service}.{REGION}.amazonaws.com",)})


# --- S3 ---

_OBJECT_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "GetObject": ("GetObject",),
    "HeadObject": ("GetObject",),
    "PutObject": ("PutObject",),
    "DeleteObject": ("DeleteObject",),
    "CopyObject": ("PutObject",),
    "CreateMultipartUpload": ("PutObject",),
    "UploadPart": ("PutObject",),
    "CompleteMultipartUpload": ("PutObject",),
    "AbortMultipartUpload": ("AbortMultipartUpload",),
    "ListParts": ("ListMultipartUploadParts",),
}
_BUCKET_ACTIONS = {
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "HeadBucket": "ListBucket",
    "DeleteBucketCors": "PutBucketCORS",
    "GetBucketVersions": "ListBucketVersions",
    "GetBucketUploads": "ListBucketMultipartUploads",
}
_KEY_USES: Mapping[str, tuple[str, ...]] = {
    "GetObject": ("Decrypt",),
    "HeadObject": ("Decrypt",),
    "PutObject": ("GenerateDataKey",),
    "CopyObject": ("Decrypt", "GenerateDataKey"),
    "CreateMultipartUpload": ("GenerateDataKey",),
    "UploadPart": ("Decrypt", "GenerateDataKey"),
    "CompleteMultipartUpload": ("Decrypt", "GenerateDataKey"),
}
_LISTED_BY = ("prefix", "delimiter", "max-keys")


def _s3(request: Asked) -> Iterator[Required]:
    operation, (bucket, _, key) = request.call.operation, request.call.resource.partition("/")
    if not bucket:
        yield Required("s3:ListAllMyBuckets", "*")
    elif key:
        yield from _on_object(request, operation, f"arn:aws:s3:::{bucket}/{key}")
        master = key_of_bucket(bucket)
        if master is not None:
            yield from (_with_key(master, use, "s3") for use in _KEY_USES.get(operation, ()))
    elif operation == "DeleteObjects":
        yield from (Required(action, f"arn:aws:s3:::{bucket}/{name}") for action, name in _deleted(request.body))
    else:
        context = {f"s3:{name}": (request.query[name],) for name in _LISTED_BY if name in request.query}
        yield Required(f"s3:{_BUCKET_ACTIONS.get(operation, operation)}", f"arn:aws:s3:::{bucket}", context)


def _on_object(request: Asked, operation: str, object_arn: str) -> Iterator[Required]:
    version = "Version" if "versionId" in request.query and operation in _OF_VERSIONS else ""
    headers = request.headers
    # CopyObject and the parts of an upload take no such condition: a policy that demands it refuses them.
    conditional = operation in _WRITES and "If-None-Match" in headers
    context = {"s3:if-none-match": (headers["If-None-Match"],)} if conditional else {}
    for action in _OBJECT_ACTIONS.get(operation, (operation,)):
        yield Required(f"s3:{action}{version}", object_arn, context)
    if operation in _WRITES and "If-Match" in headers:
        yield Required("s3:GetObject", object_arn)  # whether it is unchanged says something of it
    if operation in ("PutObject", "CreateMultipartUpload", "CopyObject"):
        yield from (Required(f"s3:{action}", object_arn) for name, action in _BY_HEADER.items() if name in headers)
    if operation == "CopyObject":
        source = unquote(headers["x-amz-copy-source"]).lstrip("/").partition("?")[0]
        yield Required("s3:GetObject", f"arn:aws:s3:::{source}")


_WRITES = ("PutObject", "CompleteMultipartUpload")
_OF_VERSIONS = ("GetObject", "HeadObject", "DeleteObject")
_BY_HEADER = {"x-amz-tagging": "PutObjectTagging", "x-amz-acl": "PutObjectAcl"}


def _deleted(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        document = ElementTree.fromstring(body)  # noqa: S314 - moto reads it likewise
    except ElementTree.ParseError:
        return
    for element in document.iter():
        if element.tag.rpartition("}")[2] == "Object":
            named = {part.tag.rpartition("}")[2]: part.text or "" for part in element}
            yield ("s3:DeleteObjectVersion" if "VersionId" in named else "s3:DeleteObject"), named.get("Key", "")


# --- functions, workflows, connections ---


def _lambda(request: Asked) -> Iterator[Required]:
    if request.call.operation == "Invoke":
        qualifier = request.query.get("Qualifier", "")
        function = arn("lambda", f"function:{request.call.resource}")
        yield Required("lambda:InvokeFunction", f"{function}:{qualifier}" if qualifier else function)
    else:
        yield from _others(request)


def _states(request: Asked) -> Iterator[Required]:
    document = request.document
    named = document.get("stateMachineArn") or document.get("executionArn") or "*"
    yield Required(f"states:{request.call.operation}", str(named))


def _connections(request: Asked) -> Iterator[Required]:
    _, _, api_id, stage, *_ = request.path.split("/")
    method = {"PostToConnection": "POST", "GetConnection": "GET"}.get(request.call.operation, "DELETE")
    yield Required(
        "execute-api:ManageConnections",
        arn("execute-api", f"{api_id}/{stage}/{method}/@connections/{request.call.resource}"),
    )


# --- models and agents ---

_MODEL_ACTIONS = {
    "Converse": "bedrock:InvokeModel",
    "ConverseStream": "bedrock:InvokeModelWithResponseStream",
    "InvokeModel": "bedrock:InvokeModel",
    "InvokeModelWithResponseStream": "bedrock:InvokeModelWithResponseStream",
}


def model_requirements(action: str, model_id: str) -> Iterator[Required]:
    """What the call of a model needs; of one through an inference profile, the model in each Region as well."""
    name = model_id.rpartition("/")[2]
    geography, _, model = name.partition(".")
    if geography not in PROFILES:
        yield Required(action, f"arn:aws:bedrock:{REGION}::foundation-model/{name}")
        return
    profile = arn("bedrock", f"inference-profile/{name}")
    yield Required(action, profile)
    for region in DESTINATIONS.get(geography, ()):
        yield Required(
            action, f"arn:aws:bedrock:{region}::foundation-model/{model}", {"bedrock:inferenceprofilearn": (profile,)}
        )


def _bedrock(request: Asked) -> Iterator[Required]:
    if request.call.operation == "ApplyGuardrail":
        yield Required("bedrock:ApplyGuardrail", _named("bedrock", "guardrail/", request.call.resource))
        return
    yield from model_requirements(_MODEL_ACTIONS[request.call.operation], request.call.resource)
    guardrail = request.headers.get("X-Amzn-Bedrock-GuardrailIdentifier")
    if guardrail is None and b'"guardrailConfig"' in request.body:
        guardrail = (request.document.get("guardrailConfig") or {}).get("guardrailIdentifier")
    if guardrail:
        yield Required("bedrock:ApplyGuardrail", _named("bedrock", "guardrail/", guardrail))


def _agents(request: Asked) -> Iterator[Required]:
    _, _, agent_id, _, alias_id, *_ = request.path.split("/")
    yield Required("bedrock:InvokeAgent", arn("bedrock", f"agent-alias/{agent_id}/{alias_id}"))


def _harness(request: Asked) -> Iterator[Required]:
    harness = request.query.get("harnessArn", "*")
    qualifier = request.query.get("qualifier", "")
    for resource in (harness, *([f"{harness}/harness-endpoint/{qualifier}"] if qualifier else [])):
        # A harness runs on AgentCore's runtime, whose action is asked for besides.
        yield Required("bedrock-agentcore:InvokeHarness", resource)
        yield Required("bedrock-agentcore:InvokeAgentRuntime", resource)


# --- search engines ---

_WITH_METADATA = {"QueryVectors": ("returnMetadata", "filter"), "ListVectors": ("returnMetadata", "returnData")}


def _s3vectors(request: Asked) -> Iterator[Required]:
    document, operation = request.document, request.call.operation
    bucket = document.get("vectorBucketArn") or (
        arn("s3vectors", f"bucket/{document['vectorBucketName']}") if "vectorBucketName" in document else "*"
    )
    index = document.get("indexArn") or (f"{bucket}/index/{document['indexName']}" if "indexName" in document else "")
    yield Required(f"s3vectors:{operation}", index or bucket)
    if any(document.get(name) for name in _WITH_METADATA.get(operation, ())):
        yield Required("s3vectors:GetVectors", index)


def _kendra(request: Asked) -> Iterator[Required]:
    yield Required(f"kendra:{request.call.operation}", _named("kendra", "index/", request.document.get("IndexId", "*")))


# --- what functions may call besides ---


def _in_json(service: str, kind: str, member: str) -> Callable[[Asked], Iterator[Required]]:
    def named(request: Asked) -> Iterator[Required]:
        value = request.document.get(member)
        resource = "*" if not value else _named(service, kind, str(value))
        yield Required(f"{service}:{request.call.operation}", resource)

    return named


def _ssm(request: Asked) -> Iterator[Required]:
    document = request.document
    for name in document.get("Names") or [document.get("Name") or document.get("Path") or "*"]:
        yield Required(f"ssm:{request.call.operation}", _named("ssm", "parameter/", name.lstrip("/")))


def _sqs(request: Asked) -> Iterator[Required]:
    name = str(request.document.get("QueueUrl", "*")).rpartition("/")[2]
    operation = request.call.operation.removesuffix("Batch")  # IAM has no actions of batches
    yield Required(f"sqs:{operation}", name if name == "*" else arn("sqs", name))


def _sts(request: Asked) -> Iterator[Required]:
    if request.call.operation != "GetCallerIdentity":
        form = dict(parse_qsl(request.body.decode("utf-8", "replace")))
        yield Required(f"sts:{request.call.operation}", form.get("RoleArn", "*"))


def _others(request: Asked) -> Iterator[Required]:
    yield Required(f"{request.call.service}:{request.call.operation}", "*")


_SERVICES: Mapping[str, Callable[[Asked], Iterator[Required]]] = {
    "apigatewaymanagementapi": _connections,
    "bedrock-agent-runtime": _agents,
    "bedrock-agentcore": _harness,
    "bedrock-runtime": _bedrock,
    "cognito-idp": _in_json("cognito-idp", "userpool/", "UserPoolId"),
    "dynamodb": _dynamodb,
    "kendra": _kendra,
    "kms": _in_json("kms", "key/", "KeyId"),
    "lambda": _lambda,
    "logs": _in_json("logs", "log-group:", "logGroupName"),
    "s3": _s3,
    "s3vectors": _s3vectors,
    "secretsmanager": _in_json("secretsmanager", "secret:", "SecretId"),
    "ssm": _ssm,
    "stepfunctions": _states,
    "sqs": _sqs,
    "sts": _sts,
}
