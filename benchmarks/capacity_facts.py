"""Quotas, limiters and prices of AWS that :mod:`benchmarks.capacity` reckons with, each with its source.

They lie in ``capacity_facts.json``. The prices of models are those that answers are reckoned with
(:mod:`cicada.models.prices`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).with_name("capacity_facts.json")


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quota(_Facts):
    """What an account may have, and how to ask for more."""

    name: str
    default: float | None
    """None where AWS publishes none."""
    burst: float | None = None
    unit: str
    ask: str
    source: str


class Limiter(_Facts):
    """What nobody can have more of: the ceiling of a partition, an object or a function."""

    value: float
    tells: str
    source: str


class Price(_Facts):
    """A list price."""

    usd: float
    unit: str
    source: str


class Facts(_Facts):
    """All of them."""

    region: str
    read: str
    """When they were read."""
    quotas: dict[str, Quota]
    limiters: dict[str, Limiter]
    prices: dict[str, Price]
    models: dict[str, str]
    """The default models: of writing, of small talk, of embeddings."""

    def usd(self, price: str) -> float:
        """What a unit costs."""
        return self.prices[price].usd

    def ceiling(self, limiter: str) -> float:
        """The value of a limiter."""
        return self.limiters[limiter].value


def facts() -> Facts:
    """The facts."""
    return Facts.model_validate_json(FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Habits:
    """What people do, assumed: it decides how many answers a second and sockets there are."""

    mix: tuple[tuple[str, float], ...] = (("rag", 0.6), ("hybrid", 0.2), ("direct", 0.1), ("cag", 0.1))
    """The shares of the routes."""
    asks_every_s: float = 60.0
    """One person's questions, each with the time to read its answer."""
    stays_s: float = 600.0
    """How long a person's socket lives."""
