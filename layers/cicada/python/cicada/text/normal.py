"""Normal forms in which texts are compared.

- :func:`normalised` is what a text is searched by; passages are on disk in it.
- :func:`compared` tells texts apart that a search need not: ``10²`` is not ``102``.
- :func:`folded` is for names and lines, which keep their signs.
- :func:`compatible` and :func:`unaccented` are steps on the way to others.
"""

from __future__ import annotations

import re
import unicodedata

_RAISED = re.compile(r"(?<=[\w)])([\u00b2\u00b3\u00b9\u2070-\u209c]+)")

_AT_WILL = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f"
    "\u00ad\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]+"
)
"""Optional characters: vowel points, and signs without a width."""


class _Plain(dict[int, str | int]):
    """For ``str.translate``: one sign for each of several that mean the same. Filled as characters are met."""

    _SIGNS = str.maketrans("’ʼʹ′‘‛`´ꞌ‐‑‒−﹣", "'''''''''-----")

    def __missing__(self, code: int) -> str | int:
        sign = chr(code)
        plain: str | int = self._SIGNS.get(code, code)
        if _AT_WILL.match(sign):
            plain = ""
        elif code > 127 and sign.isdecimal():
            plain = str(unicodedata.decimal(sign))
        self[code] = plain
        return plain


_PLAIN = _Plain()


def well_formed(text: str) -> str:
    """A text without unpaired surrogates, which no encoding has."""
    return text if text.isascii() else text.encode("utf-8", "ignore").decode()


def compatible(text: str) -> str:
    """A text in compatibility form (NFKC), without unpaired surrogates."""
    return text if text.isascii() else unicodedata.normalize("NFKC", well_formed(text))


def composed(text: str) -> str:
    """A text in composed form (NFC): letters that look the same are the same."""
    return unicodedata.normalize("NFC", text)


def normalised(text: str, *, dotless_i: bool = False) -> str:
    """Text in compatibility form (NFKC), case folded, with one apostrophe, one hyphen and one set of digits, without
    unpaired surrogates; ``dotless_i``: the capital of *ı* is *I*, as in Turkish."""
    if dotless_i:
        text = text.replace("İ", "i").replace("I", "ı")
    if text.isascii():
        return text.lower()
    seen = _AT_WILL.sub("", well_formed(text))
    return unicodedata.normalize("NFKC", seen.casefold()).casefold().translate(_PLAIN)


def raised_apart(text: str) -> str:
    """Text with raised and lowered digits apart from what they stand on: in compatibility form 10² would be 102."""
    return text if text.isascii() else _RAISED.sub(r" ^ \1 ", text)


def compared(text: str) -> str:
    """Text as :func:`normalised`, with raised and lowered digits apart from what they stand on."""
    return normalised(raised_apart(text))


def folded(text: str) -> str:
    """A name or a line without case, in compatibility form (NFKC), single-spaced; its signs and accents stay."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def unaccented(text: str) -> str:
    """The text without accents, which many people leave out when they type."""
    if text.isascii():
        return text
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))
