"""What a model id names, and which sampling parameters the model accepts.

The same model has several names: ``amazon.nova-lite-v1:0``, its cross-Region inference profiles
(``us.amazon.nova-lite-v1:0``, ``global.…``) and the ARNs of both. An *application* inference profile's ARN ends in an
opaque id that names no model, and is kept unchanged.

Source: Amazon Bedrock User Guide, "Supported Regions and models for inference profiles".

Newer models choose their own sampling and answer a ``temperature`` with a ValidationException ("`temperature` is
deprecated for this model"); some older ones take ``temperature`` or ``topP``, not both ("cannot both be specified").

Amazon Nova uses tools more reliably with greedy decoding. Source: Amazon Nova User Guide, "Troubleshooting tool calls".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

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


NONE_ACCEPTED = (
    "anthropic.claude-opus-4-7",
    "anthropic.claude-opus-4-8",
    "anthropic.claude-opus-5",
    "anthropic.claude-sonnet-5",
    "anthropic.claude-haiku-5",
    "anthropic.claude-fable-5",
    "anthropic.claude-mythos-5",
    "openai.gpt-6",
)
"""Families, as beginnings of base ids, that refuse both parameters. Source: litellm 1.109.1's model table
(``supports_sampling_params``), 2026-11-20."""

ONE_ACCEPTED = (
    "anthropic.claude-opus-4-1",
    "anthropic.claude-opus-4-5",
    "anthropic.claude-opus-4-6",
    "anthropic.claude-sonnet-4-5",
    "anthropic.claude-sonnet-4-6",
    "anthropic.claude-haiku-4-5",
)
"""Families that refuse both parameters together: only ``temperature`` is sent."""

_NAMED = {"temperature": re.compile("temperature", re.IGNORECASE), "topP": re.compile("top[_ ]?p", re.IGNORECASE)}
_TOGETHER = re.compile(r"\bboth\b|only one", re.IGNORECASE)


def wanted_sampling(temperature: float | None, top_p: float | None) -> dict[str, float]:
    """The parameters that are set, by their names in Converse."""
    named = {"temperature": temperature, "topP": top_p}
    return {name: value for name, value in named.items() if value is not None}


def tool_sampling(model_id: str, temperature: float | None, top_p: float | None) -> dict[str, float]:
    """The parameters of calls with tools: greedy for Amazon Nova, else those that are set."""
    return {"temperature": 0.0} if _is_nova(model_id) else wanted_sampling(temperature, top_p)


def tool_fields(model_id: str) -> dict[str, Any]:
    """The ``additionalModelRequestFields`` of calls with tools."""
    return {"inferenceConfig": {"topK": 1}} if _is_nova(model_id) else {}


def _is_nova(model_id: str) -> bool:
    return read_model_id(model_id).base.startswith("amazon.nova-")


@dataclass
class Sampling:
    """Chooses the parameters to send, and remembers for the life of the process what each model refused."""

    _refused: dict[str, frozenset[str]] = field(default_factory=dict)

    def accepted(self, model_id: str, wanted: dict[str, float]) -> dict[str, float]:
        """Those of ``wanted`` (``temperature``, ``topP``) that the model is not known to refuse."""
        base = read_model_id(model_id).base
        if base.startswith(NONE_ACCEPTED):
            return {}
        refused = self._refused.get(model_id, frozenset())
        if base.startswith(ONE_ACCEPTED) and "temperature" in wanted:
            refused |= {"topP"}
        return {name: value for name, value in wanted.items() if name not in refused}

    def learn(self, model_id: str, sent: dict[str, float], refusal: str) -> bool:
        """Note the sent parameters that a ValidationException names; true if any, so that a call without can help."""
        named = {name for name in sent if _NAMED[name].search(refusal)}
        if len(named) > 1 and _TOGETHER.search(refusal):
            named = {"topP"}
        self._refused[model_id] = self._refused.get(model_id, frozenset()) | named
        return bool(named)


LEARNT = Sampling()
"""Shared by all model objects of the process by default."""
