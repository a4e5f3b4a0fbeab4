"""Reading a judged set of whatever kind."""

from __future__ import annotations

import re
from pathlib import Path

from cicada.errors import CorpusInvalid
from cicada_evaluation.beir import CORPUS, JUDGEMENTS, QUERIES, is_beir, read_beir
from cicada_evaluation.document_sets import DOCUMENTS, is_document_set, read_document_set
from cicada_evaluation.judged import JudgedSet
from cicada_evaluation.script_sets import QUESTIONS, is_script_set, read_script_set

MAX_COLLECTION_CHARS = 64


def read_set(path: Path) -> JudgedSet:
    """Read the set in a folder, or a script set's file of questions.

    Raises:
        CorpusInvalid: there is none, or it breaks its format.
    """
    if path.is_dir() and is_beir(path):
        return read_beir(path, collection_of(path))
    if is_document_set(path):
        return read_document_set(path, collection_of(path))
    if is_script_set(path):
        return read_script_set(path, collection_of(path))
    if not path.exists():
        raise CorpusInvalid(f"{path}: there is no such file or folder")
    raise CorpusInvalid(
        f"{path}: holds no judged set: neither {CORPUS}, {QUERIES} and {JUDGEMENTS[0]}, nor {QUESTIONS} and a script "
        f"or a folder {DOCUMENTS}"
    )


def collection_of(path: Path) -> str:
    """The name of the collection that holds a set's corpus, made of its folder's name."""
    name = re.sub(r"[^\w-]", "-", path.resolve().name).strip("-_")
    return name[:MAX_COLLECTION_CHARS] or "set"
