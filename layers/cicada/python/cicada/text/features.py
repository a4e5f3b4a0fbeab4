"""The hashed features of a short text, for linear classifiers: :func:`features_of` its words, :func:`spelling_of` its
spelling.

A feature is a string; its bucket is its CRC-32 modulo the number of buckets (feature hashing: Weinberger et al., 2009).
Training and scoring share this code, so their features are equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from cicada.text.characters import UNSPACED, compatible, is_unspaced, unaccented

MAX_HEAD_CHARS = 400  # characters that are read from the beginning of a text
MAX_TAIL_CHARS = 400
"""Characters that are read from the end of a longer text: a long message states its question first or last."""
MAX_WORD_CHARS = 24  # characters of one word from which n-grams are made

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´ʼ", "'"),
        **dict.fromkeys("“”„‟«»「」『』〝〟", '"'),
        **dict.fromkeys("—–‒―‐‑", "-"),
        **dict.fromkeys("。｡।", "."),
        **dict.fromkeys("、，،", ","),
        **dict.fromkeys("？؟", "?"),
        "！": "!",
        "：": ":",
        "¿": None,
        "¡": None,
    }
)
_QUOTED = re.compile(r'"[^"\n]{1,200}"|(?<!\w)\'[^\'\n]{3,200}\'(?!\w)')
_RUN = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)?|[?!.,;:\"()\-/]|\S")
_SENTENCE_END = frozenset(".?!;:")
_FIRST_WORDS, _LAST_WORDS = 5, 2  # at either end of a text, counted a second time
_PART_CHARS = (4, 6)
"""Lengths of the parts of words: four find a stem that is inflected or misspelt, six tell stems apart."""
_SPELT = re.compile(rf"[^\W\d_{UNSPACED}]+(?:'[^\W\d_{UNSPACED}]+)*")
_SPELLING_CHARS = (1, 2, 3, 4)


class Feature(NamedTuple):
    """One feature of a text."""

    bucket: int
    word: int  # index of the word that it was made from, or of the first of several; -1 for a feature of the whole text


class Featured(NamedTuple):
    """A text's words (pairs of characters in scripts without spaces), as they are shown to people, and its features."""

    words: tuple[str, ...]
    features: tuple[Feature, ...]


Featuring = Callable[[str, int, Iterable[str]], Featured]
"""Makes the features of a text: :func:`features_of`, :func:`spelling_of`."""


def plain(text: str) -> str:
    """The text in compatibility form (NFKC), with one sign for each kind of quote, dash and stop; cut in its middle."""
    if len(text) > MAX_HEAD_CHARS + MAX_TAIL_CHARS:
        text = f"{text[:MAX_HEAD_CHARS]} … {text[-MAX_TAIL_CHARS:]}"
    return compatible(text.translate(_SIGNS)).translate(_SIGNS)


def features_of(text: str, buckets: int, beside: Iterable[str] = ()) -> Featured:
    """The distinct features of a text.

    Args:
        text: any text; characters beyond the bounds above are not read.
        buckets: features are hashed into this many.
        beside: further features of the whole text, each by a name.
    """
    shown = plain(text)
    quoted = [match.span() for match in _QUOTED.finditer(shown)]
    words: list[str] = []
    return _hashed(_strings(shown, quoted, words), words, buckets, beside)


def spelling_of(text: str, buckets: int, beside: Iterable[str] = ()) -> Featured:
    """The distinct features of a text's spelling: its words, and their parts of one to four characters, without case,
    with accents, without scripts without spaces. Arguments as :func:`features_of`."""
    words = _SPELT.findall(plain(text).casefold())
    return _hashed(_spelling(words), words, buckets, beside)


def _hashed(strings: Iterable[tuple[int, str]], words: Sequence[str], buckets: int, beside: Iterable[str]) -> Featured:
    found: dict[int, int] = {}
    for word, feature in strings:
        found.setdefault(crc32(feature.encode()) % buckets, word)
    for name in beside:
        found.setdefault(crc32(f"0 {name}".encode()) % buckets, -1)
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
        unspaced = is_unspaced(word)
        words.extend(word[start : start + 2] for start in range(len(word))) if unspaced else words.append(word)
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
        if unspaced:
            spoken.extend((at + place, character) for place, character in enumerate(folded[: len(word)]))
            for place in range(len(word)):
                yield from ((at + place, f"u{folded[place : place + size]}") for size in (1, 2, 3))
        else:
            folded = unaccented(folded)
            spoken.append((at, folded))
            if len(folded) > 1:
                marked = f"<{folded[:MAX_WORD_CHARS]}>"
                for size in _PART_CHARS:
                    yield from ((at, f"c{marked[start : start + size]}") for start in range(len(marked) - size + 1))
    yield from _sequences(spoken)
    yield -1, "bias"
    yield -1, f"?{min(questions, 3)}"
    yield -1, f"s{min(sentences, 4)}"
    yield -1, f"l{min(len(spoken) // 4, 10)}"
    yield -1, f"n{min(names, 4)}"


def _spelling(words: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The features of words, each with the index of its word."""
    yield -1, "bias"
    for at, word in enumerate(words):
        yield at, f"w{word}"
        marked = f"<{word[:MAX_WORD_CHARS]}>"
        for size in _SPELLING_CHARS:
            yield from ((at, f"c{marked[start : start + size]}") for start in range(len(marked) - size + 1))


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
        yield from ((at, f"F{word}") for at, word in spoken[:_FIRST_WORDS])
        yield from ((at, f"L{word}") for at, word in spoken[-_LAST_WORDS:])
