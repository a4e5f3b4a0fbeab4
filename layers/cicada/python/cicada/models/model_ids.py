"""What a model id names: on Bedrock a base model, and the inference profile it is called through; else an endpoint.

The same model has several names: ``amazon.nova-lite-v1:0``, its cross-Region inference profiles
(``us.amazon.nova-lite-v1:0``, ``global.…``) and the ARNs of both. An *application* inference profile's ARN ends in an
opaque id, from which no model can be read: it stays as it is.

Source: Amazon Bedrock User Guide, "Supported Regions and models for inference profiles".
"""

from __future__ import annotations

from dataclasses import dataclass

LOCAL_PREFIX = "local."
"""Models that the local cloud serves."""
_PROFILES = frozenset({"us", "us-gov", "eu", "apac", "au", "ca", "in", "jp", "global"})


@dataclass(frozen=True)
class ModelName:
    """A model id, taken apart."""

    base: str
    """The model, for example ``amazon.nova-lite-v1:0``."""
    profile: str | None = None
    """The geography whose inference profile is called, for example ``us`` or ``global``; None for the model itself."""


def read_model_id(model_id: str) -> ModelName:
    """Take a model id or ARN apart."""
    name = model_id.rsplit("/", 1)[-1] if model_id.startswith("arn:") else model_id
    first, _, rest = name.partition(".")
    return ModelName(rest, first) if first in _PROFILES and "." in rest else ModelName(name)


def read_endpoint_id(model_id: str) -> tuple[str, str] | None:
    """The endpoint and its own name of the model, of ``<endpoint>/<model>``; None for a model of Bedrock.

    Bedrock's ids hold no slash, and its ARNs begin with ``arn:``. The model's own name may hold slashes.
    """
    endpoint, slash, name = model_id.partition("/")
    return (endpoint, name) if slash and not model_id.startswith("arn:") else None
