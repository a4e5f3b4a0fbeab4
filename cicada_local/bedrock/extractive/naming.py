"""What a text names, roughly: runs of capitalised words that do not only begin sentences, and identifiers.

A question also names, written small, what it asks the meaning or the working of.
"""

from __future__ import annotations

import re

from cicada_local.bedrock.extractive.text import STOP_WORDS, sentences

MAX_NAMES = 20
_NAME = re.compile(r"[A-Z][\w'’-]*(?:(?: of(?: the)?)? [A-Z][\w'’-]*)*")
_ASKED_OF = re.compile(
    r"\b(?:how (?:does|do)|what (?:does|do)|what (?:is|are)|what's|my) (?:an? |the |my )?"
    r"((?:[a-z][\w'’-]+ ){0,2}?[a-z][\w'’-]+)(?= (?:work|do|does|mean|bonus|cost|skill|spell|stats)\b|\?|$)",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please )?(?:(?:remind|tell|give|show|write) me|describe|list|sum up|recommend|explain|compare|thanks)\b[, ]*",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
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


def sure_names(question: str) -> list[tuple[str, float]]:
    """The names in a question, surest first, each with a confidence in [0, 1]."""
    question = _REQUEST.sub("", question)
    found: dict[str, float] = dict.fromkeys(names(question), 0.95)
    found |= dict.fromkeys((name.strip() for name in _QUOTED.findall(question)), 0.9)
    first = _NAME.match(question)
    if first is not None and re.split(r"[ '’]", first[0].lower())[0] not in STOP_WORDS:
        found.setdefault(re.sub(r"['’]s$", "", first[0]), 0.7)
    for asked in _ASKED_OF.findall(question):
        words = [word for word in asked.split() if word.lower() not in STOP_WORDS]
        if words and not any(asked in known or known in asked for known in found):
            found.setdefault(" ".join(words), 0.65)
    return sorted(found.items(), key=lambda item: -item[1])[:MAX_NAMES]


def codes(text: str) -> list[str]:
    """Identifiers of capital letters and digits, each once."""
    return list(dict.fromkeys(_CODE.findall(text)))[:MAX_NAMES]
