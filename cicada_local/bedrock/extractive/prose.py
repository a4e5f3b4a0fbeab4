"""Writes the answer: every sentence quotes one passage word by word, says who speaks where, and carries its marker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cicada.ingest.enrichment.mentions import NARRATORS
from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.ranking import asks
from cicada_local.bedrock.extractive.selection import Quoted
from cicada_local.bedrock.extractive.text import content_stems, sentence_spans

NOTHING_FOUND = "The sources do not answer this question."
MAX_QUOTE_CHARS = 300
"""A passage up to this length is quoted whole; of a longer one the sentences around the best."""
_Span: TypeAlias = tuple[int, int]
_MARKER = re.compile(r"\[[\d\s,;]+\]")
_PAIRED_CODE = re.compile(r"(`+)[^`']+\1")
_DUNDER = re.compile(r"(?<![\w`])[\w.]*__\w+__[\w.()]*(?!\w)")
_MARKS = (("“", "”"), ('"', '"'), ("«", "»"))


def write(quoted: Sequence[Quoted], about: frozenset[str]) -> str:
    """The answer in prose: a paragraph for each episode, and for each excerpt of a document.

    Args:
        quoted: what to quote, in the order of the answer.
        about: stems of the question's words: they choose the sentences of a long passage.
    """
    paragraphs: list[str] = []
    earlier: NumberedPassage | None = None
    for quote in quoted:
        words_quoted = plain_markdown(quote.words) or excerpt(quote.passage.text, about)
        if not words_quoted:
            continue
        sentence = _sentence(quote, words_quoted, earlier)
        if not quote.words and earlier is not None and earlier.episode_id == quote.passage.episode_id:
            paragraphs[-1] += f" {sentence}"
        else:
            paragraphs.append(sentence)
        earlier = quote.passage
    return "\n\n".join(paragraphs) or NOTHING_FOUND


def plain_markdown(text: str) -> str:
    """A quotation that a page shows as it is written: backticks that do not pair become apostrophes, and names such as
    ``__init__`` are shown as code, not in bold. Neither changes what a quotation is compared by."""
    if _PAIRED_CODE.sub("", text).count("`"):
        text = text.replace("`", "'")
    return _DUNDER.sub(r"`\g<0>`", text) if "`" not in text else text


def excerpt(text: str, about: frozenset[str]) -> str:
    """Consecutive sentences of a text, the ones that say most about the question; the whole of a short text.

    A sentence that holds what looks like a marker of a citation is not quoted: in an answer it would be one.
    Empty if nothing is left.
    """
    runs: list[list[_Span]] = [[]]
    for span in sentence_spans(text):
        if _MARKER.search(text, *span):
            runs.append([])
        else:
            runs[-1].append(span)
    windows = [window for run in runs for window in _windows(run)]
    if not windows:
        return ""
    best = max(windows, key=lambda window: _worth(text, window, about))
    while len(best) > 1 and not content_stems(text[slice(*best[-1])]):
        best = best[:-1]  # a last "I did." says nothing that could be checked
    return text[best[0][0] : best[-1][1]][: 2 * MAX_QUOTE_CHARS].rstrip()


def _windows(run: Sequence[_Span]) -> Iterator[Sequence[_Span]]:
    """From each sentence on, as many as fit into a quote."""
    for first in range(len(run)):
        last = first
        while last + 1 < len(run) and run[last + 1][1] - run[first][0] <= MAX_QUOTE_CHARS:
            last += 1
        yield run[first : last + 1]


def _worth(text: str, window: Sequence[_Span], about: frozenset[str]) -> tuple[int, int]:
    stems = content_stems(text[window[0][0] : window[-1][1]])
    return len(stems & about), len(stems)


def _sentence(quote: Quoted, words_quoted: str, earlier: NumberedPassage | None) -> str:
    passage = quote.passage
    same_episode = earlier is not None and earlier.episode_id == passage.episode_id
    episode, speaker, title = _label(passage.episode), _label(passage.speaker), _label(passage.title)
    again = (
        same_episode and earlier is not None and (earlier.speaker, earlier.title) == (passage.speaker, passage.title)
    )
    if title:
        page = f" (page {_label(passage.page)})" if passage.page else ""
        said = f"{title}{page} also says" if again else f"{title}{page} says"
    elif not speaker or speaker.casefold() in NARRATORS:
        said = "the narration also reads" if again else "the narration reads"
    elif quote.replies:
        said = f"{speaker} answers"
    elif asks(words_quoted):
        said = f"{speaker} asks"
    else:
        said = f"{speaker} also says" if again else f"{speaker} says"
    where = f"In {episode}, " if episode and not same_episode else ""
    text = f"{where}{said}: {_in_marks(words_quoted)} [{passage.number}]"
    return text[0].upper() + text[1:]


def _in_marks(words_quoted: str) -> str:
    """Between quotation marks that it does not have itself; a text that is one quotation already has them."""
    if re.fullmatch(r'"[^"]+"|“[^“”]+”', words_quoted):
        return words_quoted
    opening, closing = next((pair for pair in _MARKS if not set(pair) & set(words_quoted)), _MARKS[0])
    return f"{opening}{words_quoted}{closing}"


def _label(name: str) -> str:
    """A name of the prompt for use in a sentence, without what reads as a marker or underlines a title."""
    return " ".join(_MARKER.sub(" ", name).split()).strip(" =-~#*")
