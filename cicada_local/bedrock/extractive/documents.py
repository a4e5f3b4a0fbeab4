"""Finds the sentences of documents that answer a question, and decides whether any do.

A passage is read as its sentences; long ones (tables, code, lists without stops) as their lines. Each sentence with up
to two that follow it, and with the line that introduces it, is an *excerpt*. An excerpt's score is linear in a few
features: likeness (MiniLM), the question's words in it and around it (rare ones weigh more), the search's order, and
whether it has the kind of thing that is asked for. Whether the best one answers at all is a logistic regression over
its score and what the score hides. ``python -m training.documents`` fits both and writes ``documents.json``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain

from cicada.protocol.markers import markers_in
from cicada.text.sentences import contains_quotation, pieces, sentences
from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.question import Part, parts_of, whole
from cicada_local.bedrock.extractive.text import content_stems
from cicada_local.bedrock.minilm import SentenceEmbedder

MAX_EMBEDDED = 40
"""Excerpts compared by meaning: those that share most words with the question. It bounds the time of an answer."""
MAX_EXCERPTS = 3
LEAST_PROBABILITY = 0.39
"""Of an answer in the best excerpt; below it the documents are said not to answer."""
TYPICAL_COUNT = 10
"""Scores that the typical score counts for."""
MARGIN = 6.0
"""How far behind the best excerpt, in log-odds, another is still quoted."""
MAX_EXCERPT_CHARS = 300
MAX_EXCERPT_UNITS = 3
MAX_UNIT_CHARS = 320
_PIECE_TOKENS = 75
"""Of a line that is too long: about 300 characters."""
_LEAST_STEMS = 2
"""Words that carry meaning, of an excerpt."""
_LEAST_LETTERS = 0.5
"""Of its characters, the share that are letters and digits."""
RANK = ("likeness", "words", "around", "place", "kind")
DECIDE = ("score", "spread", "likeness", "missed", "amount", "length")


@dataclass
class Excerpt:
    """Neighbouring sentences of a passage."""

    passage: NumberedPassage
    first: int
    last: int
    text: str
    """On one line."""
    around: str
    """With the sentences before and after it."""
    features: dict[str, float] = field(default_factory=dict)
    score: float = 0.0

    def overlaps(self, other: Excerpt) -> bool:
        """Whether both have a sentence in common."""
        return self.passage.number == other.passage.number and self.first <= other.last and other.first <= self.last


def find(question: str, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Excerpt]:
    """The excerpts that answer a question, the best first, at most :data:`MAX_EXCERPTS`; none if nothing answers.

    Of a compound question each part is answered by itself, as far as it is.
    """
    parts = [_answering(part.text, passages, embedder)[:1] for part in parts_of(question, passages)]
    return chosen([*chain(*parts), *_answering(question, passages, embedder)])


def _answering(question: str, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Excerpt]:
    found = ranked(question, passages, embedder)
    if not found or probability(found[0]) < LEAST_PROBABILITY:
        return []
    return [one for one in found if one.score > found[0].score - MARGIN]


def chosen(found: Sequence[Excerpt]) -> list[Excerpt]:
    """The first few that say different things, and that a check of quotations finds in their passages."""
    kept: list[Excerpt] = []
    for one in found:
        if contains_quotation(one.passage.text, one.text) and not any(
            one.overlaps(other) or one.text in other.text or other.text in one.text for other in kept
        ):
            kept.append(one)
        if len(kept) == MAX_EXCERPTS:
            break
    return kept


def ranked(question: str, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Excerpt]:
    """The excerpts that may answer, with their features and scores, the best first."""
    asked = whole(question, passages)
    excerpts = _measured(asked, list(_excerpts(passages)))[:MAX_EMBEDDED]
    if not excerpts:
        return []
    vector, *vectors = embedder.embed([question, *(one.text for one in excerpts)])
    weights = _weights()["rank"]
    for one, other in zip(excerpts, vectors, strict=True):
        one.features["likeness"] = float(vector @ other)
        one.score = math.fsum(weights[name] * one.features[name] for name in RANK)
    usual = usual_score([one.score for one in excerpts], weights["typical"])
    for one in excerpts:
        one.features |= {"score": one.score, "spread": one.score - usual}
    return sorted(excerpts, key=lambda one: -one.score)


def usual_score(scores: Sequence[float], typical: float) -> float:
    """The mean of a prompt's scores; of few, drawn towards what is typical of prompts."""
    return (math.fsum(scores) + TYPICAL_COUNT * typical) / (len(scores) + TYPICAL_COUNT)


def probability(excerpt: Excerpt) -> float:
    """That an excerpt answers its question."""
    weights = _weights()["decide"]
    odds = weights["bias"] + math.fsum(weights[name] * excerpt.features[name] for name in DECIDE)
    return 1 / (1 + math.exp(-odds))


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    found: Mapping[str, Mapping[str, float]] = json.loads((files(__package__) / "documents.json").read_bytes())
    return found


def _excerpts(passages: Sequence[NumberedPassage]) -> Iterator[Excerpt]:
    seen: set[str] = set()
    for passage in passages:
        units = units_of(passage.lines)
        for at, unit in enumerate(units):
            if unit in seen:  # passages overlap
                continue
            seen.add(unit)
            first, last = _extent(units, at)
            text = " ".join(units[first : last + 1])
            if _is_readable(text) and next(markers_in(text), None) is None:
                yield Excerpt(passage, first, last, text, " ".join(units[max(0, at - 2) : at + 2]))


def _is_readable(text: str) -> bool:
    """Whether it says something: a heading alone, a rule of dashes and a drawn table do not."""
    signs = "".join(text.split())
    return len(content_stems(text)) >= _LEAST_STEMS and sum(map(str.isalnum, signs)) >= _LEAST_LETTERS * len(signs)


def _extent(units: Sequence[str], at: int) -> tuple[int, int]:
    """From a sentence on as many as fit, and more after one that only introduces; the line that introduces it."""
    first = last = at
    size = len(units[at])
    while last + 1 < len(units):
        opens, more = units[last].endswith((":", "?")), size + len(units[last + 1])
        if not (opens and more <= 2 * MAX_EXCERPT_CHARS) and (
            last - at + 1 == MAX_EXCERPT_UNITS or more > MAX_EXCERPT_CHARS
        ):
            break
        last, size = last + 1, more
    if at and units[at - 1].endswith(":") and size + len(units[at - 1]) <= MAX_EXCERPT_CHARS:
        first -= 1
    return first, last


def units_of(text: str) -> list[str]:
    """The sentences of a text, each on one line; a long one by its lines, or cut between clauses."""
    parts = [part for sentence in sentences(text) for part in _lines(sentence)]
    return [unit for part in parts if (unit := " ".join(part.split()))]


def _lines(sentence: str) -> Iterator[str]:
    if len(sentence) <= MAX_UNIT_CHARS:
        yield sentence
        return
    lines = sentence.splitlines(keepends=True)
    edge = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    entry = ""
    for line in lines:  # one that is deeper than others goes on with the line before
        if entry.strip() and (_indent(line) <= edge or len(entry) + len(line) > MAX_UNIT_CHARS):
            yield from pieces(entry, _PIECE_TOKENS)
            entry = ""
        entry += line
    yield from pieces(entry, _PIECE_TOKENS)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _measured(asked: Part, excerpts: list[Excerpt]) -> list[Excerpt]:
    """The excerpts with the features that words alone give, those with most of the question's words first."""
    stems = [content_stems(one.text) for one in excerpts]
    holders = Counter(stem for of_one in stems for stem in of_one & asked.stems)
    weights = {stem: math.log1p(len(excerpts) / (holders[stem] + 0.5)) for stem in sorted(asked.stems)}
    total = math.fsum(weights.values()) or 1.0

    def share(held: frozenset[str]) -> float:
        return math.fsum(weight for stem, weight in weights.items() if stem in held) / total

    for one, own in zip(excerpts, stems, strict=True):
        passage = one.passage
        named = content_stems(re.sub(r"[-_.]", " ", f"{passage.title} {passage.section} {passage.source}"))
        one.features = {
            "words": share(own | named),
            "around": share(content_stems(one.around) | own),
            "place": 1 / passage.number,
            "kind": float(asked.offered_by(one.text)),
            "missed": float(asked.missed_by(one.text)),
            "amount": float(asked.asks_how_much),
            "length": math.log1p(len(asked.stems)),
        }
    return sorted(excerpts, key=lambda one: -(one.features["words"] + one.features["around"]))
