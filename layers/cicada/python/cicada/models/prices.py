"""What a model call costs, by the dated price table in this folder."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cicada.models.endpoints import configured_price
from cicada.models.model_ids import LOCAL_PREFIX, read_model_id
from cicada.models.ports import Usage
from cicada.text.tokens import estimated_tokens

_MILLION = 1_000_000


@dataclass(frozen=True)
class Cost:
    """The price of one call."""

    usd: float
    price_date: str
    """The day of the price table, ISO 8601."""


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    return table


def price_date() -> str:
    """The day of the price table, ISO 8601."""
    return str(_table()["date"])


def cost(model_id: str, usage: Usage) -> Cost | None:
    """What one on-demand call cost, or None if the model's price is not known.

    An inference profile has its own price in the table, or the base model's with the surcharge of newer models on
    geographic profiles. Prices are those of us-east-1; other Regions differ by a few per cent. Models of the local
    cloud cost nothing; an endpoint's models cost what the settings say (:mod:`cicada.models.endpoints`). As in
    Bedrock's report, ``input_tokens`` does not contain ``cache_read_tokens``.
    """
    table = _table()
    if model_id.startswith(LOCAL_PREFIX):
        return Cost(0.0, table["date"])
    configured = configured_price(model_id)
    if configured is not None:
        return Cost(configured.usd(usage), table["date"])
    name = read_model_id(model_id)
    models = table["models"]
    prices, factor = models.get(f"{name.profile}.{name.base}"), 1.0
    if prices is None:
        prices = models.get(name.base)
        if prices is None:
            return None
        if name.profile is not None and prices.get("surcharge"):
            surcharges = table["surcharges"]
            factor = surcharges.get(name.profile, surcharges["geographic"])
    long_prompts = prices.get("long_prompts")
    if long_prompts and usage.input_tokens + usage.cache_read_tokens > long_prompts["above_tokens"]:
        prices = long_prompts
    usd = (
        usage.input_tokens * prices["input"]
        + usage.cache_read_tokens * prices.get("cache_read", prices["input"])
        + usage.output_tokens * prices.get("output", 0.0)
    )
    return Cost(usd * factor / _MILLION + usage.queries * prices.get("query", 0.0), table["date"])


def queries(query: str, texts: Sequence[str]) -> int:
    """How many queries a re-ranking is charged as, an upper estimate.

    A charged query holds a number of chunks; a text that, with the query, exceeds a chunk counts as several.
    """
    rule: dict[str, int] = _table()["query"]
    asked = estimated_tokens(query)
    chunks = sum(max(1, math.ceil((asked + estimated_tokens(text)) / rule["tokens_a_text"])) for text in texts)
    return math.ceil(chunks / rule["texts"])
