"""Quotations: where they stand, and whether a passage holds them word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from cicada.text.normal import compatible

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
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_MIN_PART = 2  # characters of a part between ellipses that are looked for
_GAP = r"[^.!?。！？]{0,60}?"  # what an inserted word may stand for


def quotations(text: str) -> Iterator[str]:
    """The quotations of a text, without their marks."""
    for match in QUOTED.finditer(text):
        inside = next(filter(None, match.groups()), "").strip()
        if plain(inside).strip(_EDGES + "'"):
            yield inside


def unquoted(text: str) -> str:
    """A text without the quotation marks around it, where it is one quotation."""
    whole = QUOTED.fullmatch(text)
    return next(filter(None, whole.groups())).strip() if whole else text


def without_quotations(text: str) -> str:
    """The words around the quotations."""
    return QUOTED.sub(" ", text)


@lru_cache(_KEPT)
def plain(text: str) -> str:
    """Case, spacing and typographic variants folded away; all quotation marks are one, and 10² is 10^2."""
    bare = _RAISED.sub("^", text).translate(_VARIANTS).casefold()
    return " ".join(compatible(bare).casefold().translate(_VARIANTS).split())


def holds(text: str, part: str) -> bool:
    """Whether a text has another in it, between words: *no* is not in *know*."""
    pattern = _pattern(part)
    return pattern is not None and pattern.search(plain(text)) is not None


@lru_cache(_KEPT)
def _pattern(part: str) -> re.Pattern[str] | None:
    """What a quotation looks like in its passage: its parts in order, a word in brackets standing for others."""
    parts = []
    for piece in _ELLIPSIS.split(part):
        words = [plain(words).strip(_EDGES + "'") for words in _INSERTED.split(piece)]
        known = [re.escape(words) for words in words if len(words) >= _MIN_PART or _CJK.search(words)]
        if known:
            parts.append(rf"\W*{_GAP}\W*".join(known))
    if not parts:
        return None
    pattern = r".*?".join(parts)
    if not _CJK.search(part):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.compile(pattern, re.DOTALL)
