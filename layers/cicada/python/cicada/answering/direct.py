"""The Direct strategy: a small model and no retrieval, for small talk and as the last resort."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from cicada.answering.prompt import UNGROUNDED_NOTICE, direct_prompt
from cicada.answering.strategy import Answered, Step
from cicada.answering.writing import write
from cicada.delivery.record import Question
from cicada.models.ports import TextDelta, TextModel
from cicada.protocol.events import StrategyFailure, StrategyName


class DirectStrategy:
    """:class:`cicada.answering.strategy.Strategy` over a model alone; its answers are never grounded."""

    name: StrategyName = "direct"

    def __init__(self, model: TextModel) -> None:
        self._model = model

    @property
    def model_id(self) -> str:
        """See the port."""
        return self._model.model_id

    def answer(
        self, question: Question, failed: Sequence[StrategyFailure], *, time_budget_s: float
    ) -> Generator[Step, None, None]:
        """See the port. Where other strategies failed before, the answer begins by saying that it is not grounded."""
        if failed:
            yield TextDelta(UNGROUNDED_NOTICE)
        written = yield from write(self._model, direct_prompt(question.query), time_budget_s=time_budget_s)
        yield Answered(written.finished.stop_reason, written.finished.usage)
