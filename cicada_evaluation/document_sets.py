"""Document sets: a folder with ``questions.jsonl`` and ``documents/``, files of any format that ``cicada load`` reads.

A question is ``{"id", "question", "answer", "documents"}``: the strings of which any one shows that a text answers it
(none: the documents do not tell), and the files that it stands in, by their paths below ``documents/``. Relevant are
the passages of those files that hold one of the strings, or, where a string is cut apart, all of the files' passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.indexable import Indexable
from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import CorpusInvalid, DocumentRefused
from cicada.ingest.cutting import cut
from cicada.ingest.sources import source_files
from cicada_evaluation.answers.gold import contained
from cicada_evaluation.judged import JudgedSet, Query, gold_answers, named
from cicada_evaluation.readers import Problems, content_digest, json_lines

QUESTIONS = "questions.jsonl"
DOCUMENTS = "documents"
GAIN = 1
"""Of every passage that answers a question."""


@dataclass(frozen=True)
class _Asked:
    query: Query
    answer: tuple[str, ...]
    documents: tuple[str, ...]


def is_document_set(path: Path) -> bool:
    """Whether the folder is such a set."""
    return (path / QUESTIONS).is_file() and (path / DOCUMENTS).is_dir()


def read_document_set(path: Path, collection: str) -> JudgedSet:
    """Read a set. Its passages are those that ``cicada load`` makes of the documents.

    Args:
        path: the folder.
        collection: the collection of the index that the passages are for.

    Raises:
        CorpusInvalid: a file breaks its format, with file and line; or no document answers any question.
    """
    problems = Problems()
    asked = list(_questions(path / QUESTIONS, problems))
    problems.raise_if_any()
    found = source_files([path / DOCUMENTS])
    corpus, refused = _passages({file.source: file.path for file in found.files}, collection)
    refused += [one.source for one in found.refused]
    judgements = {one.query.id: _relevant(one, corpus) for one in asked if one.answer}
    judgements = {query: relevant for query, relevant in judgements.items() if relevant}
    if not judgements:
        raise CorpusInvalid(f"{path}: no document answers any question")
    lost = [one.query.id for one in asked if one.answer and one.query.id not in judgements]
    notes = [
        f"{len(ids):,} {told}: {named(ids)}"
        for ids, told in (
            (refused, "documents could not be read"),
            (lost, "questions are left out, their documents being missing"),
        )
        if ids
    ]
    return JudgedSet(
        name=path.resolve().name,
        kind="documents",
        path=path,
        queries=tuple(one.query for one in asked if one.query.id in judgements),
        judgements=judgements,
        left_out=len(asked) - len(judgements),
        corpus=tuple(item for items in corpus.values() for item in items),
        corpus_digest=content_digest(file.path for file in found.files),
        notes=tuple(notes),
        gold={one.query.id: one.answer for one in asked if one.query.id in judgements},
        without_judgements=tuple(one.query for one in asked if not one.answer),
    )


def _passages(files: Mapping[str, Path], collection: str) -> tuple[dict[str, list[Indexable]], list[str]]:
    """Each document's passages, and the documents that cannot be read."""
    corpus: dict[str, list[Indexable]] = {}
    refused = []
    for source, file in files.items():
        try:
            document = read_safely(source, file)
            corpus[source] = cut(document, file, collection, ChunkOptions(), metadata={})
        except DocumentRefused:
            refused.append(source)
    return corpus, refused


def _relevant(asked: _Asked, corpus: Mapping[str, Sequence[Indexable]]) -> dict[str, int]:
    passages = [item.passage for source in asked.documents for item in corpus.get(source, ())]
    holding = [passage for passage in passages if contained(passage.text, asked.answer)]
    return dict.fromkeys((passage.id for passage in holding or passages), GAIN)


def _questions(file: Path, problems: Problems) -> Iterator[_Asked]:
    ids: set[str] = set()
    for line, found in json_lines(file, problems):
        if problem := _problem(found, ids):
            problems.add(file, line, problem)
            continue
        ids.add(found["id"])
        yield _Asked(Query(found["id"], found["question"]), gold_answers(found["answer"]), tuple(found["documents"]))


def _problem(found: dict[str, Any], ids: set[str]) -> str | None:
    for field in ("id", "question"):
        if not isinstance(found.get(field), str) or not found[field].strip():
            return f"{field} must be a string that is not empty"
    for field in ("answer", "documents"):
        value = found.get(field)
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            return f"{field} must be a list of strings"
    if bool(found["answer"]) != bool(found["documents"]):
        return "an answer needs its documents, and documents an answer"
    return f"id {found['id']!r} comes twice" if found["id"] in ids else None
