"""The corpus in several versions, the questions that people ask, and the twins that search and embed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from cicada.corpus.passages import Passage, ScriptLocator
from cicada.errors import IndexCorrupt, IndexMissing, IndexUnavailable, ModelUnavailable
from cicada.retrieval.ports import Degradation, Hit, SearchQuery, SearchResult
from cicada.rights import AccessRules
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Scheduler

DIMENSIONS = 16
EPISODES = ("ep1", "ep2")
PASSAGES = 6
DIARY = "diary"
"""The collection that not everybody may always read; ``script`` is everybody's."""
_LINES = (
    "Mara hides the brass lamp beneath the third stone of the pier",
    "Tess borrows the boathouse key before the storm arrives",
    "The ferryman refuses payment from the lighthouse keepers",
    "Borrowed boats must return before the evening bell rings",
    "Refunds are granted when the ferry stays in harbour",
    "Nobody noticed the lantern burning inside the chapel",
)
_SHADES = ("quietly", "gladly", "twice", "again", "early", "late")
"""One word by which the versions of a passage differ."""


@dataclass(frozen=True)
class Asking:
    """A question, and how near it is to others."""

    query: str
    topic: int
    """Questions of one topic are near to each other."""
    turn: float = 0.0
    """How far it leans away from its topic: 0.1 is the same question, 0.6 a near one."""


FOLLOW_UP = Asking("And what did she say next?", 5)
QUESTIONS = (
    Asking("Hello there!", 0),
    Asking("Where does Mara hide the brass lamp?", 1),
    Asking("Where is the brass lamp that Mara hides?", 1, 0.12),
    Asking("Why does Mara hide the brass lamp beneath a stone?", 1, 0.55),
    Asking("Who borrows the boathouse key?", 2),
    Asking("Compare what Mara and Tess do before the storm, and explain why they differ.", 3),
    Asking("Compare what Mara and Tess do before the storm, and explain how they differ.", 3, 0.1),
    Asking("What is the policy on refunds?", 4),
    Asking("What is the policy on refunds for the ferry?", 4, 0.15),
    Asking("What is the policy on refunds?", 4),
    FOLLOW_UP,
    Asking("What burns in the chapel that nobody noticed?", 6),
    Asking("Show me the profile of Mara.", 12),
    Asking("What speaks for and against my theory that Mara hides the brass lamp?", 13),
)
_BY_QUERY = {asking.query: asking for asking in QUESTIONS}


@cache
def passages(version: str) -> tuple[Passage, ...]:
    """The passages of one version."""
    shade = _SHADES[int(version[1:]) % len(_SHADES)]
    made = []
    for n, line in enumerate(_LINES):
        episode = EPISODES[n % 2]
        text = f"{line} {shade}."
        locator = ScriptLocator(
            episode_id=episode,
            episode_name=f"The {'first' if n % 2 == 0 else 'second'} day",
            chapter_id=f"{episode}-c1",
            message_id=f"{episode}-{n}",
            speaker=("Mara", "Tess")[n % 2],
        )
        collection = DIARY if n % 3 == 1 else "script"
        made.append(Passage(id=f"p{n}", collection=collection, text=text, context=text, locator=locator))
    return tuple(made)


DIARY_LINES = tuple(line for n, line in enumerate(_LINES) if n % 3 == 1)
"""What passages of the diary say, in every version."""


@cache
def _found(version: str, query: str, episodes: tuple[str, ...], top_k: int, diary: bool) -> tuple[Hit, ...]:
    seed = zlib.crc32(query.encode())
    if seed % 11 == 0:
        return ()
    readable = [one for one in passages(version) if diary or one.collection != DIARY]
    candidates = [one for one in readable if not episodes or one.locator.fields()["episode"] in episodes]
    start = seed % len(candidates)
    chosen = (candidates[start:] + candidates[:start])[: min(top_k, 2 + seed % 3)]
    return tuple(Hit(passage, 0.95 - 0.08 * place) for place, passage in enumerate(chosen))


@cache
def vector(query: str) -> tuple[float, ...]:
    """A unit vector: near those of its topic, orthogonal to others. An unknown question is a topic of its own."""
    asking = _BY_QUERY.get(query) or Asking(query, 7 + zlib.crc32(query.encode()) % 4)
    values = [0.0] * DIMENSIONS
    length = (1 + asking.turn**2) ** 0.5
    values[asking.topic % DIMENSIONS] = 1 / length
    values[12 + asking.topic % 4] += asking.turn / length
    return tuple(values)


class Access:
    """The twin of the rules' store: see :class:`cicada.index.access_rules.AccessRulesStore`."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self.changes: list[tuple[AccessRules, float]] = [(AccessRules(), 0.0)]
        """The rules, and since when each hold."""

    def restrict(self, *groups: str) -> None:
        """From now on the diary is for these groups."""
        self.changes.append((AccessRules(readers={DIARY: groups}), self._scheduler.now))

    def could_read_diary(self, groups: tuple[str, ...], since: float) -> bool:
        """Whether a member of the groups was allowed to read the diary at any time since then."""
        ends = [at for _, at in self.changes[1:]] + [float("inf")]
        held = zip(self.changes, ends, strict=True)
        return any(_allow(rules, groups) for (rules, _), end in held if end > since)

    def rules(self) -> AccessRules:
        """See the port."""
        rules = self.changes[-1][0]
        self._scheduler.sleep(0.002 + 0.01 * self._scheduler.random())
        if self._faults.hit("index_unavailable"):
            raise IndexUnavailable("the store does not answer")
        return rules


def _allow(rules: AccessRules, groups: tuple[str, ...]) -> bool:
    """Whether members of the groups may read the diary, written out here so that the judge has a mind of its own."""
    readers = rules.readers.get(DIARY)
    return readers is None or bool(set(readers) & set(groups))


class Index:
    """The retriever's twin: one current version at a time."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self.published: list[tuple[str, float]] = [("v1", 0.0)]
        """Each version, and since when it is current."""

    def publish(self) -> None:
        """Make a new version current."""
        self.published.append((f"v{len(self.published) + 1}", self._scheduler.now))

    def was_current(self, version: str, since: float) -> bool:
        """Whether a version was current at any time since then."""
        for place, (name, _) in enumerate(self.published):
            if name == version:
                return place == len(self.published) - 1 or self.published[place + 1][1] >= since
        return False

    def version(self) -> str:
        """See :class:`cicada.retrieval.ports.Retriever`."""
        self._scheduler.sleep(0.001)
        self._fail()
        return self.published[-1][0]

    def search(self, query: SearchQuery) -> SearchResult:
        """See :class:`cicada.retrieval.ports.Retriever`. A search pins the version that is current as it begins."""
        version = query.pin.version if query.pin and query.pin.version else self.published[-1][0]
        self._scheduler.sleep(0.005 + 0.02 * self._scheduler.random())
        self._fail()
        if self._faults.hit("index_slow"):
            self._scheduler.sleep(self._faults.between(0.2, 6))
        degraded: tuple[Degradation, ...] = ()
        hits = _found(version, query.text, query.filters.episodes, query.top_k, query.readable.allows(DIARY))
        if self._faults.hit("index_partial"):
            hits = hits[:1]
            degraded = (Degradation("partial_index", "A part of the index could not be read."),)
        kept = tuple(hit for hit in hits if hit.score >= query.min_score)
        if query.pin is not None:
            query.pin.version = version
        return SearchResult(kept, version, PASSAGES, degraded=degraded)

    def _fail(self) -> None:
        if self._faults.hit("index_unavailable"):
            self._scheduler.sleep(self._faults.between(0.1, 3))
            raise IndexUnavailable("the store does not answer")
        if self._faults.hit("index_corrupt"):
            raise IndexCorrupt("a segment does not match its checksum")
        if self._faults.hit("index_missing"):
            raise IndexMissing("nothing was published")


class Embedder:
    """The embedding model's twin."""

    model_id = "sim.embedder"
    dimensions = DIMENSIONS

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults

    def embed(self, texts: Sequence[str], *, time_budget_s: float) -> list[list[float]]:
        """See :class:`cicada.models.ports.Embedder`."""
        self._scheduler.sleep(min(0.03 + 0.05 * self._scheduler.random(), max(0.0, time_budget_s)))
        if self._faults.hit("embedder_failed"):
            raise ModelUnavailable("the embedding model does not answer")
        return [list(vector(text)) for text in texts]
