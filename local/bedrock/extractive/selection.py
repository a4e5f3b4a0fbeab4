"""Chooses what to quote: few passages, each with a reason, or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from local.bedrock.extractive.episodes import asked_episodes, in_asked_episodes
from local.bedrock.extractive.prompt import NumberedPassage
from local.bedrock.extractive.question import parts_of, whole
from local.bedrock.extractive.ranking import Candidate, rank
from local.bedrock.extractive.text import words
from local.bedrock.minilm import SentenceEmbedder

MAX_QUOTES = 4
MAX_ANSWERS = 3
"""Of the quotes about one episode, how many may be answers: the rest is for the questions that they reply to."""
ENOUGH_EVIDENCE = 0.33
"""Below it, nothing in the prompt is taken for an answer."""
SOME_EVIDENCE = 0.2
"""What a further quote needs, beside one that has enough."""
MARGIN = 1.2
"""How far behind the best candidate, in log-odds, another is still worth quoting."""
_SHORT_REPLY_WORDS = 12
"""A reply up to this length is quoted with the question that it replies to: alone it says little."""


@dataclass(frozen=True)
class Quoted:
    """A passage to quote, and whether it stands there as the reply to the one before it."""

    passage: NumberedPassage
    replies: bool = False


def select(question: str, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Quoted]:
    """The passages to quote, at most :data:`MAX_QUOTES`: episode by episode, the best first; in script order within.

    Empty if nothing in the passages answers, or if the question is about episodes that no passage is of.
    """
    passages = in_asked_episodes(question, passages)
    ranked = rank(whole(question, passages), passages, embedder)
    if not ranked or max(candidate.evidence for candidate in ranked[:MAX_ANSWERS]) < ENOUGH_EVIDENCE:
        return []
    if asked_episodes(question).several:
        answers = _best_of_episodes(ranked)
    else:
        close = [candidate for candidate in ranked if candidate.score >= ranked[0].score - MARGIN]
        best = _best_of_parts(question, passages, ranked, embedder)
        answers = _distinct([*best, *close])[:MAX_ANSWERS]
    return _in_order([candidate for candidate in answers if candidate.evidence >= SOME_EVIDENCE])


def _best_of_episodes(ranked: Sequence[Candidate]) -> list[Candidate]:
    """One of each episode."""
    best: dict[str, Candidate] = {}
    for candidate in ranked:
        best.setdefault(candidate.passage.episode_id, candidate)
    return list(best.values())[:MAX_QUOTES]


def _best_of_parts(
    question: str, passages: Sequence[NumberedPassage], ranked: Sequence[Candidate], embedder: SentenceEmbedder
) -> list[Candidate]:
    """What fits each part of a compound question best, and the question as a whole as well."""
    overall = {candidate.passage.number: candidate.score for candidate in ranked}
    return [
        max(rank(part, passages, embedder), key=lambda each: each.score + overall[each.passage.number])
        for part in parts_of(question, passages)
    ]


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.passage.number, candidate)
    return list(first.values())


def _in_order(answers: Sequence[Candidate]) -> list[Quoted]:
    """Answers, and the questions that short ones reply to as far as there is room."""
    passages = {candidate.passage.number: candidate.passage for candidate in answers}
    for candidate in answers:
        asked = candidate.replies_to
        if (
            asked is not None
            and len(words(candidate.passage.text)) <= _SHORT_REPLY_WORDS
            and len(passages) < MAX_QUOTES
        ):
            passages[asked.number] = asked
    episodes = list(dict.fromkeys(candidate.passage.episode_id for candidate in answers))
    ordered = sorted(
        passages.values(), key=lambda each: (episodes.index(each.episode_id), each.chapter, each.position or 0)
    )
    replies_to = {candidate.passage.number: candidate.replies_to for candidate in answers}
    return [
        Quoted(passage, replies=previous is not None and previous == replies_to.get(passage.number))
        for previous, passage in zip([None, *ordered], ordered, strict=False)
    ]
