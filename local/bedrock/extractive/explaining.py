"""Explains a database table without a model: by the sentences of the passages that hold the words of its names.

A meaning is the sentence that holds most words of a name, with its passage's number; without one it is the name's own
words. A rule is a sentence about a column that obliges, forbids, bounds or counts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.bedrock.extractive.prompt import NumberedPassage
from local.bedrock.extractive.text import content_stems, sentences

MIN_SHARE = 0.5
"""Of a name's words, what a sentence about it holds at least."""
MAX_RULES = 10
MAX_SENTENCE_CHARS = 300
_TABLE = re.compile(r'<table name="([^"<>]*+)"')
_COLUMN = re.compile(r'<column name="([^"<>]*+)"')
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_RULE = re.compile(
    r"\d|\b(?:must|shall|never|always|only|may not|cannot|not allowed|required|at (?:most|least)|no (?:more|less) than|"
    r"(?:more|less|fewer) than|between|until|unless|within|every|each|half|once|twice)\b",
    re.I,
)


@dataclass(frozen=True)
class _Said:
    """A sentence of a passage."""

    number: int
    text: str
    stems: frozenset[str]


def asks_to_explain(user: str, schema: Mapping[str, Any]) -> bool:
    """Whether a form is that of a table's explanation, and the prompt names the table."""
    return {"meaning", "columns", "rules"} <= schema.get("properties", {}).keys() and _TABLE.search(user) is not None


def explain_table(user: str, passages: Sequence[NumberedPassage]) -> dict[str, Any]:
    """The form, filled in from the prompt's passages; every column of the prompt is in it, in its order."""
    table = html.unescape(_TABLE.findall(user)[-1])
    columns = [html.unescape(name) for name in _COLUMN.findall(user)]
    said = [
        _Said(passage.number, " ".join(sentence.split()), content_stems(sentence))
        for passage in passages
        for sentence in sentences(passage.text)
        if len(sentence) <= MAX_SENTENCE_CHARS
    ]
    about = _stems(table)
    of_columns = frozenset().union(*map(_stems, columns))
    return {
        **_meaning(table, said, of_columns),
        "columns": [{"name": name, **_meaning(name, said, about)} for name in columns],
        "rules": list(_rules(columns, said))[:MAX_RULES],
    }


def _meaning(name: str, said: Sequence[_Said], beside: frozenset[str]) -> dict[str, Any]:
    """What is said of a name; of two sentences that hold as much of it, the one with more of the words ``beside``."""
    stems = _stems(name)
    best = max(said, key=lambda one: (_share(stems, one), len(beside & one.stems), -len(one.text)), default=None)
    if best is None or _share(stems, best) < MIN_SHARE:
        return {"meaning": f"{_words(name).capitalize()}.", "passages": []}
    return {"meaning": best.text, "passages": [best.number]}


def _rules(columns: Sequence[str], said: Sequence[_Said]) -> Iterator[dict[str, Any]]:
    told: set[str] = set()
    for one in said:
        named = [name for name in columns if _share(_stems(name), one) >= MIN_SHARE]
        if named and one.text not in told and _RULE.search(one.text):
            told.add(one.text)
            yield {"rule": one.text, "columns": named, "passages": [one.number]}


def _share(stems: frozenset[str], said: _Said) -> float:
    return len(stems & said.stems) / len(stems) if stems else 0.0


def _stems(name: str) -> frozenset[str]:
    return content_stems(_words(name))


def _words(name: str) -> str:
    """The words of a name: ``readingFt_2`` is *reading ft 2*."""
    return " ".join(_HUMP.sub(" ", name).replace("_", " ").lower().split()) or name
