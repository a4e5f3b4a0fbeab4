"""Script sets: a folder with ``questions.jsonl`` and a script, in ``script/`` or beside it; or the questions alone.

A question is ``{"id", "question", "answers", "episodes", "answer"}``: the ids of the messages that answer it (none: the
script does not tell), the episodes that a reader would have limited it to, and the answer in words, for
``cicada eval --answers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cicada.corpus.messages import Message
from cicada.corpus.scripts import SUFFIXES, read_script, script_files
from cicada.corpus.windows import passages
from cicada.errors import CorpusInvalid
from cicada.retrieval.ports import Filters
from cicada_evaluation.judged import JudgedSet, Query, gold_answers, named
from cicada_evaluation.readers import Problems, content_digest, json_lines

QUESTIONS = "questions.jsonl"
SCRIPT_FOLDER = "script"
GAIN = 1
"""Of every message that answers a question."""


def is_script_set(path: Path) -> bool:
    """Whether the folder, or file of questions, is such a set."""
    return (path / QUESTIONS).is_file() or (path.is_file() and path.suffix == ".jsonl")


def read_script_set(path: Path, collection: str) -> JudgedSet:
    """Read a set. Its passages are those that ``cicada load`` would make of the script.

    Args:
        path: the folder, or the file of questions: then there is no corpus.
        collection: the collection of the index that the passages are for.

    Raises:
        CorpusInvalid: a file breaks its format, with file and line; or no question is answered by anything.
    """
    questions = path if path.is_file() else path / QUESTIONS
    problems = Problems()
    found = list(_questions(questions, problems))
    problems.raise_if_any()
    queries = tuple(query for query, answers, _ in found if answers)
    if not queries:
        raise CorpusInvalid(f"{questions}: no question has a message that answers it")
    files = [] if path.is_file() else _script_files(path)
    messages = read_script(files) if files else []
    judgements = {query.id: dict.fromkeys(answers, GAIN) for query, answers, _ in found if answers}
    return JudgedSet(
        name=(path.resolve().parent if path.is_file() else path.resolve()).name,
        kind="script",
        path=path,
        queries=queries,
        judgements=judgements,
        left_out=len(found) - len(queries),
        corpus=tuple(passages(collection, messages)),
        corpus_digest=content_digest(files) if files else None,
        notes=tuple(_notes(messages, queries, judgements)),
        gold={query.id: gold for query, answers, gold in found if answers and gold},
        without_judgements=tuple(query for query, answers, _ in found if not answers),
    )


def _script_files(folder: Path) -> list[Path]:
    """The script's files; none if the folder holds questions only."""
    if (folder / SCRIPT_FOLDER).is_dir():
        return script_files([folder / SCRIPT_FOLDER])
    return sorted(
        file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file() and file.name != QUESTIONS
    )


def _questions(file: Path, problems: Problems) -> Iterator[tuple[Query, tuple[str, ...], tuple[str, ...]]]:
    """Each question, the messages that answer it, and its answer in words."""
    ids: set[str] = set()
    for line, found in json_lines(file, problems):
        if problem := _problem(found, ids):
            problems.add(file, line, problem)
            continue
        ids.add(found["id"])
        filters = Filters(episodes=tuple(found.get("episodes", ())))
        yield Query(found["id"], found["question"], filters), tuple(found["answers"]), gold_answers(found.get("answer"))


def _problem(found: dict[str, Any], ids: set[str]) -> str | None:
    for field in ("id", "question"):
        if not isinstance(found.get(field), str) or not found[field].strip():
            return f"{field} must be a string that is not empty"
    for field in ("answers", "episodes"):
        value = found.get(field, () if field == "episodes" else None)
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
            return f"{field} must be a list of ids"
    return f"id {found['id']!r} comes twice" if found["id"] in ids else None


def _notes(
    messages: Sequence[Message], queries: Sequence[Query], judgements: dict[str, dict[str, int]]
) -> Iterator[str]:
    if not messages:
        return
    known = {message.message_id for message in messages}
    if unknown := sorted({answer for answers in judgements.values() for answer in answers} - known):
        yield f"{len(unknown):,} judged messages are not in the script, and count as not found: {named(unknown)}"
    episodes = {message.episode_id for message in messages}
    if strange := sorted({episode for query in queries for episode in query.filters.episodes} - episodes):
        yield f"{len(strange):,} episodes that questions are limited to are not in the script: {named(strange)}"
