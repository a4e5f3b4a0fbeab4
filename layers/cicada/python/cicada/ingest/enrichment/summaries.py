"""Summaries of documents: stored ones, or new ones by a model, of long documents part by part.

A document that fits into one call is summarised by one. Of a longer one the parts are summarised first, then their
summaries, and so on (map and reduce). Every step is stored, so that an interrupted summary resumes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cicada.errors import AnswerMalformed, ModelUnavailable
from cicada.index.ports import ObjectStore
from cicada.ingest.enrichment.describing import (
    ABSTRACT_TOKENS,
    MAX_BATCH_TOKENS,
    DocumentAbstract,
    Work,
    batches,
    document_prompt,
    pieces,
)
from cicada.ingest.enrichment.kept_outputs import EnrichmentSpend, KeptOutputs
from cicada.models.ports import CallScope, StructuredModel
from cicada.text.tokens import estimated_tokens
from cicada.text.visible import visible

logger = logging.getLogger(__name__)

MAX_ABSTRACT_CHARS = 2_000  # of a summary; the rest is cut
MAX_PART_TEXTS = 1_000


@dataclass(frozen=True)
class DocumentSummary:
    """A document's summary in a few sentences."""

    text: str
    made: bool  # whether it, or a part of it, was made now
    model_id: str
    cost_usd: float | None  # of the calls made now; None: price unknown
    calls: int = 0


class DocumentSummaries:
    """Gets or makes summaries of documents. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        model: StructuredModel,
        *,
        call_scope: CallScope | None = None,
        part_tokens: int = MAX_BATCH_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``part_tokens``: estimated tokens that one call summarises; ``clock``: monotonic seconds."""
        self._forms = KeptOutputs(store, model, call_scope=call_scope)
        self._part_tokens = part_tokens
        self._clock = clock

    def get_or_make(
        self,
        source: str,
        title: str,
        texts: Sequence[str],
        *,
        time_budget_s: float,
        spent: EnrichmentSpend | None = None,
    ) -> DocumentSummary:
        """The stored summary of exactly these texts by this model, or a new one.

        Args:
            source: of the document; stands in for a missing title.
            texts: its passages, in order; at least one that is not blank.
            time_budget_s: seconds for all calls. Finished parts are stored, so that another call resumes.
            spent: counts the calls made now, failed ones included.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused, AnswerIncomplete: there is no summary.
            IndexUnavailable: the store does not respond.
            ValueError: all texts are blank.
        """
        left = [piece for text in texts if text.strip() for piece in pieces(text, most_tokens=self._part_tokens)]
        if not left:
            raise ValueError("cannot summarise a document without text")
        deadline_s = self._clock() + time_budget_s
        spent = spent or EnrichmentSpend()
        made = False
        while True:
            abstracts = [self._abstract(title or source, left[part], deadline_s, spent) for part in self._parts(left)]
            made = made or any(new for _, new in abstracts)
            left = [text for text, _ in abstracts]
            if len(left) == 1:
                return DocumentSummary(left[0], made, self._forms.model_id, spent.cost_usd, spent.calls)

    def _abstract(self, name: str, texts: Sequence[str], deadline_s: float, spent: EnrichmentSpend) -> tuple[str, bool]:
        """The summary of one part, and whether it was made now."""
        left_s = deadline_s - self._clock()
        if left_s <= 0:
            raise ModelUnavailable("the time budget ran out while the document was summarised")
        form, made = self._forms.fill(document_prompt(name, texts), DocumentAbstract, time_budget_s=left_s, spent=spent)
        text = " ".join(visible(form.summary).split())[:MAX_ABSTRACT_CHARS]
        if not text:
            raise AnswerMalformed("the model wrote an empty summary")
        return text, made

    def work(self, texts: Sequence[str]) -> Work:
        """An estimate of :meth:`get_or_make`, without stored outputs."""
        sizes = [estimated_tokens(piece) for text in texts for piece in pieces(text, most_tokens=self._part_tokens)]
        calls = read = 0
        while sizes:
            groups = max(1, -(-sum(sizes) // self._part_tokens))
            calls += groups
            read += sum(sizes)
            if groups == 1:
                break
            sizes = [ABSTRACT_TOKENS] * groups
        return Work(calls, read, calls * ABSTRACT_TOKENS)

    def _parts(self, texts: Sequence[str]) -> list[slice]:
        """The texts of each call: always fewer parts than texts, so that the reduction ends."""
        parts = batches(texts, most_texts=MAX_PART_TEXTS, most_tokens=self._part_tokens)
        if len(parts) < len(texts) or len(texts) == 1:
            return [slice(part.start, part.stop) for part in parts]
        return [slice(first, first + 2) for first in range(0, len(texts), 2)]
