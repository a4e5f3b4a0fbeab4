"""What the Bedrock adapters share: the client and its configuration, and the reading of its exceptions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from cicada.errors import AnswerMalformed, ModelBusy, ModelError, ModelRefused, ModelUnavailable, StreamBroken
from cicada.models.failure import TRANSPORT_ERRORS, Failure, code_and_status
from cicada.models.stopping import track_connections

QUERY_READ_TIMEOUT_S = 4.0
"""Read time-out of a client for query vectors: a call under way can outlast its time budget by as much."""


def bedrock_client_config(
    *, read_timeout_s: float = 30.0, connect_timeout_s: float = 3.0, max_connections: int = 16
) -> Config:
    """The configuration that the adapters' ``bedrock-runtime`` client needs.

    botocore makes one attempt: the adapters retry within the caller's time budget, and two layers would multiply. For
    generation the read time-out must exceed the model's ``silence_s``, which ends a silent stream sooner; query vectors
    need a client of their own with :data:`QUERY_READ_TIMEOUT_S`. ``max_connections`` is at least the embedder's
    ``parallelism``.
    """
    return Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        max_pool_connections=max_connections,
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )


class BedrockModel:
    """A model called through a boto3 client, whose connections are prepared for being closed.

    The model id is that of a model or of an inference profile, or the ARN of either.
    """

    def __init__(self, client: Any, model_id: str) -> None:
        track_connections(client)
        self._client = client
        self.model_id = model_id

    def _invoke(self, body: Mapping[str, Any]) -> bytes:
        """InvokeModel with a body of JSON; the response's body."""
        response = self._client.invoke_model(
            modelId=self.model_id, contentType="application/json", accept="application/json", body=json.dumps(body)
        )
        content: bytes = response["body"].read()
        return content


_CODES: dict[str, tuple[type[ModelError], bool]] = {
    "ThrottlingException": (ModelBusy, True),
    "ModelNotReadyException": (ModelBusy, True),
    "TooManyRequestsException": (ModelBusy, True),
    "ServiceQuotaExceededException": (ModelBusy, False),
    "ServiceUnavailableException": (ModelUnavailable, True),
    "InternalServerException": (ModelUnavailable, True),
    "ModelTimeoutException": (ModelUnavailable, False),
    "ModelErrorException": (ModelUnavailable, False),
    "ModelStreamErrorException": (StreamBroken, False),
}
"""Errors of Bedrock Runtime by code: the class, and whether to call again. Any other code is read by its status."""

_INVALID_TOOL_USE = re.compile(r"invalid sequence as part of tool ?use", re.IGNORECASE)
"""What Amazon Nova's ModelErrorException and modelStreamErrorException say when the model, not the service, failed."""

_NOT_REACHED = (EndpointConnectionError, ConnectTimeoutError)


def read_failure(error: Exception) -> Failure | None:
    """Read what a call to Bedrock raised; None for a bug."""
    if isinstance(error, ClientError):
        return _read_client_error(error)
    if isinstance(error, TRANSPORT_ERRORS):
        free = isinstance(error, _NOT_REACHED)
        return Failure(ModelUnavailable(f"the connection to the model failed: {error}"), retry=True, free=free)
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return Failure(ModelRefused(str(error)), retry=False, free=True)
    return None


def _read_client_error(error: ClientError) -> Failure:
    code, status = code_and_status(error)
    if _INVALID_TOOL_USE.search(str(error)):
        return Failure(AnswerMalformed(str(error)), retry=False)
    if code in _CODES:
        kind, retry = _CODES[code]
    elif status == HTTPStatus.TOO_MANY_REQUESTS:
        kind, retry = ModelBusy, True
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind, retry = ModelUnavailable, True
    else:
        kind, retry = ModelRefused, False
    free = kind in (ModelBusy, ModelRefused) or status == HTTPStatus.SERVICE_UNAVAILABLE
    return Failure(kind(str(error)), retry, invalid=code == "ValidationException", free=free)
