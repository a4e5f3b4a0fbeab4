"""Models of your own endpoints, configured by a file or the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cicada_cli.aws import Aws
from cicada_cli.exits import UsageError

if TYPE_CHECKING:  # boto3 is loaded by the commands that need it
    from cicada.models.endpoints import Endpoints
    from cicada.models.factory import ModelFactory

ENDPOINTS_VARIABLE = "CICADA_MODEL_ENDPOINTS"
KEY_VARIABLE = "CICADA_ENDPOINT_KEY_"
"""Prefix; the endpoint's name follows in capitals, with ``_`` for ``-``."""
_SPELT: Mapping[str, str] = {
    "baseUrl": "base_url",
    "secretArn": "secret_arn",
    "inputUsdPerMillion": "input_usd_per_million",
    "outputUsdPerMillion": "output_usd_per_million",
    "cachedInputUsdPerMillion": "cached_input_usd_per_million",
}
"""Names of an endpoint's fields in ``cdk.json`` and in the functions' settings; both are accepted."""


def models_at(
    aws: Aws, endpoints: Endpoints | None = None, *, secrets: Aws | None = None, environ: Mapping[str, str] = os.environ
) -> ModelFactory:
    """A factory of models of Bedrock and of endpoints.

    Args:
        aws: where Bedrock is called.
        endpoints: default: those of the environment.
        secrets: where the endpoints' secrets are; default: ``aws``.
        environ: may hold the endpoints and their keys.

    Raises:
        UsageError: the endpoints of the environment are invalid.
    """
    from cicada.models.bedrock import bedrock_client_config
    from cicada.models.endpoint_keys import SECRETS_CONFIG
    from cicada.models.factory import ModelFactory

    return ModelFactory(
        bedrock=lambda: aws.client("bedrock-runtime", bedrock_client_config()),
        secrets=lambda: (secrets or aws).client("secretsmanager", SECRETS_CONFIG),
        endpoints=read_endpoints(None, environ) if endpoints is None else endpoints,
        key_of=lambda endpoint: environ.get(key_variable(endpoint)) or None,
    )


def read_endpoints(file: Path | None, environ: Mapping[str, str]) -> Endpoints:
    """The endpoints of a file, or of the environment; none if neither has any.

    Raises:
        UsageError: they are invalid.
    """
    from pydantic import ValidationError

    from cicada.models.endpoints import Endpoints

    where = ENDPOINTS_VARIABLE if file is None else str(file)
    try:
        text = environ.get(ENDPOINTS_VARIABLE, "") if file is None else file.read_text(encoding="utf-8")
        return Endpoints.model_validate(_respelt(json.loads(text))) if text.strip() else Endpoints.none()
    except OSError as error:
        raise UsageError(f"cannot read {where}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: invalid JSON: {error}") from error


def key_variable(endpoint: str) -> str:
    """The environment variable that holds an endpoint's key."""
    return KEY_VARIABLE + endpoint.upper().replace("-", "_")


def _respelt(told: Any) -> Any:
    """Endpoints with the field names of the functions' settings."""
    if not isinstance(told, dict):
        return told
    return {name: _fields(endpoint) for name, endpoint in told.items()}


def _fields(endpoint: Any) -> Any:
    if not isinstance(endpoint, dict):
        return endpoint
    known = {_SPELT.get(field, field): value for field, value in endpoint.items()}
    if isinstance(models := known.get("models"), dict):
        known["models"] = {
            model: {_SPELT.get(field, field): value for field, value in entry.items()}
            if isinstance(entry, dict)
            else entry
            for model, entry in models.items()
        }
    return known
