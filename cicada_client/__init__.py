"""The Python client: questions in, streamed and cited answers out, whatever the connection does meanwhile.

See :class:`CicadaClient`, and :class:`SyncCicadaClient` for programs without asyncio. Events are the models of
:mod:`cicada.protocol.events`, and :class:`UnknownEvent` for what a newer server sends.
"""

from cicada.usage.limits import LimitState
from cicada_client.client import CicadaClient
from cicada_client.connection_manager import Status, TokenProvider
from cicada_client.conversations import ConversationsClient
from cicada_client.errors import (
    AnswerFailed,
    ClientError,
    ConnectionLost,
    ConnectionRefused,
    InvalidQuestion,
    NotSignedIn,
    RequestExpired,
    RequestRefused,
    RequestUnknown,
    Unauthorized,
    UploadFailed,
)
from cicada_client.frames import ClientEvent, EventFrame, UnknownEvent
from cicada_client.profiles import History, ProfilesClient
from cicada_client.signed_in import SignedIn
from cicada_client.stream import AnswerStream
from cicada_client.sync import SyncAnswerStream, SyncCicadaClient
from cicada_client.tail import Answer, RequestTail
from cicada_client.timing import Timing
from cicada_client.uploads import UploadsClient

__all__ = [
    "Answer",
    "AnswerFailed",
    "AnswerStream",
    "CicadaClient",
    "ClientError",
    "ClientEvent",
    "ConnectionLost",
    "ConnectionRefused",
    "ConversationsClient",
    "EventFrame",
    "History",
    "InvalidQuestion",
    "LimitState",
    "NotSignedIn",
    "ProfilesClient",
    "RequestExpired",
    "RequestRefused",
    "RequestTail",
    "RequestUnknown",
    "SignedIn",
    "Status",
    "SyncAnswerStream",
    "SyncCicadaClient",
    "Timing",
    "TokenProvider",
    "Unauthorized",
    "UnknownEvent",
    "UploadFailed",
    "UploadsClient",
]
