"""One action that gets a single reply, without I/O and clock."""

from __future__ import annotations

import random

from cicada import errors as codes
from cicada.protocol.actions import (
    ClientAction,
    ConfirmChange,
    CorpusAction,
    GiveFeedback,
    ManageConversations,
    ManageProfile,
    ManageUploads,
)
from cicada.protocol.conversations import ConversationReply, FeedbackGiven
from cicada.protocol.corpus import CorpusReply
from cicada.protocol.events import Confirmed, Refused
from cicada.protocol.profiles import ProfileReply
from cicada.protocol.uploads import UploadReply
from cicada_client.errors import ClientError, ConnectionLost, RequestRefused
from cicada_client.timing import Timing

_TRIED_AGAIN = frozenset({codes.ProfilesUnavailable.code, codes.DeliveryUnavailable.code})
"""Refusals of changes that are retried. A conflict is not: the caller must read the profile again first."""


CallAction = ManageProfile | ConfirmChange | CorpusAction | ManageConversations | GiveFeedback | ManageUploads
CallReply = ProfileReply | Confirmed | CorpusReply | ConversationReply | FeedbackGiven | UploadReply


def feedback_key(request_id: str) -> str:
    """How the keys of the calls begin that rate a request."""
    return f"{request_id} feedback"


class Call:
    """Follows one call to its reply over as many connections as that takes.

    It is told what happens as an :class:`~cicada_client.exchange.Exchange` is. The action is sent again until it is
    answered: the same ``requestId`` twice is one change.
    """

    def __init__(self, action: CallAction, timing: Timing, rng: random.Random) -> None:
        """``action`` is sent until it is answered."""
        self.reply: CallReply | None = None
        self.failure: ClientError | None = None
        self.stalled = False
        """Whether the connection delivers nothing any more and should be closed."""
        self._action = action
        self._timing = timing
        self._rng = rng
        self._connected = False
        self._due: float | None = None
        self._waits_for_reply = False
        self._tries = 0
        self._progress = 0

    @property
    def request_id(self) -> str:
        """What its reply is known by."""
        return self._action.request_id

    @property
    def key(self) -> str:
        """Tells it from everything else that is open: a request may have several confirmations, and be rated."""
        if isinstance(self._action, ConfirmChange):
            return f"{self._action.request_id} {self._action.confirmation_id}"
        if isinstance(self._action, GiveFeedback):
            return f"{feedback_key(self._action.request_id)} {id(self)}"
        return self._action.request_id

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.reply is not None or self.failure is not None

    @property
    def deadline(self) -> float | None:
        """When :meth:`tick` has something to do, if nothing happens before."""
        return self._due if self._connected and not self.ended and not self.stalled else None

    def connected(self, now: float) -> list[ClientAction]:
        """A new connection is open."""
        self._connected = True
        return self._send(now)

    def disconnected(self) -> None:
        """The connection is lost, and with it an awaited reply."""
        self._connected = self.stalled = False

    def abandon(self, failure: ClientError) -> None:
        """There will be no connection."""
        if not self.ended:
            self.failure = failure

    def replied(self, reply: CallReply) -> None:
        """The reply has come."""
        if not self.ended:
            self.reply = reply

    def refused(self, refusal: Refused, now: float) -> list[ClientAction]:
        """The server refuses it: for good, or for the moment."""
        if not self.ended:
            failure = RequestRefused.of(refusal)
            if self._is_tried_again(refusal):
                self._try_again(failure, now)
            else:
                self.failure = failure
        return []

    def fault(self, message: str, now: float, progress: int = 0) -> list[ClientAction]:
        """The gateway failed with some frame: perhaps with this one. ``progress``: as an exchange is told it."""
        if not self.ended and self._waits_for_reply:
            moving, self._progress = progress > self._progress, progress
            self._try_again(RequestRefused("gateway_fault", message), now, moving=moving)
        return []

    def tick(self, now: float) -> list[ClientAction]:
        """Do what is due: send it again after a pause, or give up a connection that brings no reply."""
        if self.deadline is None or self.deadline > now:
            return []
        if not self._waits_for_reply:
            return self._send(now)
        self._tries += 1
        if self._tries > self._timing.attempts:
            self.failure = ConnectionLost("no reply came")
        else:
            self.stalled = True
        return []

    def _is_tried_again(self, refusal: Refused) -> bool:
        if isinstance(self._action, CorpusAction):  # a limit is freed by its time: the caller decides
            return refusal.retryable and refusal.limit is None
        return refusal.code in _TRIED_AGAIN

    def _send(self, now: float) -> list[ClientAction]:
        self._waits_for_reply, self._due = True, now + self._timing.reply_s
        return [self._action]

    def _try_again(self, failure: ClientError, now: float, *, moving: bool = False) -> None:
        self._tries += 1
        if self._tries > self._timing.attempts and not moving:
            self.failure = failure
            return
        self._waits_for_reply = False
        self._due = now + self._timing.backoff_s(self._tries, self._rng)
