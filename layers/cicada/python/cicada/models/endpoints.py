"""A deployment's endpoints that speak OpenAI's Chat Completions, with their models' prices.

An endpoint names the secret that holds its key; the settings contain no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, StringConstraints

from cicada.models.model_ids import read_endpoint_id
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


def add_prices(prices: Mapping[str, TokenPrices]) -> None:
    """Set the prices of models in this process, by their ids ``<endpoint>/<model>``."""
    _prices.update(prices)


def configured_price(model_id: str) -> TokenPrices | None:
    """A model's prices, if set."""
    return _prices.get(model_id)


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts on this machine, which may be called without TLS."""

Usd = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
EndpointName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
"""Before the slash of a model id."""
OwnModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9@][A-Za-z0-9@._:/+-]*$", max_length=128)]
"""A model as its endpoint calls it: after the slash of a model id. It may hold slashes itself."""


def _base_url(value: str) -> str:
    try:
        url = urlsplit(value)
        url.port  # noqa: B018 - raises ValueError for an invalid port
    except ValueError as error:
        raise ValueError(f"is not a valid URL: {error}") from None
    if url.scheme not in ("https", "http") or not url.hostname or re.search(r"\s|[^\x00-\x7f]", value):
        raise ValueError("must be a URL such as https://api.example.com/v1")
    _check_parts(url)
    return value.rstrip("/")


def _check_parts(url: SplitResult) -> None:
    if url.username is not None or url.password is not None:
        raise ValueError("must not contain a user name or password: store the key in a secret")
    if url.query or url.fragment:
        raise ValueError("must not contain ? or #")
    if url.scheme == "http" and url.hostname not in LOOPBACK:
        raise ValueError("must begin with https://")


BaseUrl = Annotated[str, StringConstraints(max_length=512), AfterValidator(_base_url)]
"""Before ``/chat/completions``. Only a server of this very machine may be called without TLS."""


class EndpointModel(BaseModel):
    """One model of an endpoint: its prices, in US dollars for a million tokens; 0 where nothing is charged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_usd_per_million: Usd
    output_usd_per_million: Usd
    cached_input_usd_per_million: Usd | None = None
    """The price of all input when None."""

    @property
    def prices(self) -> TokenPrices:
        """The prices with the default filled in."""
        cached = self.cached_input_usd_per_million
        full = self.input_usd_per_million
        return TokenPrices(full, self.output_usd_per_million, full if cached is None else cached)


class Endpoint(BaseModel):
    """One endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: BaseUrl
    secret_arn: str | None = None
    """The secret that holds its key; None for one that asks for none."""
    models: Mapping[OwnModelName, EndpointModel]


class Endpoints(RootModel[Mapping[EndpointName, Endpoint]]):
    """All endpoints, by name."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def none(cls) -> Self:
        """No endpoint: all models are Bedrock's."""
        return cls({})

    def find(self, model_id: str) -> tuple[Endpoint, str] | None:
        """The endpoint that serves a model, and the model's name there; None without one."""
        found = read_endpoint_id(model_id)
        if found is None or found[0] not in self.root:
            return None
        endpoint = self.root[found[0]]
        return (endpoint, found[1]) if found[1] in endpoint.models else None

    def prices(self) -> dict[str, TokenPrices]:
        """What each model costs, by model id."""
        return {
            f"{name}/{model}": entry.prices
            for name, endpoint in self.root.items()
            for model, entry in endpoint.models.items()
        }

    def model_ids(self) -> list[str]:
        """All models' ids, sorted."""
        return sorted(self.prices())

    def only(self, model_ids: Iterable[str]) -> Self:
        """The endpoints and entries of these models alone."""
        wanted = set(model_ids)
        kept = {
            name: endpoint.model_copy(
                update={"models": {m: entry for m, entry in endpoint.models.items() if f"{name}/{m}" in wanted}}
            )
            for name, endpoint in self.root.items()
        }
        return type(self)({name: endpoint for name, endpoint in kept.items() if endpoint.models})

    def secret_arns(self) -> list[str]:
        """The secrets that hold the keys, each once, sorted."""
        return sorted({endpoint.secret_arn for endpoint in self.root.values() if endpoint.secret_arn})
