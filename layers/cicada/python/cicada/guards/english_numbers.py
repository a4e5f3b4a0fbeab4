"""Numbers in an English question: words as digits, and with the thing that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cicada.guards import english_words as table

_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_ONE, _ZERO = "one", "zero"


def counted(tokens: Sequence[str]) -> list[str]:
    """Number words as digits, and those that name a thing (*episode 3*, *the third episode*) as one token with it."""
    plain_numbers = [_number(token, tokens[place - 1] if place else "") for place, token in enumerate(tokens)]
    joined: list[str] = []
    skip = False
    for place, token in enumerate(plain_numbers):
        if skip:
            skip = False
            continue
        following = plain_numbers[place + 1] if place + 1 < len(plain_numbers) else ""
        if token.rstrip("s") in table.COUNTED and following.isdigit():
            joined.append(f"{token.rstrip('s')}#{following}")
            skip = True
        elif token.isdigit() and following in table.COUNTED and _is_ordinal(tokens[place]):
            joined.append(f"{following}#{token}")
            skip = True
        elif token in ("last", "final", "latest") and following in table.COUNTED:
            joined.append(f"{following}#last")
            skip = True
        else:
            joined.append(token)
    return joined


def _is_ordinal(token: str) -> bool:
    return token in table.ORDINALS or _ORDINAL.fullmatch(token) is not None


def _number(token: str, before: str) -> str:
    if token == _ONE and before in ("which", "the", "this", "that", "no", "any", "every", "each"):
        return token
    if token in table.NUMBERS and token != _ZERO:
        return table.NUMBERS[token]
    if token in table.ORDINALS:
        return table.ORDINALS[token]
    ordinal = _ORDINAL.fullmatch(token)
    return ordinal.group(1) if ordinal else token.replace(",", "") if _THOUSANDS.fullmatch(token) else token
