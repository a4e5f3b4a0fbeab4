"""The names of circuit breakers, one per dependency, and which errors count as a dependency's failure."""

from __future__ import annotations

from typing import Literal

from cicada.errors import (
    AgentCapReached,
    AgentUnavailable,
    AnswerIncomplete,
    CacheUnavailable,
    IndexCorrupt,
    IndexMismatch,
    IndexMissing,
    IndexUnavailable,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    StreamBroken,
)

INDEX = "index"
CACHE = "cache"
_MODEL = "model"
_EMBEDDER = "embedder"
_AGENT = "agent"

_Errors = tuple[type[Exception], ...]
_MODELS: tuple[_Errors, _Errors] = ((ModelBusy, ModelUnavailable, StreamBroken), (ModelRefused, AnswerIncomplete))
_VERDICTS: dict[str, tuple[_Errors, _Errors]] = {
    _MODEL: _MODELS,
    _EMBEDDER: _MODELS,
    INDEX: ((IndexUnavailable, IndexCorrupt), (IndexMissing, IndexMismatch)),
    CACHE: ((CacheUnavailable,), ()),
    _AGENT: ((AgentUnavailable, *_MODELS[0]), (AgentCapReached, *_MODELS[1])),
}
"""By kind of dependency: the errors that mean it is failing, and those that mean it responded."""


def model_breaker(model_id: str) -> str:
    """The breaker of a text model."""
    return f"{_MODEL}:{model_id}"


def embedder_breaker(model_id: str) -> str:
    """The breaker of an embedding model."""
    return f"{_EMBEDDER}:{model_id}"


def agent_breaker(name: str) -> str:
    """The breaker of a service that runs agents, by the name of its adapter."""
    return f"{_AGENT}:{name}"


def verdict(name: str, error: BaseException) -> Literal["failing", "answered", "nothing"]:
    """What an error says about a dependency.

    ``nothing`` if another dependency raised it (a question that could not be embedded says nothing about the index), or
    we did: a spent budget, a cancelled answer.
    """
    failing, answered = _VERDICTS[name.partition(":")[0]]
    if isinstance(error, failing):
        return "failing"
    return "answered" if isinstance(error, answered) else "nothing"
