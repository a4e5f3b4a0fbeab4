"""The deployed thing: a local cloud for each of xdist's workers, with real tokens."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.model_watch import VARIABLE, ModelWatch
from tests.e2e.plain_client import Socket
from tests.e2e.searched_cloud import SearchedCloud
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer

SAMPLES = Path(__file__).parents[2] / "samples" / "script"
DENIED, BLOCKED = "boondoggle", "The guardrail does not let me answer that."
"""A word that no other test says, and what the deployment's guardrail says of it."""

OIDC = {
    "mode": "oidc",
    "issuer": ISSUER,
    "audience": AUDIENCE,
    "jwksUrl": "https://issuer.example/jwks.json",
    "allowedOrigins": [],
    "groupsClaim": "groups",
}
"""The settings of a deployment that takes the test issuer's tokens."""

LONGEST_FIRST = (
    *("test_readme_deployment", "test_operations", "test_chaos", "test_documents", "test_campaign"),
    *("test_benchmarks_cloud", "test_sign_in", "test_answers", "test_wheel", "test_agents_classic"),
    *("test_agents_harness", "test_resuming", "test_doctor", "test_clients", "test_strategies", "test_recovery"),
    *("test_agents", "test_load", "test_page_wire", "test_page_answer", "test_page_access", "test_page_asker"),
    "test_page_settings",
)
"""Modules by the time that they take. Those that are not named take less."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest modules, so that xdist's workers, which take a module at a time, end together."""
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    ours.sort(key=lambda item: places.get(item.path.stem, len(places)))
    items[:] = [*(item for item in items if here not in item.path.parents), *ours]


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


@pytest.fixture(scope="session")
def watch() -> Iterator[ModelWatch]:
    """Sees every call that the functions make to the models."""
    watch = ModelWatch()
    yield watch
    watch.close()


@pytest.fixture(scope="session")
def deployment(issuer: Issuer, watch: ModelWatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchedCloud]:
    home = tmp_path_factory.mktemp("cloud")
    settings = {
        "auth": OIDC,
        "page": {"signIn": False},  # the issuer has no pages; test_sign_in.py has one that has
        "ingest": {"quietS": 5},
        "knowledge": {"enabled": False},  # the plain chain; test_campaign.py has a deployment with it
        "guardrail": {"create": {"words": [DENIED], "blockedMessage": BLOCKED}},
    }
    script = [SAMPLES / "episode-1.jsonl", SAMPLES / "episode-2.jsonl"]
    environment = {"JWKS_URL": issuer.jwks_url, VARIABLE: watch.url}
    with SearchedCloud(home, settings=settings, load=script, environment=environment) as cloud:
        watch.forward_to(cloud.endpoint_url)
        yield cloud
        cloud.forbid_texts(*issuer.tokens)
        cloud.forbid_names(*issuer.subjects)


@pytest.fixture
def cloud(deployment: SearchedCloud) -> Iterator[SearchedCloud]:
    """The deployment, without a fault of an earlier test, or what it has taught the circuit breakers."""
    deployment.disarm()
    yield deployment
    deployment.disarm()
    _close_breakers(deployment)


@pytest.fixture
def user() -> str:
    """An asker of this test's own: no earlier answer of theirs is kept."""
    return f"mara-{uuid.uuid4()}"


@pytest.fixture
def connect(cloud: SearchedCloud, issuer: Issuer, user: str) -> Iterator[Any]:
    """Open sockets, by user: the test's own if none is named."""
    with contextlib.ExitStack() as opened:

        def open_socket(subject: str = user, **claims: Any) -> Socket:
            token = issuer.token(subject, **claims)
            return opened.enter_context(Socket(cloud.websocket_url, token))

        yield open_socket


def _close_breakers(cloud: SearchedCloud) -> None:
    """Forget every failure; where that opened a breaker, end the workers too, which remember what they have read."""
    dynamodb = cloud.client("dynamodb")
    (table,) = dynamodb.list_tables()["TableNames"]
    found = dynamodb.query(
        TableName=table,
        KeyConditionExpression="pk = :breakers",
        ExpressionAttributeValues={":breakers": {"S": "breakers"}},
    )["Items"]
    for item in found:
        dynamodb.delete_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})
    if any("open_since_ms" in item for item in found):
        for name, figures in cloud.functions().items():
            if "Answer" in "".join(name.split("-")[2:3]):
                for pid in figures["processes"]:
                    cloud.control("DELETE", f"functions/{name}/processes/{pid}")
