"""The writes that count use, as parts of DynamoDB's transactions, and a reservation as an attribute of its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from cicada.usage.accounts import COUNTERS, Account, ItemKey, expires_at, stored_name, user
from cicada.usage.reservations import Amount, Claim, Reservation

_RESERVATION: TypeAdapter[Reservation] = TypeAdapter(Reservation)


def dump_reservation(reservation: Reservation) -> str:
    """A reservation as its request's head holds it."""
    return _RESERVATION.dump_json(reservation).decode()


def load_reservation(stored: str) -> Reservation:
    """A reservation that a head holds."""
    return _RESERVATION.validate_json(stored)


class _Update:
    """An Update of the item of an account's month, clause by clause."""

    def __init__(self, account: Account, month: str, day: int) -> None:
        self._key = account.key(month)
        self._day = day
        self._names = {"#expires": "expires_at"}
        self._values: dict[str, Any] = {":expires": {"N": str(expires_at(month))}}
        self._sets = ["#expires = :expires"]
        self._adds: list[str] = []
        self._conditions: list[str] = []

    def _bound(self, field: str, value: int, mark: str) -> tuple[str, str]:
        name = stored_name(field, self._day)
        self._names[f"#{name}"] = name
        self._values[f":{mark}_{name}"] = {"N": str(value)}
        return f"#{name}", f":{mark}_{name}"

    def add(self, field: str, value: int) -> None:
        if value:
            self._adds.append(" ".join(self._bound(field, value, "add")))

    def put(self, field: str, value: int) -> None:
        self._sets.append(" = ".join(self._bound(field, value, "put")))

    def require(self, field: str, sign: str, value: int, *, or_none: bool) -> None:
        name, bound = self._bound(field, value, "if")
        test = f"{name} {sign} {bound}"
        self._conditions.append(f"(attribute_not_exists({name}) OR {test})" if or_none else test)

    def part(self, table: str) -> dict[str, Any]:
        adds = f" ADD {', '.join(self._adds)}" if self._adds else ""
        condition = {"ConditionExpression": " AND ".join(self._conditions)} if self._conditions else {}
        return {
            "TableName": table,
            "Key": self._key,
            "UpdateExpression": f"SET {', '.join(self._sets)}{adds}",
            "ExpressionAttributeNames": self._names,
            "ExpressionAttributeValues": self._values,
            **condition,
        }


def reserving(table: str, reservation: Reservation, claim: Claim) -> Mapping[ItemKey, dict[str, Any]]:
    """The parts of a transaction by which a reservation lands in one account, if it has the room: by their items.

    At the turn of a month open questions count in two items. Each side looks at the other's, so that of two questions
    that are let in at the same moment the second finds the first.
    """
    parts = {claim.account.item(reservation.month): {"Update": _claiming(table, reservation, claim)}}
    if claim.open_beside is not None:
        month, most = claim.open_beside
        parts[claim.account.item(month)] = {
            "ConditionCheck": {
                "TableName": table,
                "Key": claim.account.key(month),
                "ConditionExpression": "attribute_not_exists(#open) OR #open <= :most",
                "ExpressionAttributeNames": {"#open": COUNTERS["requestsOpen"]},
                "ExpressionAttributeValues": {":most": {"N": str(most)}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }
    return parts


def _claiming(table: str, reservation: Reservation, claim: Claim) -> dict[str, Any]:
    update = _Update(claim.account, reservation.month, reservation.day)
    update.add("open", 1)
    update.add("reserved_tokens", reservation.most.tokens)
    update.add("reserved_microusd", reservation.most.microusd)
    _add_amount(update, reservation.most)
    for limit, most in claim.at_most.items():
        if limit != "requestsMinute":
            update.require(COUNTERS[limit], "<=", most, or_none=True)
    if claim.minute is not None and claim.first_of_minute:
        update.require("minute", "<", claim.minute, or_none=True)
        update.put("minute", claim.minute)
        update.put("minute_requests", 1)
    elif claim.minute is not None:
        update.require("minute", "=", claim.minute, or_none=False)
        update.require("minute_requests", "<=", claim.at_most["requestsMinute"], or_none=False)
        update.add("minute_requests", 1)
    return {**update.part(table), "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def settling(table: str, reservation: Reservation, account: Account, used: Amount) -> dict[str, Any]:
    """The Update that gives a reservation back to one account, and counts what was used."""
    update = _Update(account, reservation.month, reservation.day)
    most = reservation.most
    update.add("requests", 1)
    update.add("open", -1)
    update.add("reserved_tokens", -most.tokens)
    update.add("reserved_microusd", -most.microusd)
    _add_amount(update, Amount(used.tokens - most.tokens, used.microusd - most.microusd))
    return update.part(table)


def counting(table: str, owner: str, month: str, day: int, used: Amount) -> dict[str, Any]:
    """The Update that counts what a request of a user without limits has used."""
    update = _Update(user(owner), month, day)
    update.add("requests", 1)
    _add_amount(update, used)
    return update.part(table)


def _add_amount(update: _Update, amount: Amount) -> None:
    for field, value in (("tokens", amount.tokens), ("microusd", amount.microusd)):
        update.add(field, value)
        update.add(f"day_{field}", value)
