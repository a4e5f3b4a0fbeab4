"""Tokens of revoked users: the markers in the requests' table, and who is refused by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cicada.delivery.dynamodb import STORE_CONFIG
from cicada.errors import DeliveryUnavailable, Unauthorized
from cicada.identity import Caller
from cicada.revocation import KEPT_S, DynamoDbRevocations, RevocationFault, refuse_revoked
from tests.support.dynamodb import TABLE, requests_table


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with requests_table(monkeypatch, STORE_CONFIG) as client:
        yield client


@pytest.fixture
def revocations(client: Any) -> DynamoDbRevocations:
    return DynamoDbRevocations(client, TABLE)


def caller(issued_at: int | None, subject: str = "mara", tenant: str | None = None) -> Caller:
    return Caller(subject, "c", "f", tenant=tenant, expires_at=9_999, issued_at=issued_at)


def test_nobody_is_refused_who_was_not_revoked(revocations: DynamoDbRevocations) -> None:
    revocations.revoke("eve", up_to=100)
    assert revocations.not_before("mara") is None
    refuse_revoked(caller(1), revocations)
    refuse_revoked(caller(None), revocations)


@pytest.mark.parametrize(("issued_at", "refused"), [(99, True), (100, True), (None, True), (0, True), (101, False)])
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_tokens_issued_up_to_the_revocation_are_refused(
    revocations: DynamoDbRevocations, issued_at: int | None, refused: bool, tenant: str | None
) -> None:
    revocations.revoke("mara", up_to=100)
    if not refused:
        refuse_revoked(caller(issued_at, tenant=tenant), revocations)
        return
    with pytest.raises(Unauthorized, match="revoked"):
        refuse_revoked(caller(issued_at, tenant=tenant), revocations)


def test_a_revocation_never_goes_back(revocations: DynamoDbRevocations) -> None:
    for up_to, holds in ((100, 100), (50, 100), (100, 100), (200, 200)):
        revocations.revoke("mara", up_to=up_to)
        assert revocations.not_before("mara") == holds


def test_a_marker_is_forgotten_when_no_token_can_be_that_old(client: Any, revocations: DynamoDbRevocations) -> None:
    revocations.revoke("mara", up_to=100)
    (item,) = client.scan(TableName=TABLE)["Items"]
    assert int(item["expires_at"]["N"]) == 100 + KEPT_S


def test_a_marker_does_not_name_its_subject(client: Any, revocations: DynamoDbRevocations) -> None:
    revocations.revoke("mara", up_to=100)
    (item,) = client.scan(TableName=TABLE)["Items"]
    assert "mara" not in str(item)


def test_markers_that_cannot_be_read_let_nobody_through(client: Any, revocations: DynamoDbRevocations) -> None:
    client.delete_table(TableName=TABLE)
    with pytest.raises(RevocationFault) as fault:
        revocations.not_before("mara")
    assert isinstance(fault.value.__cause__, ClientError)
    with pytest.raises(RevocationFault):
        revocations.revoke("mara", up_to=100)
    with pytest.raises(DeliveryUnavailable):
        refuse_revoked(caller(1), revocations)
