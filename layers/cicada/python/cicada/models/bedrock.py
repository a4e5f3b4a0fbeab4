"""What the Bedrock adapters share: the client and its configuration, and how its exceptions are read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from cicada.errors import ModelBusy, ModelError, ModelRefused, ModelUnavailable, StreamBroken
from cicada.models.failure import TRANSPORT_ERRORS, Failure
from cicada.models.stopping import carry_lines

QUERY_READ_TIMEOUT_S = 4.0
"""How long one read may wait of a client for queries' vectors: a call that is under way can outlast its time budget by
as much, and somebody waits for the answer."""


def bedrock_client_config(
    *, read_timeout_s: float = 30.0, connect_timeout_s: float = 3.0, max_connections: int = 16
) -> Config:
    """The configuration that the adapters' ``bedrock-runtime`` client needs.

    botocore makes one attempt: retries are the adapters' own, inside the caller's time budget, and two layers of
    retries would multiply.

    Args:
        read_timeout_s: how long one read may wait. For generation, more than the model's ``silence_s``, which ends a
            silent stream sooner. For queries' vectors, :data:`QUERY_READ_TIMEOUT_S`, on a client of their own.
        max_connections: kept open; at least the embedder's ``parallelism``.
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
        carry_lines(client)
        self._client = client
        self._model_id = model_id

    @property
    def model_id(self) -> str:
        """The service's id of the model."""
        return self._model_id


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

_NOT_REACHED = (EndpointConnectionError, ConnectTimeoutError)


def read_failure(error: Exception) -> Failure | None:
    """Read what a call to Bedrock raised; None if it is none of its failures, but a bug.

    In-stream errors name their code in lower camel case (``throttlingException``), early ones in upper.
    """
    if isinstance(error, ClientError):
        return _read_client_error(error)
    if isinstance(error, TRANSPORT_ERRORS):
        free = isinstance(error, _NOT_REACHED)
        return Failure(ModelUnavailable(f"the connection to the model failed: {error}"), retry=True, free=free)
    if isinstance(error, BotoCoreError):  # no credentials, no Region, a parameter that the API's model rules out
        return Failure(ModelRefused(str(error)), retry=False, free=True)
    return None


def _read_client_error(error: ClientError) -> Failure:
    code = str(error.response.get("Error", {}).get("Code", ""))
    code = code[:1].upper() + code[1:]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
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
