"""Reads of many items: in batches, with pauses only where DynamoDB left keys unread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cicada.delivery.ports import StoreFault
from cicada.dynamodb import read_items

KEYS = [(f"p{n}", "s") for n in range(950)]


class Batches:
    """Answers BatchGetItem; leaves the last key of the first ``throttled`` calls unread."""

    def __init__(self, throttled: int = 0) -> None:
        self.throttled = throttled
        self.calls = 0

    def batch_get_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803 (boto3's name)
        keys = RequestItems["t"]["Keys"]
        assert len(keys) <= 100
        self.calls += 1
        unread = keys[-1:] if self.calls <= self.throttled else []
        return {
            "Responses": {"t": keys[: len(keys) - len(unread)]},
            "UnprocessedKeys": {"t": {"Keys": unread}} if unread else {},
        }


def test_any_number_of_batches_is_read_without_a_pause() -> None:
    batches, pauses = Batches(), list[float]()
    assert read_items(batches, StoreFault, "t", KEYS, sleep=pauses.append).keys() == set(KEYS)
    assert (batches.calls, pauses) == (10, [])


def test_unread_keys_are_read_again_after_longer_pauses_and_then_given_up() -> None:
    pauses = list[float]()
    assert read_items(Batches(3), StoreFault, "t", KEYS, sleep=pauses.append).keys() == set(KEYS)
    assert pauses == sorted(set(pauses))
    assert len(pauses) == 3
    with pytest.raises(StoreFault):
        read_items(Batches(99), StoreFault, "t", KEYS, sleep=pauses.append)
