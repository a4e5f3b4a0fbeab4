"""What a question says in signs: minus, comparisons, currencies, per cent, *C++*."""

from __future__ import annotations

import re

from cicada.text.tokens import normalised

_SIGNED = re.compile(
    r"""(?:(?<![\w)])[-−+±]\s?(?=[\d.]*\d))           # a sign before a number
      | [^\W_]+(?:\+\+|\#|\+)(?!\w)                  # c++, c#
      | (?<![\w])\.[^\W\d_]\w*                       # .net
      | [<>≤≥≠=~^|\\*/×÷%‰°§\#@_+±−]                 # comparisons, operators, per cent
      | [$€£¥₹₽₩₺¢]                                    # currencies
    """,
    re.VERBOSE,
)
_ACRONYMS = re.compile(r"\b(?:IT|US|OR|IN|AN|AM|WHO|ME|SO|NO|IS|AS|BE|DO|HE|WE|ON|AT|TO|BY)\b")
"""Capitals alone tell them from common words."""
_AROUND = re.compile(r"[\w.,]*")
_NO_SIGN = ".,"


def signs(text: str) -> tuple[str, ...]:
    """The signs of a question in their order, each with what stands before and after it."""
    plain = normalised(text)
    found = []
    for match in _SIGNED.finditer(plain):
        before = plain[: match.start()].split()[-1:] if match.start() else []
        after = _AROUND.match(plain[match.end() :].lstrip())
        tail = after.group().strip(_NO_SIGN) if after else ""
        left = before[0].strip(_NO_SIGN) if before and any(sign.isdigit() for sign in before[0]) else ""
        found.append(f"{left}{match.group().strip()}{tail if any(sign.isdigit() for sign in tail) else ''}")
    acronyms = () if text.isupper() else _ACRONYMS.findall(text)
    return (*found, *acronyms)
