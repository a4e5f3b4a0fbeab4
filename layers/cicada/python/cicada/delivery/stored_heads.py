"""Converts a request's head to and from an item of the table. ``docs/decisions`` says why it has these attributes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from cicada.delivery.record import (
    Changed,
    Commit,
    LogEntry,
    Question,
    RequestHead,
    RequestKey,
    RequestSpend,
    Standalone,
    Subscriber,
)
from cicada.dynamodb import Item, attributes
from cicada.errors import NewerRelease
from cicada.protocol.events import StrategyFailure
from cicada.usage.dynamodb import load_reservation
from cicada.usage.reservations import Amount

_STANDALONE: TypeAdapter[Standalone] = TypeAdapter(Standalone)
_CHANGED: TypeAdapter[Changed] = TypeAdapter(Changed)
_FAILURES: TypeAdapter[tuple[StrategyFailure, ...]] = TypeAdapter(tuple[StrategyFailure, ...])


def dump_changes(commit: Commit) -> dict[str, Any]:
    """The head's attributes that a commit replaces; its log grows beside them."""
    changes = attributes(
        last_seq=commit.last_seq if commit.bodies else None,
        state=commit.state if commit.state != "open" else None,
        lease_until=commit.lease_until,
        withdrawn=1 if commit.log else None,
        standalone=_STANDALONE.dump_json(commit.standalone).decode() if commit.standalone else None,
        **_spent_attributes(commit.spent),
        changed=_CHANGED.dump_json(commit.changed).decode() if commit.changed else None,
    )
    if (claim := commit.claim) is not None:
        changes |= attributes(
            attempt=claim.attempt,
            strategy=claim.strategy,
            execution=claim.execution,
            worker=claim.worker,
            failed=_FAILURES.dump_json(claim.failed, by_alias=True).decode(),
            reserved_calls=claim.reserved_calls,
        )
    return changes


def _standalone(stored: str) -> Standalone:
    known = json.loads(stored)
    known.setdefault("rests_on", None)  # release 0.1.0 did not say what a completed question rests on
    return _STANDALONE.validate_python(known)


def _spent_attributes(spent: RequestSpend | None) -> dict[str, str]:
    # Two attributes: while a deployment rolls out, older releases read the first as it is.
    if spent is None:
        return {}
    known = {name: getattr(spent, name) for name in ("calls", "input_tokens", "output_tokens", "usd")}
    counted = {"known_usd": spent.known_usd, "unreported": spent.unreported}
    return {"spent": json.dumps(known), "counted": json.dumps(counted)}


def _spent(item: Item) -> RequestSpend:
    if "spent" not in item:
        return RequestSpend()
    counted = json.loads(item["counted"]["S"]) if "counted" in item else {}
    known = json.loads(item["spent"]["S"])
    usd = max(counted.get("known_usd", 0.0), known["usd"] or 0.0)  # older releases count in the first alone
    return RequestSpend(**known, known_usd=usd, unreported=Amount(*counted.get("unreported", (0, 0))))


def dump_subscribers(subscribers: tuple[Subscriber, ...]) -> dict[str, Any]:
    """The attributes that hold the subscribers."""
    # The expiries are an attribute of their own: while a deployment rolls out, older releases read the list as it is.
    return {
        "subscribers": {"L": [{"S": one.connection_id} for one in subscribers]},
        "subscribed_until": {"M": attributes(**{one.connection_id: one.expires_at for one in subscribers})},
    }


def _subscribers(item: Item) -> tuple[Subscriber, ...]:
    until = item["subscribed_until"]["M"] if "subscribed_until" in item else {}
    ids = [value["S"] for value in item["subscribers"]["L"]]
    return tuple(Subscriber(one, int(until[one]["N"]) if one in until else None) for one in ids)


def inline_event(attempt: int, body: str) -> dict[str, Any]:
    """An event's value in the head's log."""
    return {"M": {"a": {"N": str(attempt)}, "b": {"S": body}}}


def load_entries(item: Item, fetch: Callable[[str], str]) -> tuple[LogEntry, ...]:
    """The log of a head; ``fetch`` returns the body of an event that has an item of its own, by its sort key."""
    entries = (
        LogEntry(
            int(seq),
            int(value["M"]["a"]["N"]),
            value["M"]["b"]["S"] if "b" in value["M"] else fetch(value["M"]["r"]["S"]),
        )
        for seq, value in item["log"]["M"].items()
    )
    return tuple(sorted(entries, key=lambda entry: entry.seq))


def load_head(key: RequestKey, item: Item) -> RequestHead:
    """The head that an item holds. Raises NewerRelease if this release cannot read it."""
    try:
        return _head(key, item)
    except (KeyError, TypeError, ValueError) as error:
        raise NewerRelease(f"cannot parse the request's record: {type(error).__name__}") from error


def load_question(item: Item) -> Question:
    """The question of a head. Raises KeyError, TypeError or ValueError if this release cannot read it."""
    question = json.loads(item["question"]["S"])
    return Question(
        query=question["query"],
        session_id=question["session_id"],
        collections=tuple(question["collections"]),
        episodes=tuple(question["episodes"]),
        top_k=question["top_k"],
        tenant=question.get("tenant"),
        groups=tuple(question.get("groups", ())),
        documents=tuple(question.get("documents", ())),  # releases before 0.2.0 know neither these nor sections
        sections=tuple(question.get("sections", ())),
    )


def _head(key: RequestKey, item: Item) -> RequestHead:
    return RequestHead(
        key=key,
        question=load_question(item),
        origin=item["origin"]["S"],
        accepted_at_ms=int(item["accepted_at_ms"]["N"]),
        expires_at=int(item["retained_until"]["N"]),
        state=item["state"]["S"],
        attempt=int(item["attempt"]["N"]),
        strategy=item.get("strategy", {}).get("S"),
        execution=item.get("execution", {}).get("S"),
        worker=item.get("worker", {}).get("S"),
        lease_until=int(item["lease_until"]["N"]),
        failed=_FAILURES.validate_json(item["failed"]["S"]) if "failed" in item else (),
        reserved_calls=int(item.get("reserved_calls", {}).get("N", 0)),
        takeovers=int(item.get("takeovers", {}).get("N", 0)),
        standalone=_standalone(item["standalone"]["S"]) if "standalone" in item else None,
        spent=_spent(item),
        changed=_CHANGED.validate_json(item["changed"]["S"]) if "changed" in item else None,
        last_seq=int(item["last_seq"]["N"]),
        log_bytes=int(item["log_bytes"]["N"]),
        withdrawn="withdrawn" in item,
        subscribers=_subscribers(item),
        reservation=load_reservation(item["reservation"]["S"]) if "reservation" in item else None,
    )
