"""A question as words: normalised, unquoted, its contractions written out and its slips of typing repaired.

Every step is linear in the length of the text, and only the first ``MAX_QUERY_CHARS`` characters are read, which is
all that the protocol lets through.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from cicada.protocol.actions import MAX_QUERY_CHARS
from cicada.routing.spelling import repaired

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
_TOKEN = re.compile(r"«»|\d+(?:[.,:]\d+)+|\w+|(?<=\w)'\w+|[.?!]+|[,;:]|(?<!\w)-+(?!\w)")
_ABBREVIATIONS = frozenset("ch ep vol no nr pp vs mr mrs ms dr prof st eg ie etc".split())
_CLITICS = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'t": "not"}
_BEFORE_NOT = {"can": "can", "won": "will", "shan": "shall", "ain": "is"}
_BEFORE_IS = frozenset("what who where when why how which that this it he she there here everything anything".split())
_WRITTEN_OUT = {
    "im": ("i", "am"), "ive": ("i", "have"), "id": ("i", "would"), "whats": ("what", "is"), "whos": ("who", "is"),
    "wheres": ("where", "is"), "hows": ("how", "is"), "thats": ("that", "is"), "theres": ("there", "is"),
    "dont": ("do", "not"), "doesnt": ("does", "not"), "didnt": ("did", "not"), "isnt": ("is", "not"),
    "cant": ("can", "not"), "wont": ("will", "not"), "cannot": ("can", "not"), "lets": ("let", "us"),
    "gimme": ("give", "me"), "lemme": ("let", "me"), "wanna": ("want", "to"), "gotta": ("have", "to"),
    "dunno": ("do", "not", "know"), "u": ("you",), "r": ("are",), "ur": ("your",), "bc": ("because",),
    **dict.fromkeys("please kindly pls plz".split(), ()),  # they ask nicely, and say nothing
}  # fmt: skip


class Words(NamedTuple):
    """A text's words and punctuation in order, lower case; ``names`` are the indices written as proper names."""

    tokens: tuple[str, ...]
    names: frozenset[int]


def read_words(text: str) -> Words:
    """Split any text into words; a quotation becomes the one word ``QUOTED``, unless nothing else was said."""
    plain = unicodedata.normalize("NFKC", text[:MAX_QUERY_CHARS]).translate(_UNIFY)[: 2 * MAX_QUERY_CHARS]
    plain = _spaced(plain)
    written = _TOKEN.findall(_QUOTATION.sub(f" {QUOTED} ", plain))
    if not any(token[0].isalnum() for token in written):
        written = _TOKEN.findall(plain)
    shouted = plain.isupper()
    tokens: list[str] = []
    names: set[int] = set()
    for raw in written:
        starts = not tokens or tokens[-1] in SENTENCE_ENDS
        if not starts and not shouted and raw[0].isupper() and not raw.isupper():
            names.add(len(tokens))
        _append(tokens, raw.casefold())
    return Words(tuple(tokens), frozenset(names))


def split_literal(word: str) -> tuple[str, ...]:
    """Cut a word of a phrase as :func:`read_words` cuts a question."""
    return tuple(_TOKEN.findall(_spaced(unicodedata.normalize("NFKC", word).casefold())))


def _spaced(text: str) -> str:
    """Chinese and Japanese are written without spaces: each of their characters becomes a word of its own."""
    if text.isascii():
        return text
    return "".join(
        f" {char} " if "\u3040" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" else char for char in text
    )


def _append(tokens: list[str], word: str) -> None:
    before = tokens[-1] if tokens else ""
    if word[0] in SENTENCE_ENDS:
        if word != "." or before not in _ABBREVIATIONS:
            tokens.append("?" if "?" in word else word[0])
    elif word[0] in PAUSES:
        tokens.append(word[0])
    elif word[0] == "'":
        _append_clitic(tokens, word, before)
    elif word in _WRITTEN_OUT:
        tokens.extend(_WRITTEN_OUT[word])
    else:
        tokens.append(repaired(word))


def _append_clitic(tokens: list[str], word: str, before: str) -> None:
    if word == "'t" and before.endswith("n"):
        tokens[-1] = _BEFORE_NOT.get(before, before[:-1])
    if word == "'s":
        tokens.append("us" if before == "let" else "is" if before in _BEFORE_IS else word)
    else:
        tokens.append(_CLITICS.get(word) or repaired(word[1:]))
