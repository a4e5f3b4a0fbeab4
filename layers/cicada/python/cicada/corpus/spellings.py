"""What the spellings of one name have in common."""

from __future__ import annotations

import re
import unicodedata

JOINING = r"[\s\-\u2010-\u2013'’]+"
"""A regular expression of what may stand between the words of a name, whatever stands there elsewhere."""

ARTICLES = frozenset("the a an der die das den dem des ein eine einen le la les l un une el los las il lo gli".split())
"""What a name may stand with or without, folded."""

_JOINED = re.compile(JOINING)


def spelling_key(name: str) -> str:
    """A name, folded, with a space for what joins its words, and without a stop at its end."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return _JOINED.sub(" ", plain).lstrip().rstrip(" .") or " ".join(plain.split())


def bare_key(name: str) -> str:
    """The key of a name without its article: two names may share it, such as *An Nguyen* and *Nguyen*."""
    first, _, rest = " ".join(name.split()).partition(" ")
    return spelling_key(rest if rest and first.casefold() in ARTICLES else name)
