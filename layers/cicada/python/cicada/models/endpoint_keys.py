"""An endpoint's key: read from AWS Secrets Manager when it is first needed, and never written anywhere."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from botocore.config import Config

from cicada.errors import ModelError, ModelRefused, ModelUnavailable
from cicada.models.bedrock import read_failure

KEPT_S = 300.0
"""Seconds before the key is read again: a rotated key is found after this, or after the first refusal."""
SECRETS_CONFIG = Config(
    connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2}, tcp_keepalive=True
)
"""For the ``secretsmanager`` client."""


@dataclass(frozen=True)
class Key:
    """A key."""

    value: str = field(repr=False)
    fresh: bool
    """Whether it was read just now."""


class Keys(Protocol):
    """Gives the key of one endpoint."""

    def read(self, *, time_left_s: float) -> Key:
        """The key. Raises ModelBusy, ModelUnavailable or ModelRefused if it cannot be read in time."""

    def refused(self, key: Key) -> bool:
        """The endpoint refused this key; true if reading again may return another."""


class GivenKey:
    """A key that the caller has."""

    def __init__(self, value: str) -> None:
        """Raises ModelRefused if the key cannot be sent."""
        self._key = Key(_sendable(value), fresh=True)

    def read(self, *, time_left_s: float) -> Key:  # noqa: ARG002 - it is here
        """See the port."""
        return self._key

    def refused(self, key: Key) -> bool:  # noqa: ARG002 - there is no other
        """See the port."""
        return False


class SecretKey:
    """The key in a secret: its whole text, or the only value of a JSON object. Thread-safe.

    A separate thread reads it, bounded by the client's time-outs. Callers wait for that one read within their own time,
    and share its outcome. Failures are not kept.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        secret_arn: str,
        *,
        kept_s: float = KEPT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``client`` makes boto3's ``secretsmanager`` client (:data:`SECRETS_CONFIG`) on first use."""
        self._make_client = client
        self._client: Any = None
        self._secret_arn = secret_arn
        self._kept_s = kept_s
        self._clock = clock
        self._lock = threading.Lock()
        self._value: str | None = None
        self._read_at = 0.0
        self._reading: Future[str] | None = None

    def read(self, *, time_left_s: float) -> Key:
        """See the port."""
        with self._lock:
            if self._value is not None and self._clock() - self._read_at < self._kept_s:
                return Key(self._value, fresh=False)
            reading = self._reading
            if reading is None:
                reading = Future()
                threading.Thread(target=self._read, args=(reading,), name="endpoint-key", daemon=True).start()
                self._reading = reading
        try:
            return Key(reading.result(max(0.0, time_left_s)), fresh=True)
        except TimeoutError as error:
            raise ModelUnavailable("reading the endpoint's key timed out") from error
        except ModelError as error:  # each caller gets an error object of its own
            raise type(error)(str(error)) from error

    def _read(self, reading: Future[str]) -> None:
        try:
            value = _key_in(self._text())
        except Exception as error:  # raised in the waiting callers
            with self._lock:
                self._reading = None
            reading.set_exception(error)
            return
        with self._lock:
            self._reading = None
            self._value, self._read_at = value, self._clock()
        reading.set_result(value)

    def refused(self, key: Key) -> bool:
        """See the port."""
        with self._lock:
            if self._value == key.value:
                self._value = None
        return not key.fresh

    def _text(self) -> str:
        if self._client is None:
            # botocore logs every response at DEBUG, and Lambda can be set to that.
            logging.getLogger("botocore.parsers").setLevel(logging.INFO)
            self._client = self._make_client()
        try:
            secret = self._client.get_secret_value(SecretId=self._secret_arn)
        except Exception as error:
            failure = read_failure(error)
            if failure is None:
                raise
            raise type(failure.error)(f"the endpoint's key could not be read: {failure.error}") from error
        text = secret.get("SecretString")
        if not isinstance(text, str):
            raise ModelRefused("the endpoint's secret is not text")
        return text


def _key_in(text: str) -> str:
    """The key in a secret's text. Errors never quote it."""
    try:
        held = json.loads(text)
    except ValueError:
        held = None
    if isinstance(held, dict):
        values = list(held.values())
        if len(values) != 1 or not isinstance(values[0], str):
            raise ModelRefused("the endpoint's secret must be the key, or an object with one text value")
        text = values[0]
    return _sendable(text)


def _sendable(text: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ModelRefused("the endpoint's secret contains no usable key")
    return key
