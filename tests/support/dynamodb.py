"""The requests' table, as the stacks make it, over moto."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws

from cicada.delivery.dynamodb import OPEN_INDEX

TABLE = "requests"


@contextmanager
def requests_table(monkeypatch: pytest.MonkeyPatch, config: Config) -> Iterator[Any]:
    """A client made with ``config`` of a service that has the table :data:`TABLE`."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("dynamodb", config=config)
        client.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
                {"AttributeName": "open_in", "AttributeType": "N"},
                {"AttributeName": "accepted_at_ms", "AttributeType": "N"},
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": OPEN_INDEX,
                    "KeySchema": [
                        {"AttributeName": "open_in", "KeyType": "HASH"},
                        {"AttributeName": "accepted_at_ms", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
        yield client
