"""The client's exceptions.

::

    ClientError
     ├── InvalidQuestion     refused before it was sent (also a ValueError)
     ├── ConnectionLost      no connection could be had, or kept, within the allowed attempts
     ├── ConnectionRefused   the server will not open a connection, and trying again is of no use
     │    ├── Unauthorized   it does not accept the token
     │    └── NotSignedIn    there is no token: nobody has signed in, or the sign-in has ended
     ├── RequestRefused      the server refused what was sent for this request
     ├── RequestExpired      the request's log is past its retention
     ├── RequestUnknown      this user has no such request
     └── AnswerFailed        the request ended with an ``error`` event

An answer that ends with an ``error`` event is no exception to those who read its events: only
:meth:`~cicada_client.client.CicadaClient.answer`, which returns whole answers, raises :class:`AnswerFailed`.
"""

from __future__ import annotations

from cicada.protocol.events import Refused
from cicada.usage.limits import LimitState


class ClientError(Exception):
    """The base of all client errors."""


class InvalidQuestion(ClientError, ValueError):
    """The question breaks the protocol; the message names the field."""


class ConnectionLost(ClientError):
    """The connection could not be opened or kept, or the client was closed. The server may still finish the answer."""


class ConnectionRefused(ClientError):
    """The server refuses the connection for a reason that a retry does not change."""


class Unauthorized(ConnectionRefused):
    """The token is missing or not accepted, or its user is not let in."""

    def __init__(self, message: str = "", *, status: int = 401) -> None:
        """``status``: the server's, 401 for a token and 403 for a user or an origin."""
        super().__init__(message)
        self.status = status


class NotSignedIn(ConnectionRefused):
    """There is no sign-in to take a token from, or it has ended; the message says what to do."""


class RequestRefused(ClientError):
    """The server refused a frame of this request."""

    def __init__(self, code: str, message: str, detail: str | None = None, *, limit: LimitState | None = None) -> None:
        """``limit``: the limit on use for which it was refused, if it was."""
        super().__init__(f"{message} ({code}{f': {detail}' if detail else ''})")
        self.code = code
        self.message = message
        self.detail = detail
        self.limit = limit

    @classmethod
    def of(cls, reply: Refused) -> RequestRefused:
        """The error for a refusal."""
        return cls(reply.code, reply.message, reply.detail, limit=reply.limit)


class UploadFailed(ClientError):
    """A document could not be sent to the store; ``code`` is the store's own, such as ``BadDigest``, if it told one."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message if code is None else f"{message} ({code})")
        self.code = code


class RequestExpired(ClientError):
    """The request's log is past its retention: it cannot be resumed; ask again."""


class RequestUnknown(ClientError):
    """This user has no such request."""


class AnswerFailed(ClientError):
    """The request ended without an answer; ``text`` is what was written until then."""

    def __init__(self, code: str, message: str, *, retryable: bool, text: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.text = text
