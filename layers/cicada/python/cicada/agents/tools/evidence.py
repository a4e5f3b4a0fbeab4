"""``gather_evidence``: what the corpus has on a statement, sorted into what speaks for it and what against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada.agents.ports import Actor, Shelf
from cicada.agents.tools.base import DeskTool, scope_of
from cicada.agents.tools.forms import GatherEvidence
from cicada.agents.tools.shown import passage_source, shelve, shown
from cicada.agents.tools.sides import EvidenceJudge
from cicada.agents.tools.weighing import Weighed, balance_words, part_of, reason_of, strength_words
from cicada.errors import ProfileInvalid, ToolInvalid
from cicada.profiles.record import Side
from cicada.profiles.rules import MAX_STATEMENT_CHARS, line
from cicada.protocol.events import Source
from cicada.retrieval.ports import Degradation, Filters, Limits, SearchQuery

MAX_JUDGED = 12
"""Passages that one search brings, and that are judged together."""
MAX_A_SIDE = 5
MAX_UNDECIDED = 3
"""Passages that are shown: of each side, and of those that say neither."""
UNSORTED = "the passages could not be sorted by side: read them as they are. The verdict can only be open"


@dataclass(frozen=True)
class GatherEvidenceTool(DeskTool):
    """Searches for what bears on a theory, and has a judge sort what is found."""

    judge: EvidenceJudge | None = None
    """Without one nothing is sorted."""

    form = GatherEvidence
    in_worker = True

    def run(self, given: GatherEvidence, actor: Actor, shelf: Shelf, limits: Limits) -> Mapping[str, Any]:
        """See the port. A theory that is limited to episodes is searched in these."""
        statement, episodes = self._wanted(given, actor)
        # Its own episodes give way to those that the user limits the question to.
        own = tuple(episode for episode in episodes if not actor.episodes or episode in actor.episodes)
        filters = scope_of(actor, episodes=given.episodes or own)
        found = _Search(self, filters, limits)
        for text in (statement, given.contrary):
            if text:
                found.run(text)
        sources = found.best()
        sorted_ = None if self.judge is None else self.judge.sort(statement, sources, limits)
        kept = _strongest(sorted_) if sorted_ is not None else [Weighed(one, None, 0.0) for one in sources]
        reasons = [reason_of(statement, one, unsorted=sorted_ is None) for one in kept]
        reasoned = [one.source.model_copy(update={"why": (why,)}) for one, why in zip(kept, reasons, strict=True)]
        shelved = shelve(reasoned, shelf, found.version_of)
        numbered = {n: one for one, (n, _) in zip(kept, shelved, strict=False)}
        neither = [shown(one.source, n) for n, one in numbered.items() if one.side is None]
        told: dict[str, Any] = {
            "statement": statement,
            "balance": balance_words([one for one in numbered.values() if one.side]),
            "parts": _by_part(numbered),
            **({"unsorted": neither, "sides": UNSORTED} if sorted_ is None else {"near_but_undecided": neither}),
        }
        if len(numbered) < len(kept):
            told["note"] = "there is no room for more passages"
        if found.degraded:
            told["incomplete"] = [one.message for one in found.degraded]
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


class _Search:
    """What the searches of one gathering have found so far: each passage once, with its best score."""

    def __init__(self, tool: GatherEvidenceTool, filters: Filters, limits: Limits) -> None:
        self._retriever = tool.retriever
        self._filters = filters
        self._limits = limits
        self._sources: dict[tuple[str, str], Source] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self.degraded: tuple[Degradation, ...] = ()

    def run(self, text: str) -> None:
        """Search once more."""
        result = self._retriever.search(SearchQuery(text, self._filters, top_k=MAX_JUDGED, limits=self._limits))
        self.degraded = tuple(dict.fromkeys((*self.degraded, *result.degraded)))
        for hit in result.hits:
            key = (hit.passage.collection, hit.passage.id)
            held = self._sources.get(key)
            if held is None or held.score < hit.score:
                self._sources[key] = passage_source(hit)
            self._versions.setdefault(key, result.index_version)

    def best(self) -> list[Source]:
        """The passages of the best scores."""
        return sorted(self._sources.values(), key=lambda source: -source.score)[:MAX_JUDGED]

    def version_of(self, source: Source) -> str:
        """Of the index that a passage was found in: a newer one may have been published between two searches."""
        return self._versions[source.collection, source.passage_id]


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
            {"strength": strength_words(one.strength), **shown(one.source, n)}
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
