"""Requests to one OpenAI-compatible endpoint, and their responses as streams of chunks.

Redirects are not followed: the key would go with them.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError

from cicada.errors import ModelRefused, ModelUnavailable, StreamBroken
from cicada.models.failure import Failure
from cicada.models.openai_errors import EndpointFault, complaint_in, read_complaint, read_retry_after, status_in
from cicada.models.openai_events import DONE, EventParser
from cicada.models.stopping import track_pool

MAX_ERROR_BYTES = 64 * 1024
"""Of an error's body, what is read."""
_OK = 200
_PIECE_BYTES = 16 * 1024


class ChatConnection:
    """The connections to one endpoint. Thread-safe, and shared by all its models."""

    def __init__(
        self,
        base_url: str,
        *,
        read_timeout_s: float = 60.0,
        connect_timeout_s: float = 3.0,
        max_connections: int = 16,
        authorities: str | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """Connect on first use.

        ``base_url`` precedes ``/chat/completions``. The read time-out must exceed a model's ``silence_s``, which ends a
        silent stream sooner. ``authorities`` is a file of trusted certificates, by default the system's.
        """
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._timeout = urllib3.Timeout(connect=connect_timeout_s, read=read_timeout_s)
        self._manager = urllib3.PoolManager(
            num_pools=1, maxsize=max_connections, cert_reqs="CERT_REQUIRED", ca_certs=authorities
        )
        track_pool(self._manager)
        self._now_s = now_s

    def open(self, body: Mapping[str, Any], key: str | None) -> ChunkStream:
        """Post a request.

        Raises:
            EndpointFault: it is answered with an error.
            ModelRefused: the answer is not a stream.
            Exception: one that :func:`read_transport` reads.
        """
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "User-Agent": "cicada"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        response = self._manager.request(
            "POST",
            self._url,
            body=json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
            headers=headers,
            timeout=self._timeout,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        sent = [str(message["content"]) for message in body["messages"]] + ([] if key is None else [key])
        try:
            self._check(response, sent)
        except BaseException:
            response.close()
            raise
        return ChunkStream(response, sent)

    def _check(self, response: Any, sent: Sequence[str]) -> None:
        if response.status != _OK:
            retry_after_s = read_retry_after(response.headers, now_s=self._now_s())
            raise EndpointFault(response.status, read_complaint(_bounded(response)), retry_after_s, sent=sent)
        kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
        if kind == "application/json":
            complaint = read_complaint(_bounded(response))
            if complaint.message or complaint.code:
                raise EndpointFault(status_in(complaint), complaint, sent=sent)
            raise ModelRefused("the endpoint did not stream its response")


def _bounded(response: Any) -> bytes:
    """The beginning of an error's body; empty for one that breaks off, as the status is known."""
    try:
        content: bytes = response.read(MAX_ERROR_BYTES, decode_content=True)
    except (HTTPError, http.client.HTTPException, OSError):
        return b""
    return content


class ChunkStream:
    """The chunks of one response, as :class:`cicada.models.stream_reader.EventStream`.

    An event is a chunk, as JSON's types; :data:`cicada.models.openai_events.DONE`; or an empty mapping, for what a
    server sends only to keep the connection alive.
    """

    def __init__(self, response: Any, sent: Sequence[str]) -> None:
        """``response`` is unread; no error repeats a text in ``sent``."""
        self._response = response
        self._sent = sent
        self._done = False

    def __iter__(self) -> Iterator[Mapping[str, Any] | str]:
        """The events. Raises StreamBroken, EndpointFault for an error in the stream, and what a broken read raises."""
        parser = EventParser()
        for piece in self._pieces():
            for data in parser.feed(piece):
                if data.strip() == DONE:
                    self._done = True
                    yield DONE
                else:
                    yield self._chunk(data) if data else {}

    def close(self) -> None:
        """Release the connection, or close it if the stream has not ended."""
        if self._done:
            try:
                self._response.drain_conn()
            except (HTTPError, http.client.HTTPException, OSError):
                pass
            else:
                self._response.release_conn()
                return
        self._response.close()

    def _pieces(self) -> Iterator[bytes]:
        """The body's bytes, as they arrive."""
        response = self._response
        if response.chunked:
            yield from response.read_chunked(decode_content=True)
            return
        # urllib3 1 has no read1, and its read waits until it has as much as it was asked for.
        read = response.read1 if hasattr(response, "read1") else response.read
        size = _PIECE_BYTES if hasattr(response, "read1") else 1
        while piece := read(size, decode_content=True):
            yield piece

    def _chunk(self, data: str) -> Mapping[str, Any]:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StreamBroken("an event of the stream is not valid JSON") from error
        if not isinstance(chunk, dict):
            raise StreamBroken("an event of the stream is not a JSON object")
        if chunk.get("error"):
            complaint = complaint_in(chunk)
            raise EndpointFault(status_in(complaint), complaint, sent=self._sent)
        return chunk


def read_transport(error: Exception) -> Failure | None:
    """What a failed connection means; None for any other error."""
    if isinstance(error, (SSLError, ssl.SSLCertVerificationError)) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Failure(ModelRefused("the endpoint's certificate is not trusted"), retry=False, free=True)
    if isinstance(error, (HTTPError, http.client.HTTPException, OSError)):
        free = isinstance(error, (NewConnectionError, ConnectTimeoutError))
        told = f"the connection to the endpoint failed: {type(error).__name__}"
        return Failure(ModelUnavailable(told), retry=True, free=free)
    return None
