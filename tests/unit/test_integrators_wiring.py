"""What the functions for integrators call services with."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config

from cicada.integrators.settings import ModelSettings
from cicada.integrators.wiring import models_of
from cicada.models.endpoints import Endpoints
from cicada.models.ports import Prompt, Unheld


class Asked(Exception):
    """The client was asked for."""


def test_a_silent_secrets_manager_is_not_waited_for_by_its_clients_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, Config]] = []

    def client(service: str, *, config: Config) -> Any:
        made.append((service, config))
        raise Asked

    monkeypatch.setattr(boto3, "client", client)
    price = {"input_usd_per_million": 1, "output_usd_per_million": 1}
    mine = {"base_url": "https://models.example/v1", "secret_arn": "arn:aws:s", "models": {"m": price}}
    settings = ModelSettings.model_construct(
        writing_model_id="mine/m", model_endpoints=Endpoints.model_validate({"mine": mine})
    )
    with pytest.raises(Asked):
        list(models_of(settings).text("mine/m", max_tokens=9).stream(Prompt("", "?"), time_budget_s=5, leash=Unheld()))
    ((service, config),) = made
    assert service == "secretsmanager"
    assert config.read_timeout * config.retries["total_max_attempts"] < 10
