"""About how many tokens a text has, without a tokenizer."""

from __future__ import annotations

import re

_LETTERS_A_TOKEN = 3.5
_LETTERS = re.compile(r"[A-Za-z\s]+")


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    English takes about four characters a token with today's models; a digit, a sign and a character beyond ASCII are
    counted as one each.
    """
    letters = sum(map(len, _LETTERS.findall(text)))
    return round(letters / _LETTERS_A_TOKEN) + len(text) - letters
