"""The models that the stand-in serves, with the limits and whims that matter to a caller.

Every text model is answered by the same answerer and every embedding model by the same embedder, so that a deployment
with its production settings runs here too. Limits of the Bedrock models: litellm 1.109.1's model table, 2026-11-20.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from cicada.models.model_ids import LOCAL_PREFIX
from cicada_local.bedrock.errors import ModelNotFound, ValidationFailed

PROFILES = ("us", "us-gov", "eu", "apac", "au", "ca", "in", "jp", "global")
_ID = re.compile(r"[a-zA-Z0-9-:._]{1,256}")
_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:[a-z0-9-]*:\d*:(foundation-model|inference-profile)/(?P<id>.+)")


@dataclass(frozen=True)
class TextModel:
    """A model for Converse and ConverseStream."""

    max_input_tokens: int
    max_output_tokens: int
    sampling: Literal["any", "one", "none"] = "any"
    """Whether it takes ``temperature`` and ``topP`` together, one of them, or neither."""
    reasons: bool = False
    """Whether it streams reasoning before its answer."""
    plain_schemas: bool = False
    """Whether a tool's schema may have ``type``, ``properties`` and ``required`` at its top, and nothing else."""
    profile_only: bool = False
    """Whether it is called through an inference profile only."""


@dataclass(frozen=True)
class EmbeddingModel:
    """A model for InvokeModel."""

    dimensions: tuple[int, ...]
    default_dimensions: int
    max_input_tokens: int = 8192
    max_characters: int | None = 50_000
    format: Literal["titan", "nova", "cohere_v3", "cohere_v4"] = "titan"
    """Whose requests it takes."""


@dataclass(frozen=True)
class RerankModel:
    """A model for InvokeModel that ranks texts for a query."""

    cohere: bool = False
    """Whether its body is Cohere's, which names its API's version."""
    max_texts: int = 1_000


Model = TextModel | EmbeddingModel | RerankModel


def _claude(sampling: Literal["any", "one", "none"], *, reasons: bool = False, window: int = 1_000_000) -> TextModel:
    return TextModel(window, 128_000 if window > 200_000 else 64_000, sampling, reasons, profile_only=True)


_COHERE_V3 = EmbeddingModel((1024,), 1024, 512, 2048, "cohere_v3")

MODELS: dict[str, Model] = {
    "local.extractive": TextModel(128_000, 8192),
    "local.all-minilm-l6-v2": EmbeddingModel((384,), 384),
    "amazon.nova-micro-v1:0": TextModel(128_000, 10_000, plain_schemas=True),
    "amazon.nova-lite-v1:0": TextModel(300_000, 10_000, plain_schemas=True),
    "amazon.nova-pro-v1:0": TextModel(300_000, 10_000, plain_schemas=True),
    "amazon.nova-2-lite-v1:0": TextModel(1_000_000, 64_000, plain_schemas=True, profile_only=True),
    "anthropic.claude-haiku-4-5-20251001-v1:0": _claude("one", window=200_000),
    "anthropic.claude-haiku-5-5": _claude("none", reasons=True),
    "anthropic.claude-sonnet-4-6": _claude("one"),
    "anthropic.claude-sonnet-5": _claude("none"),
    "anthropic.claude-sonnet-5-5": _claude("none", reasons=True),
    "amazon.titan-embed-text-v2:0": EmbeddingModel((256, 512, 1024), 1024),
    "amazon.nova-2-multimodal-embeddings-v1:0": EmbeddingModel(
        (256, 384, 1024, 3072), 3072, max_characters=8192, format="nova"
    ),
    "cohere.embed-english-v3": _COHERE_V3,
    "cohere.embed-multilingual-v3": _COHERE_V3,
    "cohere.embed-v4:0": EmbeddingModel((256, 512, 1024, 1536), 1536, 128_000, None, "cohere_v4"),
    "amazon.rerank-v1:0": RerankModel(),
    "cohere.rerank-v3-5:0": RerankModel(cohere=True),
}
"""Models by base id."""


def find_model(model_id: str) -> Model:
    """The model that an id, an inference profile's id or the ARN of either names.

    Raises:
        ValidationFailed: it is no model identifier, or names a model that is called through a profile only.
        ModelNotFound: no such model here.
    """
    arn = _ARN.fullmatch(model_id)
    name = arn["id"] if arn else model_id
    if not _ID.fullmatch(name):
        raise ValidationFailed("The provided model identifier is invalid.")
    profile, _, base = name.partition(".")
    if profile in PROFILES and base in MODELS:
        return MODELS[base]
    if name not in MODELS and name.startswith(LOCAL_PREFIX):
        return MODELS["local.extractive"]  # named after the model server that writes in its place
    if name not in MODELS:
        raise ModelNotFound("Could not resolve the foundation model from the provided model identifier.")
    model = MODELS[name]
    if isinstance(model, TextModel) and model.profile_only:
        raise ValidationFailed(
            f"Invocation of model ID {name} with on-demand throughput isn't supported. Retry your request with the ID "
            "or ARN of an inference profile that contains this model."
        )
    return model
