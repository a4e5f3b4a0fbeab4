"""Other wordings of a question, made of its own words, and a passage that could answer it."""

from __future__ import annotations

import re

from cicada_local.bedrock.extractive.text import STOP_WORDS, words

_WORD = re.compile(r"[\"“]?[^\W_][\w'’./:-]*[\"”]?")
_ASKING = re.compile(
    r"^(?:(?:please\s+)?(?:tell me|explain|describe|show me|list)\s+)?"
    r"(?:(?:who|whom|whose|what|which|when|where|why|how(?: many| much| long| often)?)\b\s*)?"
    r"(?:(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b\s*)?",
    re.IGNORECASE,
)


def keywords(question: str) -> str:
    """The question's words that carry meaning, as they are written, in their order."""
    told = [word for word in _WORD.findall(question) if word.strip('"“”').lower() not in STOP_WORDS]
    return " ".join(told)


def rewordings(question: str) -> list[str]:
    """The question as keywords, and as a statement; none that is the question itself or empty."""
    asked = question.strip()
    statement = _ASKING.sub("", asked).rstrip(" ?？.!")
    made = [keywords(asked), statement, f"{keywords(asked)} explained"]
    seen = {tuple(words(asked)), ()}
    different: list[str] = []
    for wording in made:
        if tuple(words(wording)) not in seen:
            seen.add(tuple(words(wording)))
            different.append(wording)
    return different


def hypothetical(question: str) -> str:
    """A few plain sentences with the question's words, as a document might have them."""
    statement = _ASKING.sub("", question.strip()).rstrip(" ?？.!") or question.strip()
    return f"This part is about {keywords(question) or statement}. It tells of {statement}."
