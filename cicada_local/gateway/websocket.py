"""A client's WebSocket: frames in, messages out, on the connection that aiohttp accepted.

aiohttp's own WebSocketResponse hides the frames of a message, and API Gateway bounds each frame. So the frames are
read by websockets' protocol without I/O, which bounds frames and messages, and answers pings and closes by itself.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from aiohttp import web
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import SEND_EOF, Protocol, Side, State
from websockets.utils import accept_key

ABNORMAL_END = int(CloseCode.ABNORMAL_CLOSURE), "Connection closed abnormally"
"""How a connection ends without a close frame."""

_KERNEL_BUFFER_BYTES = 64 * 1024
_CLOSING_S = 2.0
"""How long a client may take to answer a close frame."""


class WebSocket:
    """An open WebSocket. Given to aiohttp as the connection's parser: it calls :meth:`feed_data`, :meth:`feed_eof`."""

    def __init__(
        self,
        transport: asyncio.Transport,
        on_message: Callable[[str | bytes], None],
        *,
        frame_bytes: int,
        message_bytes: int,
    ) -> None:
        self._transport = transport
        self._on_message = on_message
        self._frame_bytes = frame_bytes
        self._protocol = Protocol(Side.SERVER, state=State.OPEN, max_size=(message_bytes, frame_bytes))
        self._opcode = Opcode.TEXT
        self._message = bytearray()
        self._closed = asyncio.get_running_loop().create_future()
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None:
            # Or the kernel would take megabytes from a client that does not read.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER_BYTES)

    @property
    def open(self) -> bool:
        """No close has begun, from either side."""
        return self._protocol.state is State.OPEN and not self._transport.is_closing()

    @property
    def unsent_bytes(self) -> int:
        """What waits for the client to read."""
        return self._transport.get_write_buffer_size()

    @property
    def outcome(self) -> tuple[int, str]:
        """The close code and reason, as ``$disconnect`` tells them."""
        close = self._protocol.close_sent if not self._protocol.close_rcvd_then_sent else self._protocol.close_rcvd
        if close is None:
            return ABNORMAL_END
        if close.code == CloseCode.NO_STATUS_RCVD:
            return close.code, "Client-side close frame status not set"
        return close.code, close.reason

    def send(self, data: str | bytes) -> None:
        """Send one message, in frames of at most the limit: text, or binary for bytes. Returns at once."""
        encoded = data.encode() if isinstance(data, str) else data
        pieces = [encoded[at : at + self._frame_bytes] for at in range(0, len(encoded), self._frame_bytes)] or [b""]
        begin = self._protocol.send_text if isinstance(data, str) else self._protocol.send_binary
        begin(pieces[0], fin=len(pieces) == 1)
        for number, piece in enumerate(pieces[1:], start=2):
            self._protocol.send_continuation(piece, fin=number == len(pieces))
        self._flush()

    def close(self, code: int, reason: str) -> None:
        """Begin to close; the connection ends when the client answers, or soon."""
        if self.open:
            self._protocol.send_close(code, reason)
            self._flush()

    def cut(self, *, flush: bool = False) -> None:
        """End the connection without a close frame, after what is unsent where ``flush`` is set."""
        if flush:
            self._transport.close()
        else:
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait for the connection's end."""
        await asyncio.shield(self._closed)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take what the client has sent."""
        self._protocol.receive_data(data)
        self._flush()
        for frame in self._protocol.events_received():
            assert isinstance(frame, Frame)
            self._take(frame)
        return False, b""

    def feed_eof(self) -> None:
        """The connection has ended."""
        if self._protocol.state is not State.CLOSED:
            self._protocol.receive_eof()
        if not self._closed.done():
            self._closed.set_result(None)

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY):
            self._opcode = frame.opcode
            self._message.clear()
        elif frame.opcode is not Opcode.CONT:
            return
        self._message += frame.data
        if not frame.fin:
            return
        if self._opcode is Opcode.BINARY:
            self._on_message(bytes(self._message))
            return
        try:
            text = self._message.decode()
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "invalid UTF-8")
            self._flush()
            return
        self._on_message(text)

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if self._transport.is_closing():
                return
            if data == SEND_EOF:
                self._transport.write_eof()
            else:
                self._transport.write(data)
        if self._protocol.close_expected():
            # Not closed at once: bytes that the client has yet to send would turn the close into a reset, and the
            # close frame would be lost.
            asyncio.get_running_loop().call_later(_CLOSING_S, self._transport.abort)


class HandshakeInvalid(Exception):
    """The request is no WebSocket upgrade."""


def check_handshake(request: web.Request) -> None:
    """Raises HandshakeInvalid unless the request opens a WebSocket of version 13."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise HandshakeInvalid("not an upgrade to WebSocket")
    if "upgrade" not in (token.strip() for token in request.headers.get("Connection", "").lower().split(",")):
        raise HandshakeInvalid("not an upgrade of the connection")
    if request.headers.get("Sec-WebSocket-Version") != "13" or not request.headers.get("Sec-WebSocket-Key"):
        raise HandshakeInvalid("not a WebSocket of version 13")


async def accept(request: web.Request, subprotocol: str | None) -> web.StreamResponse:
    """Answer the upgrade with 101. No extension is negotiated."""
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": accept_key(request.headers["Sec-WebSocket-Key"]),
    }
    if subprotocol is not None:
        headers["Sec-WebSocket-Protocol"] = subprotocol
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    await response.prepare(request)
    return response
