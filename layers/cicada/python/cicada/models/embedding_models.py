"""The embedding models of Amazon Bedrock that are supported: their limits, requests and responses by InvokeModel.

Sources: Amazon Bedrock User Guide, "Amazon Titan Text Embeddings models", "Cohere Embed v3" and "Cohere Embed v4";
Amazon Nova User Guide, "Complete embeddings request and response schema".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cicada.errors import SettingsInvalid
from cicada.models.model_ids import read_model_id

Purpose = Literal["document", "query"]
"""What a text is embedded for: to be found, or to find. Some models embed the two differently."""


@dataclass(frozen=True)
class EmbeddingModel:
    """One model."""

    dimensions: tuple[int, ...]
    """The lengths of vectors that it offers."""
    body: Callable[[Sequence[str], int, Purpose], dict[str, Any]]
    """The request for some texts, a number of dimensions and a purpose."""
    vectors: Callable[[Any], Any]
    """The vectors in a response, in the order of the texts. Raises KeyError or TypeError."""
    max_tokens: int
    """Of one text, by :func:`cicada.text.tokens.estimated_tokens`, which counts at most 3.5 characters a token."""
    max_texts: int = 1
    """Of one call."""


def _titan_body(texts: Sequence[str], dimensions: int, _: Purpose) -> dict[str, Any]:
    return {"inputText": texts[0], "dimensions": dimensions, "normalize": True}


def _cohere_body(texts: Sequence[str], _: int, purpose: Purpose) -> dict[str, Any]:
    return {"texts": list(texts), "input_type": f"search_{purpose}", "truncate": "NONE"}


def _cohere_v4_body(texts: Sequence[str], dimensions: int, purpose: Purpose) -> dict[str, Any]:
    own = {"embedding_types": ["float"], "output_dimension": dimensions}
    return {**_cohere_body(texts, dimensions, purpose), **own}


def _cohere_vectors(response: Any) -> Any:
    found = response["embeddings"]
    return found["float"] if isinstance(found, Mapping) else found  # by type where types were asked for


def _nova_body(texts: Sequence[str], dimensions: int, purpose: Purpose) -> dict[str, Any]:
    asked = {
        "embeddingPurpose": "TEXT_RETRIEVAL" if purpose == "query" else "GENERIC_INDEX",
        "embeddingDimension": dimensions,
        "text": {"truncationMode": "NONE", "value": texts[0]},
    }
    return {"schemaVersion": "nova-multimodal-embed-v1", "taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": asked}


def _titan(*dimensions: int) -> EmbeddingModel:
    return EmbeddingModel(dimensions, _titan_body, lambda response: [response["embedding"]], max_tokens=8_192)


_COHERE_V3 = EmbeddingModel((1024,), _cohere_body, _cohere_vectors, max_tokens=512, max_texts=96)
"""It takes 2,048 characters a text."""

EMBEDDING_MODELS: dict[str, EmbeddingModel] = {
    "amazon.titan-embed-text-v2:0": _titan(256, 512, 1024),
    "amazon.nova-2-multimodal-embeddings-v1:0": EmbeddingModel(
        (256, 384, 1024, 3072),
        _nova_body,
        lambda response: [one["embedding"] for one in response["embeddings"]],
        max_tokens=2_340,  # 8,192 characters
    ),
    "cohere.embed-english-v3": _COHERE_V3,
    "cohere.embed-multilingual-v3": _COHERE_V3,
    "cohere.embed-v4:0": EmbeddingModel(
        (256, 512, 1024, 1536), _cohere_v4_body, _cohere_vectors, max_tokens=128_000, max_texts=96
    ),
    "local.all-minilm-l6-v2": _titan(384),
}
"""By base id."""


def embedding_model(model_id: str, dimensions: int) -> EmbeddingModel:
    """A model by its id, or an inference profile's, or the ARN of either.

    Raises:
        SettingsInvalid: it is not supported, or does not offer these dimensions.
    """
    model = EMBEDDING_MODELS.get(read_model_id(model_id).base)
    if model is None:
        raise SettingsInvalid(f"unsupported embedding model {model_id}; supported: {', '.join(EMBEDDING_MODELS)}")
    if dimensions not in model.dimensions:
        *others, last = map(str, model.dimensions)
        offered = f"{', '.join(others)} and {last}" if others else last
        raise SettingsInvalid(f"{model_id} offers {offered} dimensions, not {dimensions}")
    return model
