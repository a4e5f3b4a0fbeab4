"""Refuses the tokens of users whose access was revoked, before the tokens expire.

A marker per subject, in the requests' table, holds a time: tokens that were issued up to it are refused. A user who may
return signs in again and has newer tokens. A marker outlives what is stored of an erased user, so it names no subject.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any, Protocol

from cicada.dynamodb import ConditionFailed, Item, attributes, faults_as, read_item
from cicada.errors import DeliveryUnavailable, Unauthorized
from cicada.identity import Caller

logger = logging.getLogger(__name__)

KEPT_S = 400 * 24 * 3600
"""How long a marker is kept: longer than any issuer's tokens should be valid."""


class RevocationFault(Exception):
    """The markers could not be read or written."""


class Revocations(Protocol):
    """The markers."""

    def not_before(self, subject: str) -> int | None:
        """The time up to which a subject's tokens are refused, in epoch seconds; None if none are.

        Raises:
            RevocationFault.
        """
        ...

    def revoke(self, subject: str, *, up_to: int) -> None:
        """Refuse a subject's tokens that were issued up to a time, in epoch seconds. Idempotent; never goes back.

        Raises:
            RevocationFault.
        """
        ...


class DynamoDbRevocations:
    """:class:`Revocations` in the requests' table: one item per revoked subject."""

    def __init__(self, client: Any, table: str) -> None:
        """``client``: a DynamoDB client with short time-outs."""
        self._client = client
        self._table = table

    def not_before(self, subject: str) -> int | None:
        """See the port. Strongly consistent: a revocation holds from the next frame on."""
        return not_before_of(read_item(self._client, RevocationFault, self._table, marker_key(subject)))

    def revoke(self, subject: str, *, up_to: int) -> None:
        """See the port."""
        try:
            with faults_as(RevocationFault):
                self._client.put_item(
                    TableName=self._table,
                    Item=marker_key(subject) | attributes(not_before=up_to, expires_at=up_to + KEPT_S),
                    ConditionExpression="attribute_not_exists(pk) OR not_before < :up_to",
                    ExpressionAttributeValues={":up_to": {"N": str(up_to)}},
                )
        except ConditionFailed:
            pass  # a later revocation includes this one


def marker_place(subject: str) -> tuple[str, str]:
    """Partition key and sort key of a subject's marker: a digest, which no other item's key begins with."""
    return f"revoked#{hashlib.sha256(subject.encode()).hexdigest()}", "revocation"


def marker_key(subject: str) -> dict[str, Any]:
    """The key of a subject's marker, as DynamoDB takes it."""
    pk, sk = marker_place(subject)
    return attributes(pk=pk, sk=sk)


def not_before_of(marker: Item | None) -> int | None:
    """The time up to which a marker refuses tokens, in epoch seconds; None if there is no marker."""
    return None if marker is None else int(marker["not_before"]["N"])


def refuse_revoked(caller: Caller, revocations: Revocations) -> None:
    """Check that the caller's token was not revoked. A token without an ``iat`` counts as older than any revocation.

    Raises:
        Unauthorized: it was.
        DeliveryUnavailable: it cannot be told.
    """
    try:
        not_before = revocations.not_before(caller.subject)
    except RevocationFault as fault:
        logger.warning("revocations are unavailable", extra={"why": str(fault)})
        raise DeliveryUnavailable from fault
    refuse_issued_up_to(not_before, caller)


def refuse_issued_up_to(not_before: int | None, caller: Caller) -> None:
    """Raise Unauthorized if the caller's token was issued up to a time, in epoch seconds; None refuses none."""
    if not_before is not None and (caller.issued_at or 0) <= not_before:
        raise Unauthorized("the user's tokens were revoked")
