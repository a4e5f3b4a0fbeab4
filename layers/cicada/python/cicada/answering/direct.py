"""The Direct strategy: a small model and no retrieval, for small talk and as the last resort."""

from __future__ import annotations

from collections.abc import Generator

from cicada.answering.grounding import log_retrieved
from cicada.answering.prompt import UNGROUNDED_NOTICE, direct_prompt, offer_notice
from cicada.answering.reuse import renumbered
from cicada.attempts.budgets import AttemptBudget
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved, Step
from cicada.attempts.writing import write
from cicada.models.ports import TextDelta, TextModel
from cicada.protocol.events import StrategyName

MAX_OFFERED = 5
"""The most passages of earlier attempts that the last resort offers."""


class DirectStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over a model alone; its answers are never grounded.

    After other strategies failed it says that the sources could not be consulted, and offers the best passages that
    they had found. The notice is written by code, and the model does not see the passages.
    """

    name: StrategyName = "direct"
    needs: tuple[str, ...] = ()
    """It is the last resort, so no circuit breaker may skip it."""

    def __init__(self, model: TextModel) -> None:
        """``model``: a small one, with a low token limit."""
        self._model = model

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port."""
        if any(failure.strategy != self.name for failure in asked.failed):
            notice = UNGROUNDED_NOTICE
            before = asked.found_before()
            if before is not None:
                offered = renumbered(sorted(before.sources, key=lambda source: -source.score)[:MAX_OFFERED])
                retrieved = Retrieved(
                    offered,
                    found=len(before.sources),
                    index_version=before.index_version,
                    engine=before.engine,
                    offered=True,
                )
                log_retrieved(retrieved)
                yield retrieved
                notice += offer_notice(len(offered))
            yield TextDelta(notice)
        written = yield from write(self._model, direct_prompt(asked.query), attempt_budget)
        yield Answered(written.finished.stop_reason, self._model.model_id)
