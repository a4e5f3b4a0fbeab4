"""What the models of a deployment's own endpoints cost. Their prices are settings, told once when the process starts;
:func:`cicada.models.prices.cost` asks here for every model that is not Bedrock's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cicada.models.ports import Usage

_MILLION = 1_000_000


@dataclass(frozen=True)
class TokenPrices:
    """US dollars for a million tokens."""

    input_usd: float
    output_usd: float
    """Reasoning is output."""
    cached_input_usd: float
    """Of input that the service had read before."""

    def usd(self, usage: Usage) -> float:
        """What a call cost."""
        return (
            usage.input_tokens * self.input_usd
            + usage.cache_read_tokens * self.cached_input_usd
            + usage.output_tokens * self.output_usd
        ) / _MILLION


_prices: dict[str, TokenPrices] = {}


def tell_prices(prices: Mapping[str, TokenPrices]) -> None:
    """From now on these models, by their ids ``<endpoint>/<model>``, have these prices in this process."""
    _prices.update(prices)


def told_price(model_id: str) -> TokenPrices | None:
    """A model's prices; None if nobody told them."""
    return _prices.get(model_id)
