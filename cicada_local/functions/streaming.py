"""A response that arrives in pieces: from a process's Runtime API to whoever invoked the function.

Source: AWS Lambda Developer Guide, "Response streaming for Lambda functions" and "Implementing response streaming in a
custom runtime".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

MAX_STREAMED_BYTES = 200 * 1024 * 1024
"""What one streamed response may hold."""


@dataclass(frozen=True)
class StreamError:
    """How a response ended that had begun."""

    type: str
    body: str = ""
    """As the runtime gave it: base64, of JSON."""


class ResponseStream:
    """Takes pieces as the process writes them; whoever reads slowly, or no longer, does not hold the process up."""

    def __init__(self) -> None:
        self.content_type = ""
        """Known once it has begun."""
        self.error: StreamError | None = None
        """Known once it has ended."""
        self.begun = asyncio.Event()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._ended = False

    def begin(self, content_type: str) -> None:
        """The process has begun to write."""
        self.content_type = content_type
        self.begun.set()

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        if piece:
            self._pieces.put_nowait(piece)

    def end(self, error: StreamError | None = None) -> None:
        """There will be no more. What is said after the first time does not count."""
        if not self._ended:
            self._ended = True
            self.error = error
            self._pieces.put_nowait(None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The pieces, as they come."""
        while (piece := await self._pieces.get()) is not None:
            yield piece
