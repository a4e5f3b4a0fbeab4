"""Ranks the passages of a prompt by how well they answer its question.

A linear score over a few features: meaning (MiniLM), shared words (rare ones weigh more), the search's own order,
the kind of answer that is asked for, and the dialogue: a reply is judged with the question that it replies to.
The weights are rounded from a conditional logit (which of ten passages answers?) fitted on the sample's questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from local.bedrock.extractive.prompt import NumberedPassage
from local.bedrock.extractive.question import Part
from local.bedrock.extractive.text import content_stems
from local.bedrock.minilm import SentenceEmbedder

MEANING = 4.0
ORDER = 1.2
SHARED_WORDS = 2.5
NEIGHBOURS_WORDS = 1.8
REPLY = 3.6
ASKS_ITSELF = -1.5
EXPECTED_KIND = 0.6
SUBSTANCE = 0.8

MISFIT = 0.6
"""What is left of the evidence where the kind of answer that is asked for is not in the passage."""
FULL_NAME = 0.3
"""Evidence of a passage that gives a person's full name, as the question does: people are introduced once."""


@dataclass(frozen=True)
class Candidate:
    """A passage, judged against one part of the question."""

    passage: NumberedPassage
    score: float
    """To compare candidates of one prompt: the difference of two is a log-odds."""
    evidence: float
    """How much ties it to the question, whatever else is in the prompt: 0 is nothing, 1 is plenty."""
    replies_to: NumberedPassage | None
    """The message before it, if that is in the prompt and asks something."""


def rank(part: Part, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Candidate]:
    """Judge every passage; best first, ties in the prompt's order."""
    if not passages:
        return []
    dialogues = [_dialogue(passage, passages) for passage in passages]
    meaning = _Meaning(part, dialogues, embedder)
    overlap = _Overlap(part, passages)
    order = _order(passages)
    candidates = []
    for at, dialogue in enumerate(dialogues):
        passage, replies_to = dialogue.passage, dialogue.replies_to
        score = (
            MEANING * meaning.as_spoken[at]
            + ORDER * order[at]
            + SHARED_WORDS * overlap.share(passage)
            + NEIGHBOURS_WORDS * sum(overlap.share(near, apart_from=passage) for near in dialogue.neighbours)
            + REPLY * meaning.of_what_it_answers[at]
            + ASKS_ITSELF * asks(passage.text)
            + EXPECTED_KIND * part.offered_by(passage.text)
            + SUBSTANCE * math.log1p(len(content_stems(passage.text)))
        )
        evidence = meaning.without_names[at] + overlap.evidence(passage, replies_to)
        evidence *= MISFIT if part.missed_by(passage.text) else 1
        candidates.append(Candidate(passage, round(score, 4), round(evidence, 4), replies_to))
    return sorted(candidates, key=lambda candidate: -candidate.score)


def asks(text: str) -> bool:
    """Whether a text ends in a question."""
    return text.rstrip("\"'”’»」』)").endswith(("?", "？"))


@dataclass(frozen=True)
class _Dialogue:
    """A passage among its neighbours in the script, as far as they are in the prompt."""

    passage: NumberedPassage
    before: NumberedPassage | None
    after: NumberedPassage | None

    @property
    def neighbours(self) -> list[NumberedPassage]:
        return [near for near in (self.before, self.after) if near is not None]

    @property
    def replies_to(self) -> NumberedPassage | None:
        answers = self.before is not None and asks(self.before.text) and not asks(self.passage.text)
        return self.before if answers else None


def _dialogue(passage: NumberedPassage, passages: Sequence[NumberedPassage]) -> _Dialogue:
    before = next((other for other in passages if passage.follows(other)), None)
    after = next((other for other in passages if other.follows(passage)), None)
    return _Dialogue(passage, before, after)


class _Meaning:
    """Cosines of a question with each passage, in the passages' order; each in [-1, 1]."""

    def __init__(self, part: Part, dialogues: Sequence[_Dialogue], embedder: SentenceEmbedder) -> None:
        spoken = [f"{each.passage.speaker}: {each.passage.text}".removeprefix(": ") for each in dialogues]
        exchanges = [
            " ".join(passage.text for passage in (each.replies_to, each.passage) if passage) for each in dialogues
        ]
        asked = [each.replies_to.text if each.replies_to else "" for each in dialogues]
        vectors = embedder.embed([part.text, part.nameless, *spoken, *exchanges, *asked])
        count = len(dialogues)
        cosines = [float(cosine) for cosine in vectors[2:] @ vectors[0]]
        self.as_spoken = cosines[:count]
        self.without_names = [float(cosine) for cosine in vectors[2 + count : 2 + 2 * count] @ vectors[1]]
        self.of_what_it_answers = [
            max(0.0, cosine) if text else 0.0 for text, cosine in zip(asked, cosines[2 * count :], strict=True)
        ]


def _order(passages: Sequence[NumberedPassage]) -> list[float]:
    """The search's relevance, spread over [0, 1] within the prompt: scales differ from one search to another."""
    relevances = [passage.relevance for passage in passages]
    low, high = min(relevances), max(relevances)
    return [(relevance - low) / (high - low) if high > low else 1.0 for relevance in relevances]


class _Overlap:
    """The share of a question's words that a passage has; the rarer in the prompt, the more a word weighs."""

    def __init__(self, part: Part, passages: Sequence[NumberedPassage]) -> None:
        self._names = part.names
        self._stems = {passage.number: content_stems(passage.text) for passage in passages}
        holders = Counter(stem for stems in self._stems.values() for stem in stems)
        self._weights = {stem: math.log1p(len(passages) / (holders[stem] + 0.5)) for stem in part.stems}
        self._total = sum(self._weights.values())

    def share(self, passage: NumberedPassage, *, apart_from: NumberedPassage | None = None) -> float:
        """In [0, 1]; words of ``apart_from`` do not count."""
        stems = self._stems[passage.number]
        if apart_from is not None:
            stems -= self._stems[apart_from.number]
        return (
            sum(weight for stem, weight in self._weights.items() if stem in stems) / self._total if self._total else 0.0
        )

    def evidence(self, passage: NumberedPassage, replies_to: NumberedPassage | None) -> float:
        """How much the words alone tie the passage to the question: one shared word can be chance."""
        stems = self._stems[passage.number]
        matched = len((stems | (self._stems[replies_to.number] if replies_to else frozenset())) & set(self._weights))
        introduces = FULL_NAME if len(self._names & stems) > 1 else 0.0
        return self.share(passage) * min(1.0, matched / 2) + introduces
