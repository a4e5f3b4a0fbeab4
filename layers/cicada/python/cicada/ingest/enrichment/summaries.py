"""Summaries of documents: found if they were made before, else made by a model, of long documents part by part.

A document that fits into one call is summarised by one. Of a longer one the parts are summarised first, and then their
summaries, as often as it takes (map and reduce). Every step is kept, so that whatever breaks off is resumed.
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
from cicada.text.token_estimates import estimated_tokens
from cicada.text.visible import visible

logger = logging.getLogger(__name__)

MAX_ABSTRACT_CHARS = 2_000  # of a summary; the rest is cut
MAX_PART_TEXTS = 1_000


@dataclass(frozen=True)
class DocumentSummary:
    """What a document says, in a few sentences."""

    text: str
    made: bool  # whether it, or a part of it, was made now
    model_id: str
    cost_usd: float | None  # of the calls made now; None: price unknown
    calls: int = 0


class DocumentSummaries:
    """Gets or makes summaries of documents; one document at a time a thread, any number of threads."""

    def __init__(
        self,
        store: ObjectStore,
        model: StructuredModel,
        *,
        call_scope: CallScope | None = None,
        part_tokens: int = MAX_BATCH_TOKENS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``part_tokens``: of the texts that one call summarises, as estimated; ``clock``: monotonic seconds."""
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
        """The summary of a document: the one made before of just these texts by this model, or a new one.

        Args:
            source: what the document is known by; stands for a title where there is none.
            texts: its passages, in order; at least one that is not blank.
            time_budget_s: seconds for all calls. What was made until then is kept, and asking again goes on from it.
            spent: where the calls made now are counted, also if they come to nothing.

        Raises:
            ModelBusy, ModelUnavailable, ModelRefused, AnswerIncomplete: there is no summary.
            IndexUnavailable: the store does not respond.
            ValueError: no text says anything.
        """
        left = [piece for text in texts if text.strip() for piece in pieces(text, most_tokens=self._part_tokens)]
        if not left:
            raise ValueError("a document without text has no summary")
        deadline_s = self._clock() + time_budget_s
        spent = spent or EnrichmentSpend()
        made = False
        name = title or source
        while True:
            parts = self._parts(left)
            abstracts: list[str] = []
            for part in parts:
                left_s = deadline_s - self._clock()
                if left_s <= 0:
                    raise ModelUnavailable("the time budget ran out while the document was summarised")
                kept = self._forms.fill(
                    document_prompt(name, [left[place] for place in part]),
                    DocumentAbstract,
                    time_budget_s=left_s,
                    spent=spent,
                )
                abstracts.append(_clean(kept.value.summary))
                made = made or kept.made
            if len(abstracts) == 1:
                return DocumentSummary(abstracts[0], made, self._forms.model_id, spent.cost_usd, spent.calls)
            left = abstracts

    def work(self, texts: Sequence[str]) -> Work:
        """About what :meth:`get_or_make` would ask the model for, were nothing kept."""
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

    def _parts(self, texts: Sequence[str]) -> list[range]:
        """What one call each summarises: never as many parts as texts, so that there is an end."""
        parts = batches(texts, most_texts=MAX_PART_TEXTS, most_tokens=self._part_tokens)
        if len(parts) < len(texts) or len(texts) == 1:
            return parts
        return [range(first, min(first + 2, len(texts))) for first in range(0, len(texts), 2)]


def _clean(summary: str) -> str:
    """A summary on one line. Raises AnswerMalformed if there is nothing in it."""
    text = " ".join(visible(summary).split())[:MAX_ABSTRACT_CHARS]
    if not text:
        raise AnswerMalformed("the model wrote an empty summary")
    return text
