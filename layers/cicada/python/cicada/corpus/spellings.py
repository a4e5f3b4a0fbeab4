"""What the spellings of one name have in common."""

from __future__ import annotations

import re
import unicodedata

JOINING = r"[\s\-\u2010-\u2013'’]+"
"""A regular expression of what may stand between the words of a name, whatever stands there elsewhere."""

_JOINED = re.compile(JOINING)
_ARTICLE = re.compile(r"\s*(?:the|an?)\s+(?=\S)", re.IGNORECASE)


def spelling_key(name: str) -> str:
    """A name, folded, with a space for what joins its words, and without a stop at its end."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return _JOINED.sub(" ", plain).lstrip().rstrip(" .") or " ".join(plain.split())


def bare_key(name: str) -> str:
    """The key of a name without its article."""
    article = _ARTICLE.match(name)
    return spelling_key(name[article.end() :] if article else name)
