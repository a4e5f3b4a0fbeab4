"""Ranks the passages of a prompt by how well they answer its question, and weighs what ties them to it.

The score is linear in a few features: meaning (MiniLM), shared words (rare ones weigh more), the search's own order,
the kind of answer that is asked for, and the dialogue: a reply is judged with the question that it replies to.
The weights are rounded from a conditional logit (which of ten passages answers?) fitted on the sample's questions.

Scores compare the passages of one prompt. Whether even the best of them answers anything is told by the *evidence*,
which leaves out what makes all passages about a person look alike: that person's name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.question import Part
from cicada_local.bedrock.extractive.text import content_stems
from cicada_local.bedrock.minilm import SentenceEmbedder

MEANING = 4.0
ORDER = 1.0
SHARED_WORDS = 2.5
REPLY = 3.6
ASKS_ITSELF = -1.5
EXPECTED_KIND = 0.6
SUBSTANCE = 0.8

MISFIT = 0.6
"""What is left of the evidence where the kind of answer that is asked for is not in the passage."""
FULL_NAME = 0.3
"""Evidence of a passage that gives a person's full name, as the question does: people are introduced once."""
PRECISION = 4
"""Decimals of scores: what differs by rounding, from one batch of texts to another, is a tie."""


@dataclass(frozen=True)
class Candidate:
    """A passage and its score: the difference of two of one ranking is a log-odds."""

    passage: NumberedPassage
    score: float
    replies_to: NumberedPassage | None
    """The message before it, if that is in the prompt and asks something."""


def asks(text: str) -> bool:
    """Whether a text ends in a question."""
    return text.rstrip("\"'”’»」』)").endswith(("?", "？"))


class Ranking:
    """The passages of a prompt, judged against one part of its question."""

    def __init__(self, part: Part, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> None:
        self._part = part
        self._embedder = embedder
        self._overlap = _Overlap(part, passages)
        self.candidates = self._ranked(passages)
        """All of them; best first, ties in the prompt's order."""

    def evidence(self, candidate: Candidate) -> float:
        """How much ties a passage to the question, whatever else is in the prompt: 0 is nothing, 1 is plenty."""
        said = [passage for passage in (candidate.replies_to, candidate.passage) if passage is not None]
        question, text = self._embedder.embed([self._part.nameless, " ".join(passage.text for passage in said)])
        evidence = float(question @ text) + self._overlap.evidence(said)
        missed = self._part.missed_by(candidate.passage.text)
        return round(evidence * (MISFIT if missed else 1), PRECISION)

    def _ranked(self, passages: Sequence[NumberedPassage]) -> list[Candidate]:
        if not passages:
            return []
        spoken = [_spoken(passage) for passage in passages]
        question, *vectors = self._embedder.embed([self._part.text, *spoken])
        cosine = {text: float(vector @ question) for text, vector in zip(spoken, vectors, strict=True)}
        order = _order([passage.relevance for passage in passages])
        candidates = []
        for passage, place in zip(passages, order, strict=True):
            replies_to = _asked_before(passage, passages)
            score = (
                MEANING * cosine[_spoken(passage)]
                + ORDER * place
                + SHARED_WORDS * self._overlap.share(passage)
                + REPLY * (max(0.0, cosine[_spoken(replies_to)]) if replies_to else 0.0)
                + ASKS_ITSELF * asks(passage.text)
                + EXPECTED_KIND * self._part.offered_by(passage.text)
                + SUBSTANCE * math.log1p(len(content_stems(passage.text)))
            )
            candidates.append(Candidate(passage, round(score, PRECISION), replies_to))
        return sorted(candidates, key=lambda candidate: -candidate.score)


def _spoken(passage: NumberedPassage) -> str:
    """A line of the script, in the form in which a script is embedded: its vector may be known already."""
    return f"{passage.speaker}: {passage.text}" if passage.speaker else passage.text


def _asked_before(passage: NumberedPassage, passages: Sequence[NumberedPassage]) -> NumberedPassage | None:
    """The question that a passage replies to."""
    if asks(passage.text):
        return None
    return next((other for other in passages if passage.follows(other) and asks(other.text)), None)


def _order(relevances: Sequence[float]) -> list[float]:
    """The search's relevance, spread over [0, 1] within the prompt: scales differ from one search to another."""
    low, high = min(relevances), max(relevances)
    return [(relevance - low) / (high - low) if high > low else 1.0 for relevance in relevances]


class _Overlap:
    """The share of a question's words that a passage has; the rarer in the prompt, the more a word weighs."""

    def __init__(self, part: Part, passages: Sequence[NumberedPassage]) -> None:
        self._names = part.names
        self._stems = {passage.number: content_stems(passage.text) for passage in passages}
        holders = Counter(stem for stems in self._stems.values() for stem in stems)
        self._weights = {stem: math.log1p(len(passages) / (holders[stem] + 0.5)) for stem in sorted(part.stems)}

    def share(self, passage: NumberedPassage) -> float:
        """In [0, 1]."""
        return self._share(self._stems[passage.number])

    def evidence(self, said: Sequence[NumberedPassage]) -> float:
        """How much the words of an exchange tie it to the question: one shared word can be chance."""
        stems = frozenset().union(*(self._stems[passage.number] for passage in said))
        introduces = FULL_NAME if len(self._names & stems) > 1 else 0.0
        return self._share(stems) * min(1.0, len(stems & self._weights.keys()) / 2) + introduces

    def _share(self, stems: frozenset[str]) -> float:
        total = sum(self._weights.values())
        return sum(weight for stem, weight in self._weights.items() if stem in stems) / total if total else 0.0
