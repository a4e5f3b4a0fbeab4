"""The app synthesised with three kinds of settings, and with others that tests name: each once, for all workers."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from stacks.context import parse
from tests.template.templates import ROOT, UNSTAGED, Synthesis, synthesise

AUTH = {"mode": "oidc", "issuer": "https://issuer.example.org/", "audience": "cicada"}


@pytest.fixture(scope="session")
def shipped_settings() -> dict[str, Any]:
    """What cdk.json ships with."""
    settings: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]["cicada"]
    return settings


@pytest.fixture(scope="session")
def local_settings() -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((ROOT / "cdk.local.json").read_text())
    return settings


@pytest.fixture(scope="session")
def full_settings(shipped_settings: dict[str, Any]) -> dict[str, Any]:
    """Every option turned away from its default."""
    return shipped_settings | {
        "stackPrefix": "Other",
        "auth": AUTH
        | {"jwksUrl": "https://keys.example.org/", "allowedOrigins": ["https://a.example", "https://b.example"]}
        | {"tenantClaim": "org_id", "clientId": "cicada-page", "scopes": ["openid", "offline_access"]}
        | {"groupsClaim": "roles", "requiredGroups": ["readers", "Cicada admins"], "tokenInUrl": True},
        "models": {
            "generationModelId": "global.anthropic.claude-haiku-4-5-20251001-v1:0",
            "directModelId": "eu.amazon.nova-micro-v1:0",
            "embeddingModelId": "eu.cohere.embed-v4:0",
            "embeddingDimensions": 1536,
            "destinationRegions": ["eu-south-9"],
            "directMaxTokens": 256,
            "temperature": None,
            "topP": 0.9,
        },
        "retrieval": {"topK": 7, "minScore": 0.25, "promptPassages": 5, "engine": "s3vectors", "engineBudgetS": 1.5},
        "budget": {"requestTimeS": 120, "requestTokens": 60000, "requestCostUsd": 0.1},
        "cache": {
            "enabled": False,
            "sharing": "tenant",
            "ttlDays": 2,
            "maxEntries": 50,
            "replayThreshold": 0.95,
            "nearThreshold": 0.8,
        },
        "conversation": {"enabled": False, "maxTurns": 3, "maxTokens": 500, "maxAgeHours": 1},
        "profiles": {
            "maxProfiles": 20,
            "maxFields": 10,
            "maxHistoryEntries": 12,
            "maxRecordKib": 256,
            "confirmSeconds": 120,
            "deletedKeptDays": 2,
            "maxDeleted": 30,
            "maxDeletedHistoryEntries": 5,
        },
        "page": {
            "signIn": True,
            "domainName": "ask.example.org",
            "certificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012",
            "connectOrigins": ["https://tokens.example.org"],
            "examples": ["Who locked the boathouse?"],
        },
        "http": {"enabled": True, "allowedOrigins": ["https://app.example.org"], "concurrency": 5},
        "recovery": {"sweepMinutes": 1},
        "throttling": {"ratePerS": 5, "burst": 7},
        "limits": {"answerConcurrency": 10, "tableReadUnits": 100, "tableWriteUnits": 200},
        "access": {"default": "nobody", "collections": {"script": ["readers"]}},
        "uploads": {
            "uploaders": {"script": ["readers"], "*": ["Cicada admins"]},
            "maxFileMb": 8,
            "maxDocuments": 100,
            "formSeconds": 60,
            "declarations": True,
        },
        "usageLimits": {"user": {"requestsMinute": 6, "usdDay": 2.5}, "groups": {"readers": {"usdMonth": 100}}},
        "retentionDays": 1,
        "logRetentionDays": 14,
        "logLevel": "DEBUG",
        "onDelete": "destroy",
        "pointInTimeRecovery": True,
        "replication": {
            "bucketArn": "arn:aws:s3:::copies-of-other",
            "keyArn": "arn:aws:kms:eu-west-1:123456789012:key/12345678-1234-1234-1234-123456789012",
        },
        "customerManagedKey": True,
        "alarmEmail": "operator@example.org",
        "dashboard": False,
        "objectives": {
            "answersMissingShare": 0.01,
            "answersFellBackShare": 0.5,
            "firstTextS": 4.0,
            "usdDay": 50.0,
            "leastEvents": 5,
            "quotaShare": 0.7,
        },
        "runbooks": "https://wiki.example.org/runbooks",
        "createApiLoggingRole": False,
        "tags": {"team": "reading"},
    }


@pytest.fixture(scope="session")
def make_with(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[..., Synthesis]:
    """Synthesises with some settings and what `cdk -c` adds to the context."""
    own = tmp_path_factory.getbasetemp()
    shared = (own if worker_id == "master" else own.parent) / "syntheses"
    shared.mkdir(exist_ok=True)

    def synthesised(settings: dict[str, Any], **context: Any) -> Synthesis:
        name = hashlib.sha256(json.dumps([settings, context], sort_keys=True).encode()).hexdigest()[:16]
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (shared / name / "manifest.json").exists():
                return Synthesis(shared / name, parse(settings, source="the test").stack_prefix)
            return synthesise(settings, shared / name, more_context=context)

    return synthesised


@pytest.fixture(scope="session")
def make(make_with: Callable[..., Synthesis]) -> Callable[..., Synthesis]:
    """The functions' packages, 100 MB, are not copied beside the templates, but read where they were built."""
    return partial(make_with, **UNSTAGED)


@pytest.fixture(scope="session")
def make_templates(make: Callable[..., Synthesis]) -> Callable[..., dict[str, dict[str, Any]]]:
    """The templates alone, by the stacks' names."""
    return lambda settings, **context: make(settings, **context).templates()


@pytest.fixture(scope="session")
def shipped(make_with: Callable[..., Synthesis], shipped_settings: dict[str, Any]) -> Synthesis:
    return make_with(shipped_settings)


@pytest.fixture(scope="session")
def local(make_with: Callable[..., Synthesis], local_settings: dict[str, Any]) -> Synthesis:
    return make_with(local_settings)


@pytest.fixture(scope="session")
def full(make_with: Callable[..., Synthesis], full_settings: dict[str, Any]) -> Synthesis:
    return make_with(full_settings)


@pytest.fixture(scope="session", params=["shipped", "local", "full"])
def each(request: pytest.FixtureRequest) -> Synthesis:
    """Each of the three."""
    synthesis: Synthesis = request.getfixturevalue(request.param)
    return synthesis
