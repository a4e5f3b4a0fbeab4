"""What is done to every text that is read, whatever the format."""

from __future__ import annotations

import re

from cicada.text.visible import visible

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_HIDDEN_RUN = re.compile("[\u200c\u200d\ufe00-\ufe0f]{3,}")
"""Joiners and variation selectors say something by twos at most; a run of them is a message to nobody's eyes."""
_BLANK_LINES = re.compile(r"\n{3,}")
_END_OF_LINE = re.compile(r"[ \t]+(?=\n|$)")


def cleaned(text: str, *, indented: bool = False) -> str:
    """A block's text: one kind of line end, plain spaces, nothing that is not seen, no white space around it.

    Args:
        text: as it was read.
        indented: whether the first line's indentation says something, as that of an item or of code does.
    """
    text = visible(_HIDDEN_RUN.sub("", _SPACES.sub(" ", _LINE_ENDS.sub("\n", text))))
    text = _BLANK_LINES.sub("\n\n", _END_OF_LINE.sub("", text))
    return text.lstrip("\n").rstrip() if indented else text.strip()


def one_line(text: str) -> str:
    """A name, a heading or a cell: cleaned, and all white space in it single spaces."""
    return " ".join(cleaned(text).split())
