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
    return round(share_of_tokens(text))


def share_of_tokens(text: str) -> float:
    """What a text adds to the tokens of one that it is part of: before rounding, so that these add up."""
    letters = sum(map(len, _LETTERS.findall(text)))
    return letters / _LETTERS_A_TOKEN + len(text) - letters
