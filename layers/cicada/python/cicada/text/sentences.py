"""Split text into sentences, and long sentences into pieces, in any language; find quotations.

Joined, the sentences are the text. A sentence ends at a sign that only ends sentences (``。``, ``।``, ``؟``); at ``.``,
``!``, ``?`` and ``…`` before white space, unless it follows an abbreviation, an initial or an ordinal number, or
precedes a small letter; at an empty line; and before a list's item. Ordinary quotations and brackets are kept whole.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from cicada.text.characters import compatible
from cicada.text.tokens import estimated_tokens
from cicada.text.word_lists import word_lists

_LISTS = word_lists("cicada.text", "abbreviations.json")
NEVER_LAST = _LISTS["never_last"]
"""Abbreviations that never end a sentence. One list for all languages, since documents mix them."""
_SELDOM_LAST = _LISTS["seldom_last"]  # followed by more of the sentence unless the next word begins one
_BEFORE_NUMBER = _LISTS["before_number"]  # followed by more of the sentence where that begins with a number
_STARTERS = _LISTS["starters"]  # words that, with a capital letter, begin a sentence even after an abbreviation
_AFTER_ORDINAL = _LISTS["after_ordinal"]
"""Capitalised nouns after an ordinal number with a period."""

MAX_ENCLOSED_CHARS = 240  # longer quotations are split like other text: their end may be missing

MAX_NOTE_CHARS = 40
"""Of a note in brackets right after a sentence's end, which belongs to it: ``[3]``, ``[citation needed]``."""
MAX_LEAD_CHARS = 12  # of white space and signs before the number of a list's item

_CLOSERS = re.escape("\"'”’“»›«‹」』）〉》】〕)]}*_")  # what opens a quotation in one language closes it in another
_OPENERS = "\"'“‘„«‹「『（〈《【〔([{*_¿¡-–—•"
_ALONE = "。！？｡．।॥؟۔။።፧፨։"
_SPACED = ".!?‼⁇⁈⁉…\u037e"
_BEFORE_A_SENTENCE = frozenset(_ALONE + _SPACED + ':"“”„«»「『()[]\n')
_BULLETS = "•‣◦⁃▪●"
_ITEM_SIGN = re.compile(rf"^\s*(?:[-*–{_BULLETS}]|\d{{1,3}}[.)])\s+")
_NUMBER = r"\(?(?:\d{1,3}|[A-Za-z])[.)]+"
_END = re.compile(
    rf"(?=[{_ALONE}{_SPACED};:\s])(?:"
    rf"(?P<alone>[{_ALONE}][{_ALONE}!?…]*[{_CLOSERS}]*\s*)"
    # a semicolon asks in Greek, and a colon ends an Armenian sentence.
    rf"|(?P<signs>(?<![{_SPACED}])[{_SPACED}]++|(?<=[\u0370-\u03ff]);|(?<=[\u0561-\u0587]):)"
    rf"[{_CLOSERS}]*(?:[ \u00a0\u202f]»)?(?:\[[^\[\]\n]{{1,{MAX_NOTE_CHARS}}}\])*(?:(?P<space>\s+)|\Z)"
    rf"|\n(?:\s*\n\s*|[^\S\n]*(?=(?:[-*·–—{_BULLETS}]|{_NUMBER})[^\S\n]+\S))"
    rf"|[^\S\n](?=[{_BULLETS}]\s?\w)"
    r")"
)
_QUOTED = re.compile(
    r"""(?=["“„«‹「『（《【(\[])(?:(?<![\w"])"[^"\n]{1,@}"(?!\w)|“[^“”\n]{1,@}”|„[^„“”\n]{1,@}[“”]|«[^«»\n]{1,@}»"""
    r"""|‹[^‹›\n]{1,@}›|「[^「」\n]{1,@}」|『[^『』\n]{1,@}』|（[^（）\n]{1,@}）|《[^《》\n]{1,@}》|【[^【】\n]{1,@}】"""
    r"""|\([^()\n]{1,@}\)|\[[^\[\]\n]{1,@}\])""".replace("@", str(MAX_ENCLOSED_CHARS))
)
_LAST_WORD = re.compile(r"[°º]?[^\W_](?:[\w&./-]*[\w°º])?$")
_NEXT_WORD = re.compile(r"\w+")
_GOES_ON_AFTER_A_QUOTE = "".join(_LISTS["goes_on_after_a_quote"])
"""Japanese particles, and commas: the sentence around a quotation goes on."""
_WORD_CHARS = 32  # how far back the last word is looked for


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it."""
    edges = [0, *_ends(text)]
    if edges[-1] != len(text):
        edges.append(len(text))
    return [text[start:end] for start, end in pairwise(edges)]


def without_item_sign(text: str) -> str:
    """A text without the leading sign or number of a list's item."""
    return _ITEM_SIGN.sub("", text)


def opens_sentence(text: str, at: int) -> bool:
    """Whether a word at a place may begin a sentence, so that its capital tells nothing."""
    start = at
    while start > max(0, at - MAX_LEAD_CHARS) and not text[start - 1].isalnum():
        start -= 1
    return start == 0 or not _BEFORE_A_SENTENCE.isdisjoint(text[start:at])


def _ends(text: str) -> list[int]:
    quotations = [match.span() for match in _QUOTED.finditer(text)]
    starts = [start for start, _ in quotations]
    small = not any(map(str.isupper, text))
    ends: list[int] = []
    start = 0
    for match in _END.finditer(text):
        last, end = match.end(), match.end()
        if match["space"]:
            last -= len(match["space"])
        quotation = bisect_right(starts, match.start()) - 1
        if quotation >= 0 and last < quotations[quotation][1]:
            continue
        if _is_end(text, start, match, small=small) and text[start:end].strip():
            ends.append(end)
            start = end
    return ends


def _is_end(text: str, start: int, match: re.Match[str], *, small: bool) -> bool:
    """Whether a sentence from ``start`` ends at a possible end; ``small``: the text has no capital letters."""
    following = text[match.end() : match.end() + 1]
    if match["alone"]:
        closed = match[0].rstrip()[-1] not in _ALONE + "!?…"
        return not (closed and following in _GOES_ON_AFTER_A_QUOTE) or not following
    if not match["signs"] or not following or match["space"].count("\n") > 1:
        return True
    at = match.end()
    while at < len(text) - 1 and text[at] in _OPENERS:
        at += 1
    if text[at] in ",;:.!?":
        return False
    before = text[max(start, match.start() - _WORD_CHARS) : match.start()]
    set_apart = match["signs"] in ".!?" and before[-1:].isspace()  # as in tokenised texts
    if text[at].islower() and not small and not set_apart:
        return False
    word = _LAST_WORD.search(before.rstrip()) if match["signs"] == "." else None
    if word is None:
        return True
    lead = match.start() - len(word[0]) - start
    first = lead <= MAX_LEAD_CHARS and not text[start : start + lead].strip(f" \n\t({_BULLETS}")
    return _ends_after(word[0], text, at, first=first)


def _ends_after(word: str, text: str, at: int, *, first: bool) -> bool:
    """Whether a period after a word ends the sentence; ``at``: of the following text; ``first``: nothing precedes."""
    found = _NEXT_WORD.match(text, at)
    following = found[0] if found else ""
    folded = word.casefold()
    if first and (word.isdigit() or (len(word) == 1 and word.isalpha())):
        return False  # the number of a list's item
    if word.isdigit():
        return following.casefold() not in _AFTER_ORDINAL
    if folded in NEVER_LAST or (folded in _BEFORE_NUMBER and following[:1].isdigit()):
        return False
    if folded in _SELDOM_LAST or (len(word) == 1 and word.isalpha()) or (word[1:2] == "." and word[0].isalpha()):
        return following.casefold() in _STARTERS and len(following) > 1
    return True


MAX_CHARS_A_TOKEN = 4  # more than the estimate ever gives a token

_CLAUSE = re.compile(r"[,;:–—)\]]\s+|[、，；：）]")
_WORD = re.compile(r"\s+|[\u200b\u2028]")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def pieces(text: str, limit: int) -> Iterator[str]:
    """Cut a text into pieces of at most ``limit`` tokens; joined they are the text."""
    start = 0
    while len(text) - start > limit * MAX_CHARS_A_TOKEN or estimated_tokens(text[start:]) > limit:
        end = start + _reach(text[start : start + limit * MAX_CHARS_A_TOKEN], limit)
        cut = _last(_CLAUSE, text, start + (end - start) // 2, end) or _last(_WORD, text, start + 1, end)
        cut = cut or _between_characters(text, start, end)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _reach(text: str, limit: int) -> int:
    """How many characters from the beginning make ``limit`` tokens."""
    return max(1, bisect_right(range(len(text) + 1), limit, key=lambda end: estimated_tokens(text[:end])) - 1)


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """The end of the last match between two positions."""
    return max((match.end() for match in pattern.finditer(text, start, end)), default=None)


def _between_characters(text: str, start: int, end: int) -> int:
    """The position at or before ``end`` that does not split a grapheme."""
    cut = end
    while cut > start + 1 and _continues(text, cut):
        cut -= 1
    return end if cut == start + 1 and _continues(text, cut) else cut


def _continues(text: str, at: int) -> bool:
    return at < len(text) and (unicodedata.combining(text[at]) > 0 or text[at] in _JOINERS or text[at - 1] == "\u200d")


MAX_QUOTED_CHARS = 2_000
"""Characters of a quotation. A bound, so that marks that open and never close are read in linear time."""
QUOTED = re.compile(
    r"\"([^\"\n]{2,@}?)\"|“([^”\n]{2,@}?)”|„([^“”\n]{2,@}?)[“”]|«([^»\n]{2,@}?)»|»([^«\n]{2,@}?)«|「([^」\n]{1,@}?)」|"
    r"『([^』\n]{1,@}?)』"
    r"|(?<!\w)‘([^‘’\n]{2,@}?)’(?!\w)".replace("@", str(MAX_QUOTED_CHARS))
)
"""Quotation marks that open and close. Of nested ones, the outermost."""
_KEPT = 512  # texts whose reading is remembered
_EDGES = " .,;:!?…。、，！？-—–"
_ELLIPSIS = re.compile(r"\s*(?:\[?(?:…|\.\s?\.\s?\.\.?)\]?|⋯+)\s*")
_INSERTED = re.compile(r"\[[^\]]*\]")
_VARIANTS = str.maketrans(
    {**dict.fromkeys('‘’‛′`´"“”„‟″«»‹›「」『』', "'"), **dict.fromkeys("‐‑‒–—−", "-"), **dict.fromkeys("，、", ",")}
)
_RAISED = re.compile("(?<=[0-9])(?=[\u00b2\u00b3\u00b9\u2070-\u209c\u00bc-\u00be\u2150-\u215e])")
"""Before raised digits and fractions of one character: neither 10² nor 10½ begins with 101 or 102."""
_CODE = re.compile(r"(`+)([^`']+)\1")
"""Markdown's code in a line; *`this'* is a quotation of older manuals."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_MIN_PART = 2  # characters of a part between ellipses that are looked for
_GAP = r"[^.!?。！？]{0,60}?"  # what an inserted word may stand for


def quotations(text: str) -> Iterator[str]:
    """The quotations of a text, without their marks."""
    for match in QUOTED.finditer(text):
        inside = next(filter(None, match.groups()), "").strip()
        if comparable_quotation(inside).strip(_EDGES + "'"):
            yield inside


def unquoted(text: str) -> str:
    """A text without the quotation marks around it, where it is one quotation."""
    whole = QUOTED.fullmatch(text)
    return next(filter(None, whole.groups())).strip() if whole else text


def without_quotations(text: str) -> str:
    """The words around the quotations."""
    return QUOTED.sub(" ", text)


@lru_cache(_KEPT)
def comparable_quotation(text: str) -> str:
    """Case, spacing and typographic variants folded away; all quotation marks are one, 10² is 10^2, and the backticks
    around code are none."""
    bare = _RAISED.sub("^", _CODE.sub(r"\2", text)).translate(_VARIANTS).casefold()
    return " ".join(compatible(bare).casefold().translate(_VARIANTS).split())


def contains_quotation(text: str, part: str) -> bool:
    """Whether a text has another in it, between words: *no* is not in *know*."""
    pattern = _pattern(part)
    return pattern is not None and pattern.search(comparable_quotation(text)) is not None


@lru_cache(_KEPT)
def _pattern(part: str) -> re.Pattern[str] | None:
    """What a quotation looks like in its passage: its parts in order, a word in brackets standing for others."""
    parts = []
    for piece in _ELLIPSIS.split(part):
        words = [comparable_quotation(words).strip(_EDGES + "'") for words in _INSERTED.split(piece)]
        known = [re.escape(words) for words in words if len(words) >= _MIN_PART or _CJK.search(words)]
        if known:
            parts.append(rf"\W*{_GAP}\W*".join(known))
    if not parts:
        return None
    pattern = r".*?".join(parts)
    if not _CJK.search(part):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.compile(pattern, re.DOTALL)
