"""Chooses what to quote: few passages, each with a reason, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cicada_local.bedrock.extractive.episodes import asked_episodes, in_asked_episodes
from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.question import parts_of, whole
from cicada_local.bedrock.extractive.ranking import Candidate, Ranking
from cicada_local.bedrock.extractive.text import words
from cicada_local.bedrock.minilm import SentenceEmbedder

MAX_QUOTES = 4
MAX_ANSWERS = 3
"""Of the quotes about one episode, how many may be answers: the rest is for the questions that they reply to."""
ENOUGH_EVIDENCE = 0.35
"""Below it, nothing in the prompt is taken for an answer."""
SOME_EVIDENCE = 0.3
"""What a further quote needs, beside one that has enough."""
MARGIN = 1.2
"""How far behind the best candidate, in log-odds, another is still worth quoting."""
_SHORT_REPLY_WORDS = 12
"""A reply up to this length is quoted with the question that it replies to: alone it says little."""


@dataclass(frozen=True)
class Quoted:
    """A passage to quote."""

    passage: NumberedPassage
    replies: bool = False
    """Whether it stands there as the reply to the one before it."""
    words: str = ""
    """What to quote of a document; of a script's line what says most."""


@dataclass(frozen=True)
class _Found:
    candidate: Candidate
    evidence: float


def select(question: str, passages: Sequence[NumberedPassage], embedder: SentenceEmbedder) -> list[Quoted]:
    """The passages to quote, at most :data:`MAX_QUOTES`: episode by episode, the best first.

    Empty if nothing in the passages answers, or if the question is about episodes that no passage is of.
    """
    passages = in_asked_episodes(question, passages)
    ranking = Ranking(whole(question, passages), passages, embedder)
    if asked_episodes(question).several and len({passage.episode_id for passage in passages}) > 1:
        found = _best_of_episodes(ranking)
    else:
        found = [*_best_of_parts(question, passages, ranking, embedder), *_close_to_best(ranking)]
    if max((each.evidence for each in found), default=0.0) < ENOUGH_EVIDENCE:
        return []
    return _arranged([each.candidate for each in found if each.evidence >= SOME_EVIDENCE])


def _best_of_episodes(ranking: Ranking) -> list[_Found]:
    """One of each episode."""
    best: dict[str, Candidate] = {}
    for candidate in ranking.candidates:
        best.setdefault(candidate.passage.episode_id, candidate)
    return [_Found(candidate, ranking.evidence(candidate)) for candidate in best.values()]


def _best_of_parts(
    question: str, passages: Sequence[NumberedPassage], ranking: Ranking, embedder: SentenceEmbedder
) -> list[_Found]:
    """What fits each part of a compound question best, and the question as a whole as well."""
    overall = {candidate.passage: candidate.score for candidate in ranking.candidates}
    found = []
    for part in parts_of(question, passages):
        of_part = Ranking(part, passages, embedder)
        best = max(of_part.candidates, key=lambda each: each.score + overall[each.passage], default=None)
        if best is not None:
            found.append(_Found(best, of_part.evidence(best)))
    return found


def _close_to_best(ranking: Ranking) -> list[_Found]:
    close = [each for each in ranking.candidates if each.score >= ranking.candidates[0].score - MARGIN]
    return [_Found(candidate, ranking.evidence(candidate)) for candidate in close[:MAX_ANSWERS]]


def _arranged(found: Sequence[Candidate]) -> list[Quoted]:
    """Each passage once, episode by episode; a short reply after the question that it replies to, if there is room."""
    answers = {candidate.passage: candidate for candidate in reversed(found)}
    episodes = list(dict.fromkeys(candidate.passage.episode_id for candidate in found))
    limit = MAX_QUOTES if len(episodes) > 1 else MAX_ANSWERS
    kept = list(dict.fromkeys(candidate.passage for candidate in found))[:limit]
    quoted: dict[NumberedPassage, Quoted] = {}
    for passage in sorted(kept, key=lambda each: episodes.index(each.episode_id)):
        asked = answers[passage].replies_to
        if (
            asked is not None
            and asked not in quoted
            and (asked in kept or _has_room_for(passage, len({*kept, *quoted})))
        ):
            quoted[asked] = Quoted(asked)
        replies = bool(quoted) and next(reversed(quoted)) == asked
        quoted.setdefault(passage, Quoted(passage, replies))
    return list(quoted.values())


def _has_room_for(reply: NumberedPassage, quotes: int) -> bool:
    return quotes < MAX_QUOTES and len(words(reply.text)) <= _SHORT_REPLY_WORDS
