"""AWS's event-stream encoding, the writing half.

A message is a prelude (total length, headers' length, CRC-32 of the two), headers, a payload and the CRC-32 of all that
precedes it; integers are big-endian. Source: the Smithy specification, "Amazon Event Stream Specification".
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32

_STRING = 7
_OVERHEAD_BYTES = 16
"""Prelude and closing CRC."""
_MAX_HEADERS_BYTES = 128 * 1024
_MAX_PAYLOAD_BYTES = 24 * 1024 * 1024


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message, whose headers are all strings.

    Raises:
        ValueError: a header's name is over 255 bytes or its value over 32,767; headers or payload are too long.
    """
    encoded = b"".join(_encode_header(name, value) for name, value in headers.items())
    if len(encoded) > _MAX_HEADERS_BYTES or len(payload) > _MAX_PAYLOAD_BYTES:
        raise ValueError(f"{len(encoded)} bytes of headers and {len(payload)} of payload are too much for one message")
    lengths = struct.pack("!II", _OVERHEAD_BYTES + len(encoded) + len(payload), len(encoded))
    message = lengths + struct.pack("!I", crc32(lengths)) + encoded + payload
    return message + struct.pack("!I", crc32(message))


def _encode_header(name: str, value: str) -> bytes:
    name_bytes, value_bytes = name.encode(), value.encode()
    if not 0 < len(name_bytes) <= 255 or len(value_bytes) > 32_767:
        raise ValueError(f"the header {name[:40]!r} is too long")
    return struct.pack("!B", len(name_bytes)) + name_bytes + struct.pack("!BH", _STRING, len(value_bytes)) + value_bytes


def encode_event(kind: str, content: Mapping[str, Any]) -> bytes:
    """An event, for example ``messageStop``, with its content as JSON."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, json.dumps(content, ensure_ascii=False).encode())


def encode_exception(kind: str, content: Mapping[str, Any]) -> bytes:
    """A modelled exception in the stream, for example ``throttlingException``."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return encode_message(headers, json.dumps(content, ensure_ascii=False).encode())
