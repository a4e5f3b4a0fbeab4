"""Commands of administrators, against a table, a bucket and a user pool as their stand-ins speak."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cicada_cli.main import main
from tests.wire.issuer_service import SignInService
from tests.wire.local_services import Services

Run = Callable[..., Any]


@contextmanager
def table_and_bucket(services: Services, table: str, bucket: str) -> Iterator[None]:
    """The stores that a deployment would have made; the table goes at the end."""
    dynamodb = services.client("dynamodb")
    dynamodb.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    services.client("s3").create_bucket(Bucket=bucket)
    yield
    dynamodb.delete_table(TableName=table)


def runner(
    command: str,
    service: SignInService,
    stores: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    always_json: tuple[str, ...] = (),
) -> Run:
    """Runs the actions of a command, and returns what it says: as data with ``--json``, and for some actions always."""
    table, bucket = stores
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": service.services.endpoint_url,
        "CICADA_REQUESTS_TABLE": table,
        "CICADA_INDEX_BUCKET": bucket,
    }.items():
        monkeypatch.setenv(name, value)

    def run_one(*words: str, status: int = 0) -> Any:
        capsys.readouterr()
        assert main([command, *words, "--user-pool", service.pool_id]) == status
        told = capsys.readouterr()
        if status:
            return told.err
        if "--json" not in words and words[0] not in always_json:
            return told.out
        return [*map(json.loads, told.out.splitlines())] if words[0] == "list" else json.loads(told.out)

    return run_one
