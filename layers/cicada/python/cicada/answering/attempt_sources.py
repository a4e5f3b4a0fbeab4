"""The ``sources`` events of a request: an attempt's own, and those of the attempts before it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cicada.attempts.frame_limits import fit_sources
from cicada.attempts.strategy import AskedQuestion, Retrieved, collections_of
from cicada.delivery.ports import RequestLog, StoreFault
from cicada.delivery.record import RequestKey
from cicada.errors import IndexFailure, RequestUnknown
from cicada.protocol.events import Sources
from cicada.rights import Readable

logger = logging.getLogger(__name__)


def sources_event(attempt: int, asked: AskedQuestion, retrieved: Retrieved) -> Sources:
    """The event that tells what was found, within the limits of a frame."""
    return fit_sources(
        Sources(
            attempt=attempt,
            query=asked.query if asked.query != asked.question.query else None,
            reused=retrieved.reused,
            offered=retrieved.offered,
            index_version=retrieved.index_version,
            searched=retrieved.searched,
            engine=retrieved.engine,
            degraded=retrieved.degraded,
            sources=retrieved.sources,
        )
    )


def found_before(log: RequestLog, key: RequestKey, readable: Callable[[], Readable]) -> Sources | None:
    """The passages of the latest attempt that retrieved any, as far as they may be read now."""
    try:
        _, entries = log.read(key)
        may_read = readable()
    except (StoreFault, RequestUnknown, IndexFailure) as error:
        logger.info("passages of the earlier attempt could not be read", extra={"why": str(error)})
        return None
    for event in (entry.event() for entry in reversed(entries)):
        if isinstance(event, Sources):
            shown = tuple(one for one in event.sources if all(map(may_read.allows, collections_of([one]))))
            if shown:
                return event.model_copy(update={"sources": shown})
    return None
