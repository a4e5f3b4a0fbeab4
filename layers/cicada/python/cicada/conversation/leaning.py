"""Whether a question can be understood by itself, decided without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cicada.routing.classifier import classify
from cicada.text.characters import UNSPACED, is_unspaced, normalised
from cicada.text.features import plain
from cicada.text.linear import LinearClassifier
from cicada.text.tokens import tokens
from cicada.text.words import content_words

LEAST_LEANING = 0.5
"""The probability of leaning on the conversation from which on a model is asked: about one of sixty whole questions
has it, and seven of eight that lean, on the hands that tune."""
SURE_SMALL_TALK = 0.95
"""The probability of the route ``direct`` from which on a question is small talk; *why?* is routed there, too, less
surely."""
MOST_CHARS = 400  # A question longer than this says itself what it is about
_LEANS = "leans"
_MOST_COUNTED = 9
_CAPITAL = re.compile(r"(?<=\s)[^\W\d_]")
_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)?|\d+(?:[.,:]\d+)*|[?!.,;:]")
_SENTENCE_STARTS = frozenset("^.?!")
_PATTERN_SIZES = (2, 3, 4)
_MOST_SIGNS = 12  # of a question whose whole pattern counts


def is_whole(query: str) -> bool:
    """Whether a question plainly needs nothing of the conversation; small talk needs nothing either."""
    if len(query) > MOST_CHARS or leaning(query) < LEAST_LEANING:
        return True
    routed = classify(query)
    return routed.route == "direct" and routed.confidence >= SURE_SMALL_TALK


def leaning(query: str) -> float:
    """The probability that a question leans on what was said before, by a trained classifier.

    ``python -m training.followups`` makes its weights from labelled questions.
    """
    classifier = LinearClassifier.of("cicada.conversation", "followups")
    return classifier.decide(query, beside=shape_of(query), most_telling=0).probabilities[_LEANS]


def shape_of(query: str) -> tuple[str, ...]:
    """What n-grams do not tell of a question: how many words tell something, numbers, names, its build."""
    spoken = tokens(normalised(query))
    telling = min(len(content_words(query)), _MOST_COUNTED)
    names = sum(match[0].isupper() for match in _CAPITAL.finditer(query))
    return (
        f"telling {telling}",
        f"telling {telling} of {min(len(spoken), _MOST_COUNTED)}",
        f"{spoken[0] if spoken else ''} telling {min(telling, 4)}",
        f"names {min(names, 3)}",
        f"number {any(map(str.isdigit, query))}",
        f"long {min(len(query) // 6, 15)}",
        *_patterns(query),
    )


def _patterns(query: str) -> Iterator[str]:
    """N-grams of a question's signs: *who C the C*."""
    signs = _signs(query)
    for size in _PATTERN_SIZES:
        yield from (f"M{' '.join(signs[at : at + size])}" for at in range(len(signs) - size + 1))
    if len(signs) <= _MOST_SIGNS:
        yield f"W{' '.join(signs)}"


def _signs(query: str) -> list[str]:
    """A question's words with ``C`` for each content word (once for a run without spaces), ``N`` for each name."""
    signs = ["^"]
    for word in _WORD.findall(plain(query)):
        if word[0].isdigit():
            signs.append("0")
        elif not content_words(word):
            signs.append(normalised(word))
        elif word[0].isupper() and signs[-1] not in _SENTENCE_STARTS:
            signs.append("N")
        elif signs[-1] != "C" or not is_unspaced(word):
            signs.append("C")
    return [*signs, "$"]
