"""``search_script``: passages onto the shelf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool, scope_of
from cicada.agents.tools.forms import MAX_PASSAGES, SearchScript
from cicada.agents.tools.shown import passage_source, shelve, shown
from cicada.citations.language import language_of
from cicada.index.lexical.stopwords import FREQUENT
from cicada.protocol.events import Reason
from cicada.retrieval.ports import Hit, Limits, SearchQuery
from cicada.text.tokens import normalised, tokens

MIN_CONTENT_WORDS = 2
"""A passage of fewer (*A key?*) is brought only where there is no other: it says next to nothing by itself."""


class SearchScriptTool(DeskTool):
    """Searches the corpus, within what the user limits the question to."""

    form = SearchScript

    def run(self, given: SearchScript, actor: Actor, shelf: Shelf, limits: Limits) -> Mapping[str, Any]:
        """See the port."""
        filters = scope_of(actor, given.collections, given.episodes)
        result = self.retriever.search(SearchQuery(given.query, filters, top_k=MAX_PASSAGES, limits=limits))
        why = Reason(kind="tool", name=self.name)
        sources = [passage_source(hit, why) for hit in _telling(result.hits, given.query)[: given.limit]]
        passages = [shown(source, n) for n, source in shelve(sources, shelf, lambda _: result.index_version)]
        told: dict[str, Any] = {"passages": passages}
        if not sources:
            told["note"] = "nothing was found"
        elif len(passages) < len(sources):
            told["note"] = "there is no room for more passages: answer from those that are here"
        if result.degraded:
            told["incomplete"] = [one.message for one in result.degraded]
        return told


def _telling(hits: Sequence[Hit], query: str) -> Sequence[Hit]:
    frequent = FREQUENT.get(language_of(query), frozenset())
    return [hit for hit in hits if len({*tokens(normalised(hit.passage.text))} - frequent) >= MIN_CONTENT_WORDS] or hits
