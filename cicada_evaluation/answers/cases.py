"""What is asked: the questions of a set, and those to which nothing relevant is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cicada.errors import CorpusInvalid
from cicada.retrieval.ports import Filters
from cicada_evaluation.judged import JudgedSet, Query, chosen
from cicada_evaluation.readers import Problems, json_lines

Kind = Literal["answerable", "removed", "left_out", "file"]
Unanswerable = Literal["removed", "left-out"] | Path
"""Where questions come from to which nothing relevant is there: the set's own, with what is relevant taken out of what
is found; those that nothing relevant is known for; or a file."""


@dataclass(frozen=True)
class Case:
    """One question that is answered once a generator."""

    query: Query
    kind: Kind = "answerable"
    relevant: Mapping[str, int] = field(default_factory=dict)  # by passage, as judgements name it: the gain
    gold: tuple[str, ...] = ()  # the answer in words, each of which is right; empty where the set does not tell

    @property
    def answerable(self) -> bool:
        """Whether something relevant is known."""
        return self.kind == "answerable"


def cases_of(judged: JudgedSet, unanswerable: Sequence[Unanswerable], limit: int | None) -> tuple[Case, ...]:
    """All that is to be asked of a set.

    Args:
        judged: the set, with as many of its queries as are wanted.
        unanswerable: where questions without anything relevant come from.
        limit: how many of a file's are taken.

    Raises:
        CorpusInvalid: a file cannot be read, or breaks the format.
    """
    cases = [
        Case(query, relevant=judged.judgements[query.id], gold=judged.gold.get(query.id, ()))
        for query in judged.queries
    ]
    for origin in unanswerable:
        if origin == "removed":
            cases += [Case(query, "removed", judged.judgements[query.id]) for query in judged.queries]
        elif origin == "left-out":
            cases += [Case(query, "left_out") for query in judged.without_judgements]
        else:
            read = read_questions(origin)
            cases += [Case(query, "file") for query in (read if limit is None else chosen(read, limit))]
    return tuple(cases)


def read_questions(file: Path) -> tuple[Query, ...]:
    """Questions that nothing answers: JSON Lines of ``id`` (or ``_id``), ``question`` (or ``text``), and ``episodes``.

    Raises:
        CorpusInvalid: the file cannot be read, breaks the format, or holds none.
    """
    problems = Problems()
    queries = tuple(_questions(file, problems))
    problems.raise_if_any()
    if not queries:
        raise CorpusInvalid(f"{file}: holds no question")
    return queries


def _questions(file: Path, problems: Problems) -> Iterator[Query]:
    ids: set[str] = set()
    for line, found in json_lines(file, problems):
        query_id, text = found.get("id", found.get("_id")), found.get("question", found.get("text"))
        episodes = found.get("episodes", [])
        if not isinstance(query_id, str) or not query_id or query_id in ids:
            problems.add(file, line, "id must be a string that no other question has")
        elif not isinstance(text, str) or not text.strip():
            problems.add(file, line, "question must be a string that is not empty")
        elif not isinstance(episodes, list) or not all(isinstance(one, str) and one for one in episodes):
            problems.add(file, line, "episodes must be a list of ids")
        else:
            ids.add(query_id)
            yield Query(query_id, text, Filters(episodes=tuple(episodes)))
