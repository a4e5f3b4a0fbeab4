"""A short text as hashed n-grams of characters and words: what the linear classifiers score.

A feature is a string; its bucket is its CRC-32 modulo the number of buckets (feature hashing: Weinberger et al., 2009).
The same code makes the features for training and for scoring, so the two cannot differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from cicada.text.letters import UNSPACED

MAX_HEAD_CHARS = 400
"""Characters that are read from the beginning of a text."""
MAX_TAIL_CHARS = 400
"""Characters that are read from the end of a longer text: a long message states its question first or last."""
MAX_WORD_CHARS = 24
"""Characters of one word from which n-grams are made."""

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´ʼ", "'"),
        **dict.fromkeys("“”„‟«»「」『』〝〟", '"'),
        **dict.fromkeys("—–‒―‐‑", "-"),
        **dict.fromkeys("。｡।", "."),
        **dict.fromkeys("、，،", ","),
        "？": "?",
        "؟": "?",
        "！": "!",
        "：": ":",
        "¿": None,
        "¡": None,
    }
)
_QUOTED = re.compile(r'"[^"\n]{1,200}"|(?<!\w)\'[^\'\n]{3,200}\'(?!\w)')
_RUN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)?|[?!.,;:\"()\-/]|\S")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]")
_COPIES = 3
"""Of a feature that is given beside the text."""
_SENTENCE_END = frozenset(".?!;:")


class Feature(NamedTuple):
    """One feature of a text."""

    bucket: int
    word: int
    """Index of the word that it was made from, or of the first of several; -1 for a feature of the whole text."""


class Featured(NamedTuple):
    """A text's words, as they are shown to people, and its features."""

    words: tuple[str, ...]
    features: tuple[Feature, ...]


def plain(text: str) -> str:
    """The text in compatibility form (NFKC), with one sign for each kind of quote, dash and stop; cut in its middle."""
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        text = f"{text[:MAX_HEAD_CHARS]} … {text[-MAX_TAIL_CHARS:]}"
    text = text.encode("utf-8", "ignore").decode()
    return unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)


def features_of(text: str, buckets: int, beside: Iterable[str] = ()) -> Featured:
    """The distinct features of a text.

    Args:
        text: any text; characters beyond the bounds above are not read.
        buckets: features are hashed into this many.
        beside: further features of the whole text, each by a name; they count three times what an n-gram does.
    """
    shown = plain(text)
    quoted = [match.span() for match in _QUOTED.finditer(shown)]
    words: list[str] = []
    found: dict[int, int] = {}
    for word, feature in _strings(shown, quoted, words):
        found.setdefault(crc32(feature.encode()) % buckets, word)
    for name in beside:
        for copy in range(_COPIES):
            found.setdefault(crc32(f"{copy} {name}".encode()) % buckets, -1)
    return Featured(tuple(words), tuple(Feature(bucket, word) for bucket, word in found.items()))


def _strings(shown: str, quoted: list[tuple[int, int]], words: list[str]) -> Iterator[tuple[int, str]]:
    """Each feature with the index of its word. Fills ``words``."""
    spoken: list[tuple[int, str]] = []
    names = questions = sentences = 0
    starts = True
    shouted = shown.isupper()
    for match in _RUN.finditer(shown):
        word = match.group()
        at = len(words)
        words.append(word)
        if any(start < match.start() < end for start, end in quoted):
            yield at, f"q{word.casefold()}"
            continue
        folded = word.casefold()
        if word in _SENTENCE_END:
            questions += word == "?"
            sentences += word in ".?!"
            spoken.append((at, folded))
            starts = True
            continue
        if not starts and not shouted and word[0].isupper():
            names += 1
            yield at, "N"
        starts = False
        if _UNSPACED_RUN.match(word):
            spoken.extend(_characters(at, folded))
            yield from _grams(at, folded, 2, 4, "u")
        else:
            spoken.append((at, folded))
            if len(folded) > 1:
                yield from _grams(at, f"<{folded[:MAX_WORD_CHARS]}>", 3, 5, "c")
    yield from _sequences(spoken)
    yield -1, "bias"
    yield -1, f"?{min(questions, 3)}"
    yield -1, f"s{min(sentences, 4)}"
    yield -1, f"l{min(len(spoken) // 4, 10)}"
    yield -1, f"n{min(names, 4)}"


def _characters(at: int, run: str) -> Iterator[tuple[int, str]]:
    return ((at, character) for character in run)


def _grams(at: int, run: str, least: int, most: int, kind: str) -> Iterator[tuple[int, str]]:
    for size in range(least, most + 1):
        for start in range(len(run) - size + 1):
            yield at, f"{kind}{run[start : start + size]}"


def _sequences(spoken: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    before, second = "^", "^"
    for at, word in spoken:
        yield at, f"w{word}"
        yield at, f"b{before} {word}"
        yield at, f"t{second} {before} {word}"
        yield at, f"k{second} {word}"
        before, second = word, before
    if spoken:
        yield spoken[-1][0], f"b{before} $"
        yield spoken[-1][0], f"t{second} {before} $"
        first = " ".join(word for _, word in spoken[:2])
        yield spoken[0][0], f"f{first}"
