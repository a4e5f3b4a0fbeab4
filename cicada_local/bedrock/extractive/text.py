"""Sentences and words of a text."""

from __future__ import annotations

import re

from cicada.text.word_lists import word_lists

_TITLES = r"(?:Mr|Mrs|Ms|Dr|St|Prof|Rev|Capt|Lt|Sgt|vs|etc|e\.g|i\.e|a\.m|p\.m|[A-HJ-Z])"
_BOUNDARY = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*+\s++(?=[\"'“‘(\[]*[^\sa-z])"  # a lower-case letter goes on with the same sentence
    r"|(?<=[。！？])[」』）]*+\s*+"
)
_ENDS_IN_TITLE = re.compile(rf"(?<!\w){_TITLES}\.$")
_LONGEST_TITLE = len("Capt.")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMERAL = re.compile(r"(\d+)(?:st|nd|rd|th)?")
NUMBER_WORDS = tuple(
    re.findall(
        r"\w+",
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty",
    )
)
ORDINAL_WORDS = tuple(
    re.findall(
        r"\w+",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
    )
)
_FIGURES = {word: str(at) for row in (NUMBER_WORDS, ORDINAL_WORDS) for at, word in enumerate(row, 1)}
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")

STOP_WORDS = word_lists("cicada_local", "words.json")["stop_words"]
"""Words that tell nothing of what a sentence is about, those of asking about a script included."""


def sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, without the white space around it."""
    spans: list[tuple[int, int]] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        end = boundary.start() + len(boundary[0].rstrip())
        if not _ENDS_IN_TITLE.search(text, max(start, end - _LONGEST_TITLE), end):
            spans.append((start, end))
            start = boundary.end()
    if start < len(text):
        spans.append((start, len(text.rstrip())))
    return spans


def words(text: str) -> list[str]:
    """The text's words in lower case; of a script without spaces, its pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower().replace("’", "'")):
        run = _CJK.fullmatch(word)
        if run and len(word) > 1:
            found.extend(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.append(word)
    return found


def stem(word: str) -> str:
    """Cut the commonest English endings, so that *locked* meets *lock*; *fifteenth* and *15th* both become *15*."""
    if numeral := _NUMERAL.fullmatch(word):
        return numeral[1]
    if word in _FIGURES:
        return _FIGURES[word]
    word = word.removesuffix("'s").removesuffix("s'")
    for ending, least in (("ies", 3), ("ing", 4), ("ed", 3), ("es", 4), ("s", 3), ("ly", 4), ("e", 3), ("y", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]  # stopped, stopp -> stop
    return word


def content_stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning; in Japanese, hiragana alone is mostly grammar."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS and not _HIRAGANA.fullmatch(word))
