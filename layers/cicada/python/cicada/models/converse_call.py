"""One call of ConverseStream, whatever it is for: an answer without tools, or a turn that may use some."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from cicada.models.bedrock import read_failure
from cicada.models.converse_events import NORMAL_STOPS, MessageStop, incomplete, read_event
from cicada.models.converse_turn import TOOL_USE, StreamedTurn
from cicada.models.failure import Failure
from cicada.models.sampling import Sampling
from cicada.models.stream_reader import EventStream
from cicada.models.streaming import Said, Stop

logger = logging.getLogger(__name__)


class ConverseCall:
    """One try, as :class:`cicada.models.streaming.Call`."""

    def __init__(
        self,
        client: Any,
        request: Mapping[str, Any],
        sent: dict[str, float],
        sampling: Sampling,
        *,
        turn: StreamedTurn | None = None,
    ) -> None:
        """Make a call.

        Args:
            client: boto3's ``bedrock-runtime`` client.
            request: ConverseStream's parameters.
            sent: the sampling parameters among them.
            sampling: learns what the model refuses.
            turn: gathers the turn's blocks, where tools are offered: only then is their use a normal end.
        """
        self._client = client
        self._request = request
        self._sent = sent
        self._sampling = sampling
        self._turn = turn

    def open(self) -> EventStream:
        """See the port."""
        stream: EventStream = self._client.converse_stream(**self._request)["stream"]
        return stream

    def read(self, event: Mapping[str, Any]) -> Iterable[Said]:
        """See the port."""
        if self._turn is not None:
            self._turn.add(event)
        said = read_event(event)
        if isinstance(said, MessageStop):
            normal = said.reason in NORMAL_STOPS or (said.reason == TOOL_USE and self._turn is not None)
            return (Stop(said.reason, None if normal else type(incomplete(said.reason, None))),)
        return () if said is None else (said,)

    def failure(self, error: Exception, *, opened: bool) -> Failure | None:
        """See the port."""
        return read_failure(error) if isinstance(error, ClientError) or not opened else None

    def learn(self, failure: Failure) -> bool:
        """See the port."""
        model_id = str(self._request["modelId"])
        if not failure.invalid or not self._sampling.learn(model_id, self._sent, str(failure.error)):
            return False
        logger.warning("the model refuses a sampling parameter", extra={"model": model_id})
        return True
