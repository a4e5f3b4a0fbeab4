"""Requests for embeddings, read as strictly as each model's schema, and the models' responses.

Sources: Amazon Bedrock User Guide, "Amazon Titan Text Embeddings models", "Cohere Embed v3" and "Cohere Embed v4";
Amazon Nova User Guide, "Complete embeddings request and response schema"; the words for a long text: ScrapeGraphAI,
issue 400, and llama_index, issue 14118.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.bedrock.catalogue import EmbeddingModel
from cicada_local.bedrock.errors import ValidationFailed
from cicada_local.bedrock.requests import json_type, malformed, read_object
from cicada_local.bedrock.tokens import count_tokens

MAX_TEXTS = 96
"""Of one call of Cohere's models."""
_PURPOSES = {"search_document", "search_query", "classification", "clustering"}
_NOVA_PURPOSES = {
    *("GENERIC_INDEX", "GENERIC_RETRIEVAL", "TEXT_RETRIEVAL", "IMAGE_RETRIEVAL", "VIDEO_RETRIEVAL"),
    *("DOCUMENT_RETRIEVAL", "AUDIO_RETRIEVAL", "CLASSIFICATION", "CLUSTERING"),
}
_FLOAT = ["float"]
_Vectors = Sequence[Sequence[float]]


@dataclass(frozen=True)
class EmbeddingRequest:
    """Texts to embed."""

    texts: tuple[str, ...]
    dimensions: int
    answer: Callable[[_Vectors], dict[str, Any]]
    """Their vectors in, the response's body out."""
    counts_tokens: bool = True
    """Whether the response's headers say how many tokens it took."""

    @property
    def input_tokens(self) -> int:
        """Of all texts."""
        return sum(map(count_tokens, self.texts))


def read_embedding(body: bytes, model: EmbeddingModel) -> EmbeddingRequest:
    """Read the body of InvokeModel. Raises ValidationFailed."""
    read = {"titan": _titan, "nova": _nova, "cohere_v3": _cohere, "cohere_v4": _cohere}[model.format]
    return read(read_object(body), model)


def _titan(fields: dict[str, Any], model: EmbeddingModel) -> EmbeddingRequest:
    problems = _keys(fields, "#", {"inputText"}, {"dimensions", "normalize", "embeddingTypes"})
    if "inputText" in fields:
        problems += _text(fields["inputText"], "#/inputText", model)
    dimensions = fields.get("dimensions", model.default_dimensions)
    problems += _one_of(dimensions, "#/dimensions", model.dimensions)
    if not isinstance(fields.get("normalize", True), bool):
        problems.append(f"#/normalize: expected type: Boolean, found: {json_type(fields['normalize'])}")
    if fields.get("embeddingTypes", _FLOAT) != _FLOAT:
        problems.append("#/embeddingTypes/0: only [float] is served here")
    _refuse(problems)
    tokens = count_tokens(fields["inputText"])
    if tokens > model.max_input_tokens:
        raise ValidationFailed(
            "400 Bad Request: Too many input tokens. "
            f"Max input tokens: {model.max_input_tokens}, request input token count: {tokens}"
        )

    def answer(vectors: _Vectors) -> dict[str, Any]:
        return {"embedding": vectors[0], "embeddingsByType": {"float": vectors[0]}, "inputTextTokenCount": tokens}

    return EmbeddingRequest((fields["inputText"],), dimensions, answer)


def _cohere(fields: dict[str, Any], model: EmbeddingModel) -> EmbeddingRequest:
    v4 = model.format == "cohere_v4"
    problems = _keys(
        fields,
        "#",
        {"texts", "input_type"},
        {"truncate", "embedding_types"} | ({"output_dimension", "max_tokens"} if v4 else set()),
    )
    texts = fields.get("texts", [])
    if not isinstance(texts, list):
        problems.append(f"#/texts: expected type: JSONArray, found: {json_type(texts)}")
        texts = []
    elif not texts:
        problems.append("#/texts: expected minimum item count: 1, found: 0")
    if len(texts) > MAX_TEXTS:
        problems.append(f"#/texts: expected maximum item count: {MAX_TEXTS}, found: {len(texts)}")
    for place, text in enumerate(texts):
        problems += _text(text, f"#/texts/{place}", model)
    problems += _one_of(fields.get("input_type", "search_query"), "#/input_type", _PURPOSES)
    cuts = {"NONE", "LEFT", "RIGHT"} if v4 else {"NONE", "START", "END"}
    problems += _one_of(fields.get("truncate", "NONE"), "#/truncate", cuts)
    dimensions = fields.get("output_dimension", model.default_dimensions)
    problems += _one_of(dimensions, "#/output_dimension", model.dimensions)
    if fields.get("embedding_types", _FLOAT) != _FLOAT:
        problems.append("#/embedding_types/0: only [float] is served here")
    _refuse(problems)
    if fields.get("truncate", "NONE") == "NONE" and max(map(count_tokens, texts)) > model.max_input_tokens:
        raise ValidationFailed("Input is too long for requested model.")

    def answer(vectors: _Vectors) -> dict[str, Any]:
        by_type = "embedding_types" in fields or v4
        return {
            "embeddings": {"float": vectors} if by_type else vectors,
            "id": str(uuid.uuid4()),
            "response_type": "embeddings_by_type" if by_type else "embeddings_floats",
            "texts": texts,
        }

    return EmbeddingRequest(tuple(texts), dimensions, answer, counts_tokens=False)


def _nova(fields: dict[str, Any], model: EmbeddingModel) -> EmbeddingRequest:
    problems = _keys(fields, "#", {"taskType", "singleEmbeddingParams"}, {"schemaVersion"})
    problems += _one_of(fields.get("schemaVersion", _SCHEMA), "#/schemaVersion", {_SCHEMA})
    problems += _one_of(fields.get("taskType", "SINGLE_EMBEDDING"), "#/taskType", {"SINGLE_EMBEDDING"})
    params = _object(fields, "singleEmbeddingParams")
    path = "#/singleEmbeddingParams"
    problems += _keys(params, path, {"embeddingPurpose", "text"}, {"embeddingDimension"})
    problems += _one_of(params.get("embeddingPurpose", "CLUSTERING"), f"{path}/embeddingPurpose", _NOVA_PURPOSES)
    dimensions = params.get("embeddingDimension", model.default_dimensions)
    problems += _one_of(dimensions, f"{path}/embeddingDimension", model.dimensions)
    text = _object(params, "text")
    problems += _keys(text, f"{path}/text", {"truncationMode", "value"}, set())
    problems += _one_of(text.get("truncationMode", "NONE"), f"{path}/text/truncationMode", {"START", "END", "NONE"})
    problems += _text(text.get("value", "-"), f"{path}/text/value", model)
    _refuse(problems)

    def answer(vectors: _Vectors) -> dict[str, Any]:
        return {"embeddings": [{"embeddingType": "TEXT", "embedding": vectors[0]}]}

    return EmbeddingRequest((text["value"],), dimensions, answer)


_SCHEMA = "nova-multimodal-embed-v1"


def _object(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _keys(fields: Mapping[str, Any], path: str, needed: set[str], optional: set[str]) -> list[str]:
    missing = [f"{path}: required key [{name}] not found" for name in sorted(needed - fields.keys())]
    return missing + [
        f"{path}: extraneous key [{name}] is not permitted" for name in sorted(fields.keys() - needed - optional)
    ]


def _text(text: Any, path: str, model: EmbeddingModel) -> list[str]:
    if not isinstance(text, str):
        return [f"{path}: expected type: String, found: {json_type(text)}"]
    if not text:
        return [f"{path}: expected minLength: 1, actual: 0"]
    if model.max_characters is not None and len(text) > model.max_characters:
        return [f"{path}: expected maxLength: {model.max_characters}, actual: {len(text)}"]
    return []


def _one_of(value: Any, path: str, allowed: Sequence[Any] | set[str]) -> list[str]:
    known = not isinstance(value, bool | list | dict) and value in allowed
    return [] if known else [f"{path}: {json.dumps(value)} is not a valid enum value"]


def _refuse(problems: list[str]) -> None:
    if problems:
        raise malformed(problems)
