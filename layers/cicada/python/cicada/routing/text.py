"""A question as words: normalised, unquoted, its contractions written out and its slips of typing repaired.

Every step is linear in the length of the text, and only the first ``MAX_QUERY_CHARS`` characters are read, which is
all that the protocol lets through.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from cicada.protocol.actions import MAX_QUERY_CHARS

QUOTED = "«»"
"""The word that stands for a quoted passage: what is quoted is spoken of, not said."""
SENTENCE_ENDS = frozenset(".?!")
PAUSES = frozenset(",;:-")

_UNIFY = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´", "'"),
        **dict.fromkeys("“”„‟«»「」『』", '"'),
        **dict.fromkeys("—–‒―", " - "),
        **dict.fromkeys("。।", "."),
        **dict.fromkeys("、،", ","),
        "؟": "?",
        "\n": " . ",
    }
)
_QUOTATION = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*\"""")
# Chinese and Japanese are written without spaces: each of their characters is a word of its own here.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(
    rf"«»|[{_UNSPACED}]|\d+(?:[.,:]\d+)+|(?:(?![{_UNSPACED}])\w)+|(?<=\w)'(?:(?![{_UNSPACED}])[^\W\d_])+"
    r"|[.?!]+|[,;:]|(?<!\w)-+(?!\w)"
)
_ABBREVIATIONS = frozenset("ch ep vol no nr pp vs mr mrs ms dr prof st eg ie etc".split())
_CLITICS = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'t": "not"}
_WITH_NOT = {"can": "can", "won": "will", "shan": "shall", "ain": "is"}
_IS_AFTER = frozenset("what who where when why how which that this it he she there here everything anything".split())
_WRITTEN_OUT = {
    "im": ("i", "am"), "ive": ("i", "have"), "id": ("i", "would"), "whats": ("what", "is"), "whos": ("who", "is"),
    "wheres": ("where", "is"), "hows": ("how", "is"), "thats": ("that", "is"), "theres": ("there", "is"),
    "dont": ("do", "not"), "doesnt": ("does", "not"), "didnt": ("did", "not"), "isnt": ("is", "not"),
    "cant": ("can", "not"), "wont": ("will", "not"), "cannot": ("can", "not"), "lets": ("let", "us"),
    "u": ("you",), "r": ("are",), "ur": ("your",), "pls": ("please",), "plz": ("please",), "wanna": ("want", "to"),
    "gimme": ("give", "me"), "gotta": ("have", "to"), "lemme": ("let", "me"), "dunno": ("do", "not", "know"),
    "y'all": ("you", "all"), "whatre": ("what", "are"), "wat": ("what",), "bc": ("because",), "tho": ("though",),
}  # fmt: skip
# Words that are one slip away from a keyword and yet are meant.
_NOT_SLIPS = frozenset("crate trail dairy explan comments prof".split())
_SHORTEST_REPAIRED = 4


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words and punctuation in order, lower case; ``names`` are the indices written as proper names."""

    tokens: tuple[str, ...]
    names: frozenset[int]


class Speller:
    """Repairs what fingers do to keywords: two neighbours swapped, an inner letter missed, a letter doubled or not.

    No letter is replaced: that is how *police* would become *policy* and *prince* a *price*.
    """

    def __init__(self, keywords: Iterable[str]) -> None:
        self._keywords = frozenset(w for w in keywords if len(w) >= _SHORTEST_REPAIRED and w.isascii() and w.isalpha())
        self._by_shape: dict[tuple[str, int], list[str]] = {}
        for word in sorted(self._keywords):
            self._by_shape.setdefault((word[0], len(word)), []).append(word)

    def __call__(self, word: str) -> str:
        """The keyword that ``word`` was meant to be, or ``word`` itself."""
        if len(word) < _SHORTEST_REPAIRED or word in self._keywords or word in _NOT_SLIPS:
            return word
        for i in range(len(word) - 1):
            swapped = f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}"
            if swapped in self._keywords:
                return swapped
        for meant in self._by_shape.get((word[0], len(word) + 1), ()):
            if _misses_one_letter(word, meant):
                return meant
        for i in range(1, len(word)):
            if word[i] == word[i - 1] and (single := word[:i] + word[i + 1 :]) in self._keywords:
                return single
        return word


def _misses_one_letter(word: str, meant: str) -> bool:
    at = next((i for i, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), len(word))
    if at == len(word) or word[at:] != meant[at + 1 :]:  # a missing last letter is more often another form of the word
        return False
    return len(meant) > _SHORTEST_REPAIRED + 1 or meant[at] == meant[at - 1]


def read_words(text: str, speller: Speller) -> Words:
    """Split any text into words; a quotation becomes the one word ``QUOTED``, unless nothing else was said."""
    plain = unicodedata.normalize("NFKC", text[:MAX_QUERY_CHARS]).translate(_UNIFY)[: 2 * MAX_QUERY_CHARS]
    spoken = _QUOTATION.sub(f" {QUOTED} ", plain)
    written = _TOKEN.findall(spoken)
    if not any(_is_word(token) and token != QUOTED for token in written):
        written = _TOKEN.findall(plain)
    shouted = plain.isupper()
    tokens: list[str] = []
    names: set[int] = set()
    for raw in written:
        starts = not tokens or tokens[-1] in SENTENCE_ENDS
        if not starts and not shouted and raw[:1].isupper() and not raw.isupper():
            names.add(len(tokens))
        _append(tokens, raw, speller)
    return Words(tuple(tokens), frozenset(names))


def split_literal(word: str) -> tuple[str, ...]:
    """Cut a word of a phrase as :func:`read_words` cuts a question: Chinese and Japanese into their characters."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFKC", word).casefold()))


def _append(tokens: list[str], raw: str, speller: Speller) -> None:
    word = raw.casefold()
    before = tokens[-1] if tokens else ""
    if word[0] in ".?!":
        if word[0] != "." or before not in _ABBREVIATIONS:
            tokens.append("?" if "?" in word else word[0])
    elif word[0] in PAUSES:
        tokens.append(word[0])
    elif word[0] == "'":
        _append_clitic(tokens, word, before, speller)
    else:
        tokens.extend(_WRITTEN_OUT.get(word) or (speller(word),))


def _append_clitic(tokens: list[str], word: str, before: str, speller: Speller) -> None:
    if word == "'t" and before.endswith("n"):
        tokens[-1] = _WITH_NOT.get(before, before[:-1])
    if word == "'s":
        tokens.append("us" if before == "let" else "is" if before in _IS_AFTER else word)
    else:
        tokens.append(_CLITICS.get(word) or speller(word[1:]))


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "'"
