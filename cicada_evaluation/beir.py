"""Sets in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl``, and judgements in ``qrels.tsv`` or ``qrels/test.tsv``.

Source: Thakur et al., "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models", 2021;
the layout is that of the published sets: JSON Lines of ``{"_id", "title", "text"}`` and of ``{"_id", "text"}``, and
tab-separated ``query-id``, ``corpus-id``, ``score`` below a line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.passages import DocumentLocator, Passage
from cicada.errors import CorpusInvalid
from cicada_evaluation.judged import JudgedSet, Query, gold_answers, named
from cicada_evaluation.readers import Problems, content_digest, json_lines, text_lines

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
JUDGEMENTS = ("qrels.tsv", "qrels/test.tsv")
"""The first that exists is read."""
MAX_ID_CHARS = 256
COLUMNS = 3

_GRADE = re.compile(r"-?[0-9]{1,4}")


def is_beir(folder: Path) -> bool:
    """Whether the folder is laid out so."""
    return (folder / CORPUS).is_file() and (folder / QUERIES).is_file()


def read_beir(folder: Path, collection: str) -> JudgedSet:
    """Read a set. Each document becomes one passage: its title, if it has one, a line end, and its text.

    Args:
        folder: holds the set.
        collection: the collection of the index that the passages are for.

    Raises:
        CorpusInvalid: a file is missing or breaks the format, with file and line; or no query has anything relevant.
    """
    problems = Problems()
    judgements_file = next((folder / name for name in JUDGEMENTS if (folder / name).is_file()), None)
    if judgements_file is None:
        raise CorpusInvalid(f"{folder}: holds no judgements: {' or '.join(JUDGEMENTS)} is missing")
    corpus, documents = _corpus(folder / CORPUS, collection, problems)
    asked = list(_queries(folder / QUERIES, problems))
    texts = {query.id: query.text for query, _ in asked}
    judgements = _judgements(judgements_file, problems)
    problems.raise_if_any()
    judged = {query_id for query_id, gains in judgements.items() if any(gain > 0 for gain in gains.values())}
    queries = tuple(query for query, _ in asked if query.id in judged)
    if not queries:
        raise CorpusInvalid(f"{folder}: no query has a relevant document")
    return JudgedSet(
        name=folder.resolve().name,
        kind="beir",
        path=folder,
        queries=queries,
        judgements={query.id: judgements[query.id] for query in queries},
        left_out=len(texts) - len(queries),
        corpus=corpus,
        corpus_digest=content_digest([folder / CORPUS]),
        notes=tuple(_notes(documents, corpus, texts, judgements)),
        gold={query.id: gold for query, gold in asked if gold},
        without_judgements=tuple(query for query, _ in asked if query.id not in judged),
    )


def _corpus(file: Path, collection: str, problems: Problems) -> tuple[tuple[Indexable, ...], set[str]]:
    """The passages, and the ids of all documents: an empty one is no passage, since nothing could find it."""
    ids: set[str] = set()
    passages: list[Indexable] = []
    for line, found in json_lines(file, problems):
        found_id = _id(file, line, found, ids, problems)
        title, text = found.get("title") or "", found.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            problems.add(file, line, "title and text must be strings")
        elif found_id is not None and (whole := f"{title}\n{text}".strip()):
            locator = DocumentLocator(source=found_id, title=title)
            passage = Passage(id=found_id, collection=collection, text=whole, context=whole, locator=locator)
            passages.append(Indexable(passage, (WeightedText(whole, 1.0),)))
    return tuple(passages), ids


def _queries(file: Path, problems: Problems) -> Iterator[tuple[Query, tuple[str, ...]]]:
    """Each query, and its answers in words where the set tells them: ``answer``, a string or several."""
    ids: set[str] = set()
    for line, found in json_lines(file, problems):
        found_id, text = _id(file, line, found, ids, problems), found.get("text")
        if not isinstance(text, str) or not text.strip():
            problems.add(file, line, "text must be a string that is not empty")
        elif found_id is not None:
            yield Query(found_id, text), gold_answers(found.get("answer"))


def _id(file: Path, line: int, found: dict[str, Any], ids: set[str], problems: Problems) -> str | None:
    found_id = found.get("_id")
    if not isinstance(found_id, str) or not 0 < len(found_id) <= MAX_ID_CHARS:
        problems.add(file, line, f"_id must be a string of 1 to {MAX_ID_CHARS} characters")
        return None
    if found_id in ids:
        problems.add(file, line, f"_id {found_id!r} comes twice")
        return None
    ids.add(found_id)
    return found_id


def _judgements(file: Path, problems: Problems) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    headed = False
    for line, row in text_lines(file, problems):
        columns = row.split("\t")
        if len(columns) != COLUMNS:
            problems.add(file, line, f"must have {COLUMNS} columns between tabs, not {len(columns)}")
        elif not headed:
            headed = True
            if _GRADE.fullmatch(columns[2]):
                problems.add(file, line, "the heading is missing: query-id, corpus-id, score")
        elif not _GRADE.fullmatch(columns[2]):
            problems.add(file, line, f"score must be a whole number, not {columns[2]!r}")
        else:
            query_id, document_id, gain = columns[0], columns[1], max(0, int(columns[2]))
            if judgements.setdefault(query_id, {}).setdefault(document_id, gain) != gain:
                problems.add(file, line, f"document {document_id} has another score for query {query_id} above")
    return judgements


def _notes(
    documents: set[str], corpus: tuple[Indexable, ...], texts: dict[str, str], judgements: dict[str, dict[str, int]]
) -> Iterator[str]:
    if empty := sorted(documents - {item.passage.id for item in corpus}):
        yield f"{len(empty):,} empty documents cannot be found: {named(empty)}"
    if unknown := sorted({found for of_query in judgements.values() for found in of_query} - documents):
        yield f"{len(unknown):,} judged documents are not in the corpus, and count as not found: {named(unknown)}"
    if strange := sorted(judgements.keys() - texts.keys()):
        yield f"{len(strange):,} judged queries are not among the queries, and are left out: {named(strange)}"
