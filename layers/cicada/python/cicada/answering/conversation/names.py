"""Proper names in a text, told by their capitals."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cicada.answering.conversation.english_words import FUNCTION, LIGHT
from cicada.index.lexical.stopwords import EVIDENCE

_WORD = re.compile(r"[^\W_]+(?:['’.-](?=\w)[^\W_]+)*|[.!?。！？:“”\"«»„\n]|[,;()\[\]—–]")
_ENDS = frozenset('.!?。！？:“”"«»„\n')
_TITLES = frozenset("mr mrs ms miss dr sir lady lord captain professor constable inspector st".split())
_KATAKANA = re.compile(r"[ァ-ヺー]{2,}(?:・[ァ-ヺー]+)*")
_POSSESSIVE = re.compile(r"['’]s$")


def names_in(text: str) -> tuple[str, ...]:
    """The names of a text in their order, each once, as they are written: *Mara*, *Julian Roake*, *Mrs Sallow*.

    A word at the beginning of a sentence passes for one too unless it is a common one or one that questions begin
    with; in German, every noun does. Of scripts without capitals, katakana is told alone.
    """
    plain = unicodedata.normalize("NFKC", text)
    found = dict.fromkeys(_capitalised(plain))
    found |= dict.fromkeys(_KATAKANA.findall(plain))
    return tuple(found)


def _capitalised(text: str) -> Iterator[str]:
    run: list[str] = []
    starts = True
    for piece in [*_WORD.findall(text), "."]:
        bare = _POSSESSIVE.sub("", piece)
        inside = bool(run) or not starts
        if piece[0].isupper() and _may_be_name(bare, inside=inside):
            run.append(bare)
            if bare != piece:
                yield from _joined(run)
                run = []
        elif piece == "." and run and run[-1].casefold() in _TITLES:
            continue  # "Mrs. Sallow"
        else:
            yield from _joined(run)
            run = []
        starts = piece in _ENDS


def _joined(run: list[str]) -> Iterator[str]:
    if run and not all(word.casefold() in _TITLES for word in run):
        yield " ".join(run)


def _may_be_name(word: str, *, inside: bool) -> bool:
    folded = word.casefold()
    if folded in FUNCTION or folded in EVIDENCE:
        return False
    return inside or (len(word) > 1 and folded not in LIGHT and folded not in _OPENERS)


_OPENERS = frozenset(
    "compare explain summarize summarise list show tell describe give quote name find analyze analyse discuss outline "
    "please thanks hello hi who's what's nobody somebody someone nothing everything people maybe perhaps yesterday "
    "today tonight tomorrow according although however therefore meanwhile quién qué cuál dónde cuándo cómo por wer "
    "warum wieso wann quel quelle pourquoi comment combien où chi cosa dove quem onde waarom wie wat waar hoe кто "
    "где почему когда как что zitat vergleiche erkläre explique expliquez résume résumez".split()
)
"""Words that often begin a sentence and are no names."""
