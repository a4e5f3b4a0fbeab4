"""``gather_evidence``: what the corpus has for a statement, and what against it, each searched for by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool, scope_of
from cicada.agents.tools.forms import GatherEvidence
from cicada.agents.tools.negating import contradicting_queries, supporting_queries
from cicada.agents.tools.shown import passage_source, shelve, shown
from cicada.agents.tools.weighing import Found, Weighed, balance_words, part_of, reason_of, strength_words, weigh
from cicada.errors import ProfileInvalid, ToolInvalid
from cicada.profiles.record import Side
from cicada.profiles.rules import MAX_STATEMENT_CHARS, line
from cicada.protocol.events import Source
from cicada.retrieval.ports import Degradation, Filters, Limits, SearchQuery

TOP_K = 10
"""Passages that one query brings at most."""
MAX_A_SIDE = 5
MAX_UNDECIDED = 3
"""Passages that are shown: of each side, and of those that say neither."""


class GatherEvidenceTool(DeskTool):
    """Searches for both sides of a theory, and weighs what is found."""

    form = GatherEvidence

    def run(self, given: GatherEvidence, actor: Actor, shelf: Shelf, limits: Limits) -> Mapping[str, Any]:
        """See the port. A theory that is limited to episodes is searched in these."""
        statement, episodes = self._wanted(given, actor)
        # Its own episodes give way to those that the user limits the question to.
        own = tuple(episode for episode in episodes if not actor.episodes or episode in actor.episodes)
        filters = scope_of(actor, episodes=given.episodes or own)
        queries: dict[Side, tuple[str, ...]] = {
            "for": supporting_queries(statement),
            "against": contradicting_queries(statement),
        }
        search = _BothSides(self, filters, limits)
        for side, texts in queries.items():
            search.run(side, texts)
        weighed = [weigh(statement, found) for found in search.found()]
        kept = _strongest(weighed)
        numbered = {}
        sources = [one.source.model_copy(update={"why": (reason_of(statement, one),)}) for one in kept]
        for one, (n, _) in zip(kept, shelve(sources, shelf, search.version_of), strict=False):
            numbered[n] = one
        told: dict[str, Any] = {
            "statement": statement,
            "balance": balance_words([one for one in numbered.values() if one.side]),
            "parts": _by_part(numbered),
            "near_but_undecided": [shown(one.source, n) for n, one in numbered.items() if one.side is None],
            "searched": {side: list(texts) for side, texts in queries.items()},
        }
        if len(numbered) < len(kept):
            told["note"] = "there is no room for more passages"
        if search.degraded:
            told["incomplete"] = [one.message for one in search.degraded]
        return told

    def _wanted(self, given: GatherEvidence, actor: Actor) -> tuple[str, tuple[str, ...]]:
        """The statement, and the episodes that its theory is about."""
        match given.statement, given.id:
            case str(statement), None:
                return line("the statement", statement, MAX_STATEMENT_CHARS), ()
            case None, str(profile_id):
                theory = self.desk.show(actor.subject, profile_id).theory
                if theory is None:
                    raise ProfileInvalid("that is no theory")
                return theory.statement, theory.episodes
            case _:
                raise ToolInvalid("give either the statement or the id of a theory")


class _BothSides:
    """What the searches of both sides have found so far: each passage once, with the best score of each side."""

    def __init__(self, tool: GatherEvidenceTool, filters: Filters, limits: Limits) -> None:
        self._retriever = tool.retriever
        self._filters = filters
        self._limits = limits
        self._sources: dict[tuple[str, str], Source] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._scores: dict[tuple[str, str], dict[Side, float]] = {}
        self.degraded: tuple[Degradation, ...] = ()

    def run(self, side: Side, queries: Sequence[str]) -> None:
        """Search for one side."""
        for text in queries:
            result = self._retriever.search(SearchQuery(text, self._filters, top_k=TOP_K, limits=self._limits))
            self.degraded = tuple(dict.fromkeys((*self.degraded, *result.degraded)))
            for hit in result.hits:
                key = (hit.passage.collection, hit.passage.id)
                self._sources.setdefault(key, passage_source(hit))
                self._versions.setdefault(key, result.index_version)
                scores = self._scores.setdefault(key, {})
                scores[side] = max(hit.score, scores.get(side, 0.0))

    def version_of(self, source: Source) -> str:
        """Of the index that a passage was found in: a newer one may have been published between two searches."""
        return self._versions[source.collection, source.passage_id]

    def found(self) -> list[Found]:
        """Each passage, with the better of its scores as its own."""
        return [
            Found(
                source.model_copy(update={"score": min(1.0, max(self._scores[key].values()))}),
                self._scores[key],
            )
            for key, source in self._sources.items()
        ]


def _strongest(weighed: Sequence[Weighed]) -> list[Weighed]:
    ranked = sorted(weighed, key=lambda one: (-one.strength, -one.source.score))
    kept = [one for side in ("for", "against") for one in [one for one in ranked if one.side == side][:MAX_A_SIDE]]
    return [*kept, *[one for one in ranked if one.side is None][:MAX_UNDECIDED]]


def _by_part(numbered: Mapping[int, Weighed]) -> list[dict[str, Any]]:
    """The evidence episode by episode, or document by document: facts of several are never joined."""
    parts: dict[str, dict[int, Weighed]] = {}
    for n, one in numbered.items():
        if one.side is not None:
            parts.setdefault(part_of(one.source), {})[n] = one

    def listed(part: Mapping[int, Weighed], side: Side) -> list[dict[str, Any]]:
        return [
            {"strength": one.strength, "in_words": strength_words(one.strength), **shown(one.source, n)}
            for n, one in part.items()
            if one.side == side
        ]

    return [
        {
            "part": name,
            "balance": balance_words(list(part.values())),
            "for": listed(part, "for"),
            "against": listed(part, "against"),
        }
        for name, part in sorted(parts.items())
    ]
