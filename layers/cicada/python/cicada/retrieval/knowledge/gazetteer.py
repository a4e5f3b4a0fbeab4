"""Names found in a question without a model: those that the index knows, in microseconds and for nothing."""

from __future__ import annotations

from itertools import islice

from cicada.defaults import MIN_ENTITY_CONFIDENCE
from cicada.retrieval.knowledge.contracts import MAX_NAMES, Catalogue, Named
from cicada.retrieval.knowledge.gazetteer_index import NameSource
from cicada.retrieval.ports import Limits


class Gazetteer:
    """A :class:`cicada.retrieval.knowledge.contracts.Extractor` that looks known names up. Thread-safe.

    It knows the entities of the index's passages and the declared aliases, and finds nothing else: see
    :class:`cicada.retrieval.knowledge.gazetteer_names.KnownNames` for how.
    """

    def __init__(self, names: NameSource, *, min_confidence: float = MIN_ENTITY_CONFIDENCE) -> None:
        """Take where names come from, and the confidence below which one is dropped."""
        self._names = names
        self._min_confidence = min_confidence

    def extract(self, question: str, catalogue: Catalogue, limits: Limits) -> tuple[Named, ...]:
        """The names in a question: see the port. Of the limits it takes time, where the names have yet to be read.

        Raises:
            IndexFailure: the names could not be read.
            OutOfTime, Stopped: they were not read in time, or nobody wants them any more.
        """
        sure = (
            Named(one.name, one.confidence, one.matched, "gazetteer")
            for one in self._names.names(catalogue, limits).find(question)
            if one.confidence >= self._min_confidence
        )
        return tuple(islice(sure, MAX_NAMES))
