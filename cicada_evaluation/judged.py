"""A judged set: queries, what is relevant to each, and the corpus in which it is to be found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import Passage, ScriptLocator
from cicada.retrieval.ports import Filters

Kind = Literal["beir", "script", "documents"]
MAX_NAMED = 5
"""Ids that a note names of however many."""


@dataclass(frozen=True)
class Query:
    """A question, and where it may look."""

    id: str
    text: str
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True)
class JudgedSet:
    """Queries that have relevant documents, their judgements, and the corpus."""

    name: str
    kind: Kind
    path: Path
    queries: tuple[Query, ...]
    judgements: Mapping[str, Mapping[str, int]]
    """By query and document: the gain, 0 for what was judged not to be relevant. Each query has one above 0."""
    left_out: int  # queries that nothing relevant is known for: no measure says anything of them
    corpus: tuple[Indexable, ...]
    """What is to be searched; empty when the set has queries only, for an index that holds its corpus already."""
    corpus_digest: str | None  # of the corpus' files; None without them
    notes: tuple[str, ...] = ()  # what the reader of a result should know of the set
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By query, where the set tells it: the answer in words, each of which is right."""
    without_judgements: tuple[Query, ...] = ()
    """The queries that are left out: of a script's, those that it does not answer."""

    def limited(self, limit: int | None) -> JudgedSet:
        """The set with so many of its queries, chosen by a hash of their ids and left in their order.

        The choice is the same on every machine, and a smaller one is part of a larger one. The first ones of a file
        would not do: neighbouring queries often ask about one and the same document.
        """
        if limit is None or limit >= max(len(self.queries), len(self.without_judgements)):
            return self
        kept = chosen(self.queries, limit)
        judgements = {query.id: self.judgements[query.id] for query in kept}
        return replace(
            self, queries=kept, judgements=judgements, without_judgements=chosen(self.without_judgements, limit)
        )

    def judgements_digest(self) -> str:
        """A SHA-256 of the queries and judgements, in hexadecimal: results under one digest can be compared."""
        written = [
            [query.id, query.text, sorted(query.filters.episodes), sorted(self.judgements[query.id].items())]
            for query in sorted(self.queries, key=lambda query: query.id)
        ]
        return hashlib.sha256(json.dumps(written).encode()).hexdigest()


def judged_id(passage: Passage, engine: str) -> str:
    """What judgements call a passage: a script's message, in whatever language, else the passage itself.

    Kendra cuts documents into passages of its own, named ``<document>#<digest>``: there it is the document.
    """
    if engine == "kendra":
        return passage.id.rpartition("#")[0]
    return passage.locator.message_id if isinstance(passage.locator, ScriptLocator) else passage.id


def chosen(queries: tuple[Query, ...], limit: int) -> tuple[Query, ...]:
    """So many of the queries, by a hash of their ids, in their order."""
    if limit >= len(queries):
        return queries
    kept = set(sorted((query.id for query in queries), key=_hash)[:limit])
    return tuple(query for query in queries if query.id in kept)


def gold_answers(told: object) -> tuple[str, ...]:
    """The right answers that a set's field tells, a string or several; none if it holds something else."""
    answers = told if isinstance(told, list) else [told]
    return tuple(answer for answer in answers if isinstance(answer, str) and answer.strip())


def named(ids: list[str]) -> str:
    """The first few ids, for a note."""
    more = f" and {len(ids) - MAX_NAMED:,} more" if len(ids) > MAX_NAMED else ""
    return ", ".join(ids[:MAX_NAMED]) + more


def _hash(query_id: str) -> bytes:
    return hashlib.sha256(query_id.encode("utf-8", "surrogatepass")).digest()
