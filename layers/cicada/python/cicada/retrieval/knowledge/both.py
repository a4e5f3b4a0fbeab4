"""Names found by two extractors."""

from __future__ import annotations

from cicada.retrieval.knowledge.contracts import MAX_NAMES, Catalogue, Extractor, Named
from cicada.retrieval.ports import Limits
from cicada.text.normal import folded


class BothExtractors:
    """A :class:`cicada.retrieval.knowledge.contracts.Extractor` of all that two others find. Thread-safe if they are.

    One fails, both fail: an answer must not rest on half of what was to be looked for without saying so.
    """

    def __init__(self, quick: Extractor, thorough: Extractor) -> None:
        """Take the extractors: first the one that takes no time, such as a gazetteer, whose failure spares a call."""
        self._quick = quick
        self._thorough = thorough

    def extract(self, question: str, catalogue: Catalogue, limits: Limits) -> tuple[Named, ...]:
        """The names that either finds, each once as its surest finder says, surest first, and no more than may be.

        Raises:
            ModelError, BudgetSpent, OutOfTime, Stopped, IndexFailure: one of them could not.
        """
        surest: dict[str, Named] = {}
        for extractor in (self._quick, self._thorough):
            for one in extractor.extract(question, catalogue, limits):
                known = surest.get(folded(one.name))
                if known is None or known.confidence < one.confidence:
                    surest[folded(one.name)] = one
        return tuple(sorted(surest.values(), key=lambda one: -one.confidence)[:MAX_NAMES])
