"""Enrich a document's passages before they are embedded and published."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cicada.corpus.documents import Document
from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import Passage
from cicada.errors import BudgetSpent, ModelError, ModelUnavailable, SettingsInvalid
from cicada.index.ports import ObjectStore
from cicada.ingest.contracts import EnrichmentOptions
from cicada.ingest.enrichment.codes import MAX_CODES, codes_of
from cicada.ingest.enrichment.describing import Describer, Description, Descriptions
from cicada.ingest.enrichment.kept_outputs import EnrichmentSpend, KeptOutputs
from cicada.ingest.enrichment.names import Names, codes_in, entities_in, names_of, summary_of
from cicada.ingest.enrichment.summaries import DocumentSummaries
from cicada.models.ports import CallScope, StructuredModel, Usage
from cicada.models.prices import cost

logger = logging.getLogger(__name__)

BATCHES_AT_ONCE = 4  # per document
TIME_BUDGET_S = 120.0  # for one batch, retries included


@dataclass(frozen=True)
class EnrichmentEstimate:
    """An upper estimate of an enrichment, without stored outputs."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None  # None: price unknown


@dataclass(frozen=True)
class Enriched:
    """The result of an enrichment."""

    items: tuple[Indexable, ...]  # the passages given, in order, enriched
    summary: str | None  # of the document, if one was wanted and made
    cost_usd: float | None  # of the calls made now; None: price unknown
    calls: int
    notes: tuple[str, ...]  # for the loader: which passages are not enriched, and why
    complete: bool = True  # False if a model failed for a part: another load retries it


class Enricher:
    """Adds summaries, entities and codes to passages. Thread-safe.

    Model outputs are stored in the bucket: no passages are sent twice, and an interrupted load resumes. A failed batch
    leaves its passages without, with a note. A model that refuses even a harmless text ends the enrichment: a reload
    must not lose what the model has added before.
    """

    def __init__(
        self,
        options: EnrichmentOptions,
        model: StructuredModel | None,
        store: ObjectStore,
        *,
        call_scope: CallScope | None = None,
        time_budget_s: float = TIME_BUDGET_S,
        time_left_s: Callable[[], float] = lambda: math.inf,
        at_once: int = BATCHES_AT_ONCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``time_budget_s``: seconds for a batch, and for a document's summary, retries included; ``time_left_s``:
        seconds left for a document, of which a batch may take half; ``clock``: monotonic seconds. Raises
        SettingsInvalid if the options need a model and there is none."""
        self._options = options
        self._describer: Describer | None = None
        self._summaries: DocumentSummaries | None = None
        summaries, names = options.summaries == "model", options.entities == "model"
        if not (summaries or names):
            return
        if model is None:
            raise SettingsInvalid("enrichment by a model needs a model id")
        self._model_id = model.model_id
        self._time_budget_s: Callable[[], float] = lambda: min(time_budget_s, time_left_s() / 2)
        self._describer = Describer(
            KeptOutputs(store, model, call_scope=call_scope),
            summaries=summaries,
            names=names,
            time_budget_s=self._time_budget_s,
            at_once=at_once,
        )
        if summaries:
            self._summaries = DocumentSummaries(store, model, call_scope=call_scope, clock=clock)

    def enrich(self, document: Document, items: Sequence[Indexable]) -> Enriched:
        """Enrich a document's passages, in order; their ids and embedded texts do not change.

        Raises:
            ModelRefused: the model's service rejects all calls, and nothing by this model is stored for this document.
            ModelError, BudgetSpent: it rejects this document's passages, and failed for another text.
            IndexUnavailable: the store does not respond.
        """
        texts = [item.passage.text for item in items]
        spent = EnrichmentSpend()
        described = self._describer.describe(document.title, texts, spent) if self._describer else Descriptions()
        notes = _failures(described.failed, len(texts))
        try:
            summary = self._summarised(document, texts, described, spent)
        except (ModelError, BudgetSpent) as error:
            logger.warning("a document could not be summarised", extra={"code": error.code})
            notes.append(f"The document has no summary: {error.code}.")
            summary = None
        nothing = not (described.made or summary)
        if described.refused is not None and nothing and self._describer and self._describer.refuses_all(spent):
            raise described.refused
        names = self._names(document, items, described)
        enriched = tuple(
            Indexable(self._passage(item.passage, names, described.made.get(place)), item.parts)
            for place, item in enumerate(items)
        )
        return Enriched(enriched, summary, spent.cost_usd, spent.calls, tuple(notes), complete=not notes)

    def estimate(self, texts: Sequence[str]) -> EnrichmentEstimate:
        """An estimate for the passages of one document; zero without a model."""
        if self._describer is None:
            return EnrichmentEstimate(0, 0, 0, 0.0)
        works = [self._describer.work(texts)]
        if self._summaries is not None:
            works.append(self._summaries.work(texts))
        read = sum(work.input_tokens for work in works)
        written = sum(work.output_tokens for work in works)
        price = cost(self._model_id, Usage(read, written))
        return EnrichmentEstimate(
            sum(work.calls for work in works), read, written, None if price is None else price.usd
        )

    def _summarised(
        self, document: Document, texts: Sequence[str], described: Descriptions, spent: EnrichmentSpend
    ) -> str | None:
        if self._summaries is None or not any(text.strip() for text in texts):
            return None
        if described.given_up:
            raise ModelUnavailable("the model failed for the passages")
        return self._summaries.get_or_make(
            document.source, document.title, texts, time_budget_s=self._time_budget_s(), spent=spent
        ).text

    def _names(self, document: Document, items: Sequence[Indexable], described: Descriptions) -> Names:
        """Names by rules: if the options want them, or for passages that the model failed for."""
        entities = self._options.entities
        if entities == "off" or (entities == "model" and not described.failed):
            return Names(())
        speakers = {voice for item in items if (voice := item.passage.locator.voice())}
        return names_of(document, [item.passage.text for item in items], speakers)

    def _passage(self, passage: Passage, names: Names, described: Description | None) -> Passage:
        by_model = described is not None and self._options.entities == "model"
        told = described or Description()
        entities = entities_in(passage.text, told.entities) if by_model else names.of(passage.text)
        codes: tuple[str, ...] = ()
        if self._options.codes:
            found = [*codes_of(passage.text), *codes_in(passage.text, told.codes)]
            codes = tuple(dict.fromkeys(found))[:MAX_CODES]
        return passage.model_copy(update={"summary": summary_of(told.summary), "entities": entities, "codes": codes})


def _failures(failed: Mapping[int, str], passages: int) -> list[str]:
    return [
        f"{count:,} of {passages:,} passages are not enriched by the model: {code}."
        for code, count in sorted(Counter(failed.values()).items())
    ]
