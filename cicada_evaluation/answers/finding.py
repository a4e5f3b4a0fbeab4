"""Retrieval for answers: each question is searched for once a mode, and every generator is given what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from cicada.errors import CicadaError
from cicada.retrieval.ports import Retriever, SearchQuery, SearchResult
from cicada.rights import EVERYTHING
from cicada.settings import AnswerSettings
from cicada_evaluation.embedding import QueryEmbedder
from cicada_evaluation.judged import Query, judged_id
from cicada_evaluation.modes import SHARD_MODES


@dataclass(frozen=True)
class Searching:
    """How the strategies search; what a deployment does that sets nothing else."""

    top_k: int = AnswerSettings.model_fields["top_k"].default
    min_score: float = AnswerSettings.model_fields["min_score"].default
    prompt_passages: int = AnswerSettings.model_fields["prompt_passages"].default


@dataclass(frozen=True)
class FoundPassages:
    """What a question's search gave: a result, or why there is none."""

    result: SearchResult | None
    search_ms: float | None
    error: CicadaError | None = None


class FoundBefore:
    """A :class:`cicada.retrieval.ports.Retriever` that gives what one search gave, whatever it is asked."""

    def __init__(self, found: FoundPassages) -> None:
        """Take what was found."""
        self._found = found

    def search(self, query: SearchQuery) -> SearchResult:  # noqa: ARG002 - it was made for this one query
        """See the port. Raises what the search had raised."""
        if self._found.result is None:
            assert self._found.error is not None
            raise self._found.error
        return self._found.result

    def version(self) -> str:
        """See the port."""
        return "" if self._found.result is None else self._found.result.index_version


def find(
    query: Query,
    retriever: Retriever,
    embedder: QueryEmbedder,
    *,
    mode: str,
    collections: tuple[str, ...],
    searching: Searching,
    clock: Callable[[], float] = time.perf_counter,
) -> FoundPassages:
    """Search for a question as the strategies do.

    Args:
        query: the question.
        retriever: of the mode.
        embedder: keeps the question's vector.
        mode: the way to search.
        collections: that the question is limited to.
        searching: the settings.
        clock: seconds.
    """
    search = SearchQuery(
        query.text,
        replace(query.filters, collections=collections),
        top_k=searching.top_k,
        min_score=searching.min_score,
        mode=SHARD_MODES.get(mode, "hybrid"),
        readable=EVERYTHING,
    )
    with suppress(CicadaError):  # the search says what that means: the words alone may find something
        embedder.prepare([query.text], lambda _done, _total: None)
    began = clock()
    try:
        result = retriever.search(search)
    except CicadaError as error:
        return FoundPassages(None, None, error)
    taken_ms = (clock() - began) * 1000 - result.timings_ms.get("embed", 0.0)
    return FoundPassages(result, round(max(0.0, taken_ms), 3))


def without_relevant(
    found: FoundPassages, relevant: Collection[str], text_of: Callable[[str], str | None]
) -> FoundPassages:
    """What was found but for relevant passages, and for those that show one of them among their surroundings.

    Args:
        found: what a search gave.
        relevant: the relevant passages, as judgements name them.
        text_of: the text of one of them, where it is known without a search.
    """
    result = found.result
    if result is None:
        return found
    gone = {hit.passage.id for hit in result.hits if judged_id(hit.passage, result.engine) in relevant}
    texts = {hit.passage.text for hit in result.hits if hit.passage.id in gone}
    texts |= {text for name in relevant if (text := text_of(name))}
    kept = tuple(
        hit
        for hit in result.hits
        if hit.passage.id not in gone and not any(text in hit.passage.context for text in texts)
    )
    return replace(found, result=replace(result, hits=kept))
