"""The Python client: questions in, streamed and cited answers out, whatever the connection does meanwhile.

See :class:`CicadaClient`. Events are the models of :mod:`cicada.protocol.events`, and :class:`UnknownEvent` for what a
newer server sends.
"""

from clients.python.client import CicadaClient
from clients.python.errors import (
    AnswerFailed,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    InvalidQuestion,
    RequestExpired,
    RequestRefused,
    RequestUnknown,
    Unauthorized,
)
from clients.python.frames import ClientEvent, EventFrame, UnknownEvent
from clients.python.keeper import Status, TokenProvider
from clients.python.profiles import History, ProfilesClient
from clients.python.stream import AnswerStream
from clients.python.tail import Answer, RequestTail
from clients.python.timing import Timing

__all__ = [
    "Answer",
    "AnswerFailed",
    "AnswerStream",
    "CicadaClient",
    "ClientError",
    "ClientEvent",
    "ConnectionLost",
    "ConnectionRefused",
    "EventFrame",
    "History",
    "InvalidQuestion",
    "ProfilesClient",
    "RequestExpired",
    "RequestRefused",
    "RequestTail",
    "RequestUnknown",
    "Status",
    "Timing",
    "TokenProvider",
    "Unauthorized",
    "UnknownEvent",
]
