"""The faults of a run: what each is, and in which order they come."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """A fault switch of the local cloud, and what it is armed with."""

    name: str
    params: Mapping[str, Any]

    @property
    def told(self) -> str:
        """As it is counted: its name, and what tells it from others of the name."""
        kind = next((self.params[key] for key in _TELLING if key in self.params), None)
        return f"{self.name} {kind}" if kind else self.name


_TELLING = ("mode", "exception", "stop_reason", "operation")


def _fault(name: str, **params: Any) -> Fault:
    return Fault(name, params)


CUT_MODES = ("exception", "reset", "silent", "half_frame", "corrupt", "garbled", "stall")
STREAM_EXCEPTIONS = (
    "internalServerException",
    "modelStreamErrorException",
    "throttlingException",
    "serviceUnavailableException",
)
STOP_REASONS = ("max_tokens", "guardrail_intervened", "content_filtered", "malformed_model_output")

MODEL = (
    _fault("bedrock.throttle", times=1),
    _fault("bedrock.throttle", times=3),
    _fault("bedrock.error", times=1, exception="InternalServerException", status=500),
    _fault("bedrock.error", times=1, exception="ServiceUnavailableException", status=503),
    _fault("bedrock.error", times=1, exception="ModelTimeoutException", status=408),
    _fault("bedrock.error", times=1, exception="ModelNotReadyException", status=429),
    _fault("bedrock.error", times=1, exception="AccessDeniedException", status=403),
    _fault("bedrock.error", times=1, exception="ModelErrorException", status=424),
    *(_fault("bedrock.cut", times=1, mode=mode) for mode in CUT_MODES if mode != "exception"),
    *(_fault("bedrock.cut", times=1, mode="exception", exception=name) for name in STREAM_EXCEPTIONS),
    _fault("bedrock.cut", times=1, mode="corrupt", framing="close"),
    *(_fault("bedrock.stop", times=1, stop_reason=reason) for reason in STOP_REASONS),
    _fault("bedrock.refuse", times=1),
    _fault("bedrock.embed_throttle", times=2),
    _fault("bedrock.embed_error", times=1, exception="InternalServerException", status=500),
    _fault("bedrock.embed_refuse", times=1),
    _fault("bedrock.embed_slow", times=1, first_ms=1500),
)
"""How a model fails."""
STORE = (
    *(_fault("dynamodb.throttle", times=2, operation=name) for name in ("UpdateItem", "PutItem", "GetItem", "Query")),
    *(_fault("dynamodb.lost_ack", times=1, operation=name) for name in ("UpdateItem", "PutItem")),
    _fault("dynamodb.error", times=1, operation="UpdateItem"),
    _fault("dynamodb.slow", times=2, operation="UpdateItem", delay_ms=1200),
    _fault("s3.throttle", times=2),
    _fault("s3.error", times=1),
    _fault("s3.slow", times=1, delay_ms=800),
)
"""How the table and the bucket fail."""
POSTS = (
    _fault("gateway.busy", times=2),
    _fault("gateway.gone", times=1),
    _fault("gateway.lost_ack", times=1),
    _fault("gateway.slow", times=1, delay_ms=1800),
    _fault("gateway.drop", times=1, after=2),
)
"""How posts to connections fail."""
STARTS = (
    _fault("stepfunctions.throttle", times=2, operation="StartExecution"),
    _fault("stepfunctions.error", times=1, operation="StartExecution"),
    _fault("stepfunctions.lost_ack", times=1, operation="StartExecution"),
    _fault("stepfunctions.duplicate_start", times=1),
    _fault("stepfunctions.lost_start", times=1),
)
"""How the workflow's start fails, or comes twice."""
FUNCTIONS = (
    _fault("functions.throttle", times=1),
    _fault("functions.slow_start", times=1, delay_ms=700),
)
"""How the function service fails, beside kills."""

ALL = (*MODEL, *STORE, *POSTS, *STARTS, *FUNCTIONS)


LATER_MODEL_SHARE = 0.25
"""Of the faults after the first round, how many are the model's: with more, its circuit breaker would hardly close."""


class Faults:
    """Draws faults: every one once in a random order, then any, the model's less often."""

    def __init__(self, rng: random.Random, faults: Sequence[Fault] = ALL) -> None:
        self._rng = rng
        self._model = tuple(fault for fault in faults if fault in MODEL)
        self._others = tuple(fault for fault in faults if fault not in MODEL)
        self._first = list(faults)
        rng.shuffle(self._first)

    @property
    def due(self) -> int:
        """How many have not been drawn yet."""
        return len(self._first)

    def __iter__(self) -> Iterator[Fault]:
        return self

    def __next__(self) -> Fault:
        drawn = self._first.pop() if self._first else self._rng.choice(self._later())
        if drawn.name in ("bedrock.cut", "bedrock.stop"):
            return Fault(drawn.name, {**drawn.params, "after": self._rng.randrange(0, 25)})
        return drawn

    def _later(self) -> Sequence[Fault]:
        """What is drawn from after the first round."""
        model = self._rng.random() < LATER_MODEL_SHARE
        return (self._model if model else self._others) or self._model
