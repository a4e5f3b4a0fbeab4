"""Sentences and words of a text."""

from __future__ import annotations

import re

_TITLES = r"(?:Mr|Mrs|Ms|Dr|St|Prof|Rev|Capt|Lt|Sgt|vs|etc|e\.g|i\.e|a\.m|p\.m|[A-Z])"
_BOUNDARY = re.compile(
    r"(?<=[.!?…])[\"'”’)\]]*+\s++(?=[\"'“‘(\[]*[^\sa-z])"  # a lower-case letter goes on with the same sentence
    r"|(?<=[。！？])[」』）]*+\s*+"
)
_ENDS_IN_TITLE = re.compile(rf"(?:^|[\s\"'“‘(\[]){_TITLES}\.$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")

STOP_WORDS = frozenset(
    """a an the and or but if of to in on at by for from with without as is are was were be been being am do does did
    done have has had having can could may might must shall should will would not no nor so too very than then that this
    these those there here it its he him his she her hers they them their we us our you your i me my mine what which who
    whom whose when where why how s t d ll m re ve isn't wasn't don't didn't doesn't can't couldn't won't i'm it's he's
    she's that's there's any some all each every both only just also about into out up down over under again once get
    gets got say says said tell tells told episode draft chapter script story passage""".split()  # noqa: SIM905
)
"""Words that tell nothing of what a sentence is about, those of asking about a script included."""


def sentences(text: str) -> list[str]:
    """Split a text at the ends of its sentences; joined by their white space they are the text."""
    parts: list[str] = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        closing = len(boundary[0].rstrip()) + boundary.start()
        candidate = text[start:closing]
        if _ENDS_IN_TITLE.search(candidate):
            continue
        parts.append(candidate.strip())
        start = boundary.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


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
    """Cut the commonest English endings, so that *keys* meets *key* and *locked* meets *lock*."""
    word = word.removesuffix("'s").removesuffix("s'")
    for ending, least in (("ies", 3), ("ing", 4), ("ed", 3), ("es", 4), ("s", 3), ("ly", 4), ("e", 3), ("y", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]  # stopped, stopp -> stop
    return word


def content_stems(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS)
