"""Uploads of documents: the action ``upload``, and the file itself, sent by the form that the server signs."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import urllib.error
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from cicada.protocol.actions import ManageUploads
from cicada.protocol.uploads import UploadBegun, UploadDeleted, Uploads
from cicada_client.call import CallReply
from cicada_client.errors import ClientError, InvalidQuestion, UploadFailed

CHUNK_BYTES = 256 * 1024
TIMEOUT_S = 60.0  # of silence while a file is sent
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_ERROR_BYTES = 4_096

Send = Callable[[ManageUploads], Awaitable[CallReply]]
Progress = Callable[[int, int], None]
"""Told how many of how many bytes are sent."""
ExpectedReply = TypeVar("ExpectedReply", UploadBegun, Uploads, UploadDeleted)


class UploadsClient:
    """The operations on uploads to collections.

    Each raises :class:`~cicada_client.errors.RequestRefused` where it is refused, with a code such as
    ``upload_forbidden``, or ``unknown_action`` where nobody may upload; and what asking can raise.
    """

    def __init__(self, send: Send) -> None:
        """``send`` brings an action's reply."""
        self._send = send

    async def begin(self, collection: str, name: str, *, size: int, sha256: str) -> UploadBegun:
        """Ask for the form that uploads a document of ``size`` bytes with this digest; :meth:`send` does all of it."""
        return await self._reply(
            UploadBegun, operation="begin", collection=collection, name=name, bytes=size, sha256=sha256
        )

    async def list(self, collection: str, *, cursor: str | None = None) -> Uploads:
        """List a page of a collection's uploads, by name. ``cursor``: the ``next`` of the page before."""
        return await self._reply(Uploads, operation="list", collection=collection, cursor=cursor)

    async def delete(self, collection: str, name: str) -> UploadDeleted:
        """Delete a document; the next run deletes its passages."""
        return await self._reply(UploadDeleted, operation="delete", collection=collection, name=name)

    async def send(
        self,
        collection: str,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        on_progress: Progress | None = None,
    ) -> UploadBegun:
        """Upload a file. It is loaded afterwards: :meth:`list` tells its state.

        Args:
            collection: the collection.
            path: the file, which is read twice and never held in memory.
            name: the document's path in the collection; the file's name when None.
            on_progress: is told how many of how many bytes are sent, on the client's event loop.

        Raises:
            UploadFailed: the store refused the file, or could not be reached.
            OSError: the file cannot be read.
        """
        file = Path(path)
        size, sha256 = await asyncio.to_thread(_measured, file)
        begun = await self.begin(collection, name or file.name, size=size, sha256=sha256)
        loop = asyncio.get_running_loop()

        def told(sent: int) -> None:
            if on_progress is not None:
                loop.call_soon_threadsafe(on_progress, sent, size)

        await asyncio.to_thread(_post, begun, file, size, told)
        return begun

    async def _reply(self, expected: type[ExpectedReply], **fields: Any) -> ExpectedReply:
        try:
            action = ManageUploads.model_validate({"requestId": str(uuid.uuid4()), **fields})
        except ValidationError as error:
            raise InvalidQuestion(str(error.errors(include_url=False, include_input=False)[0]["msg"])) from error
        reply = await self._send(action)
        if not isinstance(reply, expected):
            raise ClientError(f"the server answered upload with {reply.type}")
        return reply


def _measured(file: Path) -> tuple[int, str]:
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256")
        return data.tell(), digest.hexdigest()


def _post(begun: UploadBegun, file: Path, size: int, told: Callable[[int], None]) -> None:
    """Send the form. Raises UploadFailed and OSError."""
    url = urlsplit(begun.url)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
        raise UploadFailed(f"the server names a store without TLS: {begun.url}")
    boundary = secrets.token_hex(16)
    head, tail = _head(begun.fields, boundary), f"\r\n--{boundary}--\r\n".encode()
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Content-Length": str(len(head) + size + len(tail)),
    }
    with file.open("rb") as data:
        body = _body(head, data, tail, told)
        request = urllib.request.Request(begun.url, data=body, headers=headers, method="POST")  # noqa: S310 - see above
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                status = answer.status
        except urllib.error.HTTPError as error:
            found = re.search(rb"<Code>(\w+)</Code>", error.read(_MOST_ERROR_BYTES))
            raise UploadFailed(f"the store refused the document: HTTP {error.code}", _text(found)) from error
        except OSError as error:
            raise UploadFailed(f"the store could not be reached: {error}") from error
    if status not in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
        raise UploadFailed(f"the store answered with HTTP {status}")


def _text(found: re.Match[bytes] | None) -> str | None:
    return None if found is None else found[1].decode()


def _head(fields: Mapping[str, str], boundary: str) -> bytes:
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
    parts.append('Content-Disposition: form-data; name="file"; filename="file"\r\n\r\n')
    return "".join(f"--{boundary}\r\n{part}" for part in parts).encode()


def _body(head: bytes, data: BinaryIO, tail: bytes, told: Callable[[int], None]) -> Iterator[bytes]:
    yield head
    sent = 0
    while piece := data.read(CHUNK_BYTES):
        yield piece
        sent += len(piece)
        told(sent)
    yield tail
