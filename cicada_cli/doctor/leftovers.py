"""Remains of an earlier deployment with the same prefix: names that are in use, and data that is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from cicada_cli.doctor.calls import Calls
from cicada_cli.doctor.findings import Finding, Reporter

MAX_PAGES = 20
"""Of one listing: a thousand names, or more."""
POOLS_A_PAGE = 60
"""The most that ListUserPools gives."""
FUNCTIONS = (
    *("retrieve", "index-document", "get-document-summary", "extract-citations", "graph-query", "facets"),
    "enrich-schema",
)
"""After the prefix: the functions for other systems have names of their own."""
RULES = {"recovery-sweep": "Answering", "index-maintenance": "Answering", "uploads": "Ingest"}
LOG_GROUPS = {"answer": "Answering", "ingest": "Ingest"}
"""After ``/aws/vendedlogs/states/<prefix>-``, and the stack that makes each."""


def check_names(calls: Calls, prefix: str, stacks: Collection[str]) -> Iterable[Finding]:
    """Names of resources of stacks that do not exist: the creation of such a stack would fail."""
    taken = [
        *(("function", name, "Integrators") for name in _functions(calls, prefix)),
        *(("log group", name, part) for name, part in _log_groups(calls, prefix)),
        *(("rule", name, part) for name, part in _rules(calls, prefix)),
        *(("state machine", name, "Ingest") for name in _machines(calls, prefix)),
    ]
    found = [(kind, name, part) for kind, name, part in taken if f"{prefix}-{part}" not in stacks]
    for kind, name, part in found:
        yield Reporter("leftovers", name).problem(
            f"this {kind} exists without its stack {prefix}-{part}: the deployment would fail",
            f"delete the {kind}, or choose another stackPrefix",
        )
    if not found:
        yield Reporter("leftovers", f"{prefix}-*").ok("all names that a deployment needs are free")


def check_kept_data(calls: Calls, prefix: str, outputs: Mapping[str, str]) -> Iterable[Finding]:
    """Buckets and tables that outlived their stack: they are billed, and a new deployment has its own."""
    begins = f"{prefix}-data-index".lower()
    buckets = (str(bucket["Name"]) for bucket in calls("s3", "ListBuckets").get("Buckets", ()))
    for name in buckets:
        if name.startswith(begins) and name != outputs.get("IndexBucket"):
            yield Reporter("leftovers", name).warning(
                "a bucket of an earlier deployment: it is billed, and no stack uses it",
                "delete it when its index is no longer needed",
            )
    tables = (
        str(name)
        for page in _pages(calls, "dynamodb", "ListTables", "ExclusiveStartTableName", "LastEvaluatedTableName")
        for name in page.get("TableNames", ())
    )
    for name in tables:
        if name.startswith(f"{prefix}-Data-Requests") and name != outputs.get("RequestsTable"):
            yield Reporter("leftovers", name).warning(
                "a table of an earlier deployment: it is billed, and no stack uses it",
                "delete it when its profiles and answers are no longer needed",
            )


def check_user_pools(
    calls: Calls, prefix: str, domain: str, stacks: Collection[str], outputs: Mapping[str, str]
) -> Iterable[Finding]:
    """User pools that outlived their stack, and a sign-in domain that is in use."""
    ours = outputs.get("UserPoolId")
    for page in _pages(calls, "cognito-idp", "ListUserPools", "NextToken", "NextToken", MaxResults=POOLS_A_PAGE):
        for pool in page.get("UserPools", ()):
            if pool.get("Name") == prefix and pool["Id"] != ours:
                yield Reporter("leftovers", str(pool["Id"])).warning(
                    "a user pool of an earlier deployment: a new deployment does not use its users",
                    "delete it when its users are no longer needed",
                )
    if f"{prefix}-SignIn" in stacks:
        return
    owner = calls("cognito-idp", "DescribeUserPoolDomain", Domain=domain).get("DomainDescription", {}).get("UserPoolId")
    if owner is not None:
        delete = f"aws cognito-idp delete-user-pool-domain --domain {domain} --user-pool-id {owner}"
        yield Reporter("leftovers", domain).problem(
            f"the user pool {owner} uses this sign-in domain: the creation of the stack {prefix}-SignIn would fail",
            f"{delete}, or set auth.domainPrefix",
        )


def _functions(calls: Calls, prefix: str) -> Iterator[str]:
    wanted = {f"{prefix}-{name}" for name in FUNCTIONS}
    for page in _pages(calls, "lambda", "ListFunctions", "Marker", "NextMarker"):
        yield from sorted(wanted & {str(one["FunctionName"]) for one in page.get("Functions", ())})


def _log_groups(calls: Calls, prefix: str) -> Iterator[tuple[str, str]]:
    begins = f"/aws/vendedlogs/states/{prefix}-"
    found = calls("logs", "DescribeLogGroups", logGroupNamePrefix=begins).get("logGroups", ())
    names = {str(group["logGroupName"]) for group in found}
    return ((f"{begins}{name}", part) for name, part in LOG_GROUPS.items() if f"{begins}{name}" in names)


def _rules(calls: Calls, prefix: str) -> Iterator[tuple[str, str]]:
    found = calls("events", "ListRules", NamePrefix=f"{prefix}-").get("Rules", ())
    names = {str(rule["Name"]) for rule in found}
    return ((f"{prefix}-{name}", part) for name, part in RULES.items() if f"{prefix}-{name}" in names)


def _machines(calls: Calls, prefix: str) -> Iterator[str]:
    for page in _pages(calls, "stepfunctions", "ListStateMachines", "nextToken", "nextToken"):
        yield from (str(one["name"]) for one in page.get("stateMachines", ()) if one["name"] == f"{prefix}-ingest")


def _pages(
    calls: Calls, service: str, operation: str, asks: str, told: str, **params: Any
) -> Iterator[Mapping[str, Any]]:
    token: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        page = calls(service, operation, **params, **token)
        yield page
        if not page.get(told):
            return
        token = {asks: str(page[told])}
