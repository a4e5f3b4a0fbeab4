"""The retrieval port: one typed query in, ranked passages out, whatever the backend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cicada.corpus.passages import Passage
from cicada.defaults import DEFAULT_MIN_SCORE, DEFAULT_TOP_K
from cicada.models.ports import ModelUse, TokenBudget, Unbounded
from cicada.rights import Readable

SOURCE = "source"  # the key of the metadata that names a passage's document

SearchMode = Literal["hybrid", "dense", "keyword"]
"""By meaning and words, by meaning alone (vectors), or by words alone (BM25)."""


@dataclass(frozen=True)
class Filters:
    """What a passage must have; an empty tuple allows everything. Applied before ranking."""

    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    metadata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By metadata key, ``source`` among them: the values that are allowed."""
    entities: tuple[str, ...] = ()
    """A passage must name one of these, in this spelling."""
    codes: tuple[str, ...] = ()
    """A passage must have one of these."""
    documents: tuple[str, ...] = ()
    """Sources: of questions. Functions for integrators name them in ``metadata``."""
    sections: tuple[str, ...] = ()
    """Paths of headings: a passage must stand below one of them."""

    def __post_init__(self) -> None:
        """Raise ValueError if sources are given in two places."""
        if self.documents and SOURCE in self.metadata:
            raise ValueError("sources are set both in documents and in metadata")

    @property
    def named(self) -> bool:
        """Whether it names anything that may not exist."""
        return bool(self.collections or self.episodes or self.documents or self.sections)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are allowed, wherever they are given; all when empty."""
        return self.documents or self.metadata.get(SOURCE, ())


class Limited(Protocol):
    """What limits its searches to parts of the corpus, such as a question."""

    @property
    def collections(self) -> tuple[str, ...]:
        """Names; all when empty, as for the others."""

    @property
    def episodes(self) -> tuple[str, ...]:
        """Ids."""

    @property
    def documents(self) -> tuple[str, ...]:
        """Sources."""

    @property
    def sections(self) -> tuple[str, ...]:
        """Paths of headings."""


def filters_of(limited: Limited) -> Filters:
    """The filters of a question, or of what is like one."""
    return Filters(
        collections=limited.collections,
        episodes=limited.episodes,
        documents=limited.documents,
        sections=limited.sections,
    )


class SearchLimits(TokenBudget, Protocol):
    """A search's bounds on time, and on calls of text models and re-rankers. Thread-safe."""

    def time_left_s(self) -> float:
        """Seconds, never negative; infinite without a limit."""

    def note(self, use: ModelUse) -> None:
        """Note a use of a model, however the search ends."""


class Unlimited(Unbounded):
    """:class:`SearchLimits` without bounds."""

    def time_left_s(self) -> float:
        """See the port."""
        return math.inf

    def note(self, use: ModelUse) -> None:
        """See the port."""


@dataclass(frozen=True)
class TimeLimit(Unlimited):
    """:class:`SearchLimits` of the time alone."""

    left_s: Callable[[], float]

    def time_left_s(self) -> float:
        """See the port."""
        return self.left_s()


UNLIMITED = Unlimited()


@dataclass
class Pin:
    """The index version that several searches share: the first one sets it.

    A retriever that cannot search an older version searches the current one, and its result names that.
    """

    version: str = ""
    index: Any = None
    """The retriever's own object, held as long as the pin."""


@dataclass(frozen=True)
class SearchQuery:
    """One search."""

    text: str
    filters: Filters = field(default_factory=Filters)
    top_k: int = DEFAULT_TOP_K
    min_score: float = DEFAULT_MIN_SCORE
    mode: SearchMode = "hybrid"
    limits: SearchLimits = field(default=UNLIMITED, compare=False, repr=False)
    pin: Pin | None = field(default=None, compare=False, repr=False)
    readable: Readable = field(kw_only=True)
    """What the asker may read. Nothing else is ranked, counted or named."""

    def __post_init__(self) -> None:
        """Raise ValueError if ``top_k`` is below 1."""
        if self.top_k < 1:
            raise ValueError(f"top_k is {self.top_k}: must be at least 1")


@dataclass(frozen=True)
class Hit:
    """A passage and its relevance: ``score`` in [0, 1], comparable across segments and searches of a version."""

    passage: Passage
    score: float


@dataclass(frozen=True)
class Degradation:
    """What a search lacked."""

    code: str
    """Stable: ``partial_index`` (segments cannot be read), ``words_only`` (the query could not be embedded),
    ``engine_fallback`` (a managed engine did not answer), ``mode_fallback`` (it has no such search), ``top_k_capped``
    (it returns fewer than were asked for), or ``<stage>_incomplete`` (a pipeline skipped something)."""
    message: str
    """A sentence for people."""


@dataclass(frozen=True)
class SearchResult:
    """Hits, best first, and where they come from."""

    hits: tuple[Hit, ...]
    index_version: str
    searched: int
    """Passages that passed the filters, all ranked; 0 where a managed engine does not tell."""
    timings_ms: dict[str, float] = field(default_factory=dict)
    engine: str = "shards"
    """What searched: ``shards``, ``s3vectors`` or ``kendra``."""
    degraded: tuple[Degradation, ...] = ()
    """Why this is incomplete, if it is."""
    model_uses: tuple[ModelUse, ...] = ()
    """Of text models and re-rankers, not of the query's embedding."""


class Laps:
    """Milliseconds of a search's steps."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        """End a step."""
        now = time.perf_counter()
        self.ms[step] = round((now - self._last) * 1000, 3)
        self._last = now


class Retriever(Protocol):
    """Finds passages."""

    def search(self, query: SearchQuery) -> SearchResult:
        """Return the best passages for the query.

        Raises:
            IndexFailure: the index cannot serve it.
            ModelBusy, ModelUnavailable, ModelRefused: the query could not be embedded.
            OutOfTime, Stopped: the query's limits leave no time, or stopped it.
        """

    def version(self) -> str:
        """The index version that a search would use now. Raises IndexFailure if none could be loaded."""
