"""The deployment's own endpoints, for functions that call their models: variables without secrets, and permissions."""

from __future__ import annotations

from collections.abc import Iterable

from stacks.answer_settings import ModelsSettings
from stacks.function import CicadaFunction


def endpoint_environment(models: ModelsSettings, model_ids: Iterable[str]) -> dict[str, str]:
    """What a function must know of the endpoints that serve these models; nothing if all are Bedrock's."""
    endpoints = models.served().only(model_ids)
    return {"MODEL_ENDPOINTS": endpoints.model_dump_json(exclude_none=True)} if endpoints.root else {}


def allow_keys(function: CicadaFunction, models: ModelsSettings, model_ids: Iterable[str]) -> None:
    """Allow a function to read the keys of the endpoints that serve these models, and no other secret."""
    arns = models.served().only(model_ids).secret_arns()
    if arns:
        function.allow(("secretsmanager:GetSecretValue",), *arns)
