"""``search_script``: finds passages and registers them as sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cicada.agents.ports import Actor, SourceRegistry
from cicada.agents.tools.base import ProfileTool, scope_of
from cicada.agents.tools.inputs import MAX_PASSAGES, SearchScript
from cicada.agents.tools.shown import passage_source, register, shown
from cicada.protocol.events import Reason
from cicada.retrieval.ports import SearchLimits, SearchQuery


class SearchScriptTool(ProfileTool):
    """Searches the corpus, within what the user limits the question to."""

    form = SearchScript

    def run(
        self, given: SearchScript, actor: Actor, registry: SourceRegistry, limits: SearchLimits
    ) -> Mapping[str, Any]:
        """See the port."""
        filters = scope_of(actor, given.collections, given.episodes)
        result = self.retriever.search(
            SearchQuery(given.query, filters, top_k=MAX_PASSAGES, limits=limits, readable=actor.readable)
        )
        why = Reason(kind="tool", name=self.name)
        sources = [passage_source(hit, why) for hit in result.hits[: given.limit]]
        passages = [shown(source, n) for n, source in register(sources, registry, lambda _: result.index_version)]
        told: dict[str, Any] = {"passages": passages}
        if not sources:
            told["note"] = "nothing was found"
        elif len(passages) < len(sources):
            told["note"] = "there is no room for more passages: answer from those that are here"
        if result.degraded:
            told["incomplete"] = [one.message for one in result.degraded]
        return told
