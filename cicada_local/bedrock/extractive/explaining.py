"""Explains a database table without a model: by the sentences of the passages that hold the words of its names.

A sentence is about a name if it holds half of its words, and a second word of the table's; of a name of several words
it is enough that its passage speaks of the table. A meaning is the sentence that holds most words of a name, with its
passage's number; without one it is the name's own words. A rule is a sentence about a column that obliges, forbids,
bounds or counts. Headings and the lines of records are no sentences.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.bedrock.extractive.text import content_stems, sentences

MIN_SHARE = 0.5
"""Of a name's words, what a sentence about it holds at least."""
MAX_RULES = 10
MAX_SENTENCE_CHARS = 300
_PASSAGE = re.compile(r'<passage n="([0-9]{1,6})"[^<>]*+>([^<]*+)</passage>')
_TABLE = re.compile(r'<table name="([^"<>]*+)"')
_COLUMN = re.compile(r'<column name="([^"<>]*+)"')
_RECORD = re.compile(r"[\w .()-]{1,40}: ")
_ENDS = (".", "!", "?", "。", "！", "？")
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
    around: frozenset[str]
    """Those of its passage."""


@dataclass(frozen=True)
class _Known:
    """The words of the names, as stems."""

    table: frozenset[str]
    all: frozenset[str]


def asks_to_explain(user: str, schema: Mapping[str, Any]) -> bool:
    """Whether a form is that of a table's explanation, and the prompt names the table."""
    return {"meaning", "columns", "rules"} <= schema.get("properties", {}).keys() and _TABLE.search(user) is not None


def explain_table(user: str) -> dict[str, Any]:
    """The form, filled in from the prompt's passages; every column of the prompt is in it, in its order."""
    table = html.unescape(_TABLE.findall(user)[-1])
    columns = [html.unescape(name) for name in _COLUMN.findall(user)]
    said = [one for number, text in _PASSAGE.findall(user) for one in _said(int(number), html.unescape(text))]
    known = _Known(_stems(table), frozenset().union(*map(_stems, (table, *columns))))
    return {
        **_meaning(table, said, known),
        "columns": [{"name": name, **_meaning(name, said, known)} for name in columns],
        "rules": list(_rules(columns, said, known))[:MAX_RULES],
    }


def _said(number: int, text: str) -> Iterator[_Said]:
    around = content_stems(text)
    for line in text.splitlines():
        for sentence in sentences(line):
            plain = " ".join(sentence.split())
            if len(plain) <= MAX_SENTENCE_CHARS and plain.endswith(_ENDS) and not _RECORD.match(plain):
                yield _Said(number, plain, content_stems(plain), around)


def _meaning(name: str, said: Sequence[_Said], known: _Known) -> dict[str, Any]:
    """What is said of a name; of two sentences that hold as much of it, the one with more of all names' words."""
    stems = _stems(name)
    about = [one for one in said if _is_about(stems, one, known)]
    about.sort(key=lambda one: (len(stems & one.stems), len(known.all & one.stems), -len(one.text)))
    if not about:
        return {"meaning": f"{_words(name).capitalize()}.", "passages": []}
    return {"meaning": about[-1].text, "passages": [about[-1].number]}


def _rules(columns: Sequence[str], said: Sequence[_Said], known: _Known) -> Iterator[dict[str, Any]]:
    told: set[str] = set()
    for one in said:
        named = [name for name in columns if _is_about(_stems(name), one, known)]
        if named and one.text not in told and _RULE.search(one.text):
            told.add(one.text)
            yield {"rule": one.text, "columns": named, "passages": [one.number]}


def _is_about(stems: frozenset[str], said: _Said, known: _Known) -> bool:
    held = len(said.stems & stems)
    if held == 0 or held < MIN_SHARE * len(stems):
        return False
    return len(said.stems & known.all) > 1 or (len(stems) > 1 and bool(known.table & said.around))


def _stems(name: str) -> frozenset[str]:
    return content_stems(_words(name))


def _words(name: str) -> str:
    """The words of a name: ``readingFt_2`` is *reading ft 2*."""
    return " ".join(_HUMP.sub(" ", name).replace("_", " ").lower().split()) or name
