"""What a text names, roughly: runs of capitalised words that do not only begin sentences, and identifiers."""

from __future__ import annotations

import re

from local.bedrock.extractive.text import STOP_WORDS, sentences

MAX_NAMES = 20
_NAME = re.compile(r"[A-Z][\w'’-]*(?:(?: of(?: the)?)? [A-Z][\w'’-]*)*")
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]+(?:-[A-Z0-9]+)*\b")


def names(text: str) -> list[str]:
    """The names in a text, each once, in the order of their first mention."""
    runs = [
        (run.start() == 0, re.sub(r"['’]s$", "", run[0])) for said in sentences(text) for run in _NAME.finditer(said)
    ]
    found: dict[str, None] = {}
    for begins, run in runs:
        first, _, rest = run.partition(" ")
        name = rest if begins and first.lower() in STOP_WORDS else run
        if begins and name == first and (False, name) not in runs:
            continue  # perhaps capitalised only because the sentence begins with it
        if name[:1].isupper() and name.lower() not in STOP_WORDS and not _DIGIT.search(name):
            found.setdefault(name)
    return list(found)[:MAX_NAMES]


def codes(text: str) -> list[str]:
    """Identifiers of capital letters and digits, each once."""
    return list(dict.fromkeys(_CODE.findall(text)))[:MAX_NAMES]
