"""Reads the prompt of an answer: numbered passages in XML-like elements, then the question.

Nothing here can fail: a prompt of another form has no passages, and is itself the question. The expressions look at
each character a bounded number of times, whatever the prompt: texts are escaped, so no ``<`` stands inside of one.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

MAX_QUESTION_CHARS = 4_000
"""As much of a question as the protocol lets through."""
_BODY = r"((?:[^<]|<(?!/?{name}\b))*+)"
_PASSAGE = re.compile(r'<passage\b((?:[^<>"]|"[^"<]*+")*+)>' + _BODY.format(name="passage") + "</passage>")
_CONTEXT = re.compile("<context>[^<]*+</context>")
"""The lines around a passage, which a reader may need and a quotation may not use."""
_ATTRIBUTE = re.compile(r'([\w-]++)="([^"]*+)"')
_QUESTION = re.compile("<question>" + _BODY.format(name="question") + "</question>")
_TRAILING_NUMBER = re.compile(r"(\d{1,9})$")


@dataclass(frozen=True)
class NumberedPassage:
    """One passage of the prompt, as its element says."""

    number: int
    """The ``n`` of the marker ``[n]`` that cites it."""
    text: str
    """On one line."""
    lines: str = ""
    """As it is written."""
    episode: str = ""
    episode_id: str = ""
    chapter: str = ""
    message: str = ""
    speaker: str = ""
    source: str = ""
    """The file that it is from."""
    title: str = ""
    """Of the document that it is from."""
    section: str = ""
    page: str = ""
    relevance: float = 0.0
    place: str = ""
    """In one line, where it is told so."""

    @property
    def position(self) -> int | None:
        """The number that its message's id ends with: neighbours in the script count on by one."""
        found = _TRAILING_NUMBER.search(self.message)
        return int(found[1]) if found else None

    def follows(self, earlier: NumberedPassage) -> bool:
        """Whether it is the very next message of the same chapter."""
        here, there = self.position, earlier.position
        same_chapter = (self.episode_id, self.chapter) == (earlier.episode_id, earlier.chapter)
        return same_chapter and here is not None and there is not None and here == there + 1


@dataclass(frozen=True)
class ParsedPrompt:
    """What the user's turn holds."""

    question: str
    passages: tuple[NumberedPassage, ...]
    grounded: bool
    """Whether it asks for an answer from passages, even if there are none."""


def parse_prompt(user: str) -> ParsedPrompt:
    """Read a user's turn. A passage without a usable number is left out, for it could not be cited."""
    passages: dict[int, NumberedPassage] = {}
    for element in _PASSAGE.finditer(user):
        passage = _passage(element[1], element[2])
        if passage is not None:
            passages.setdefault(passage.number, passage)
    questions = _QUESTION.findall(user)
    question = _unescape(questions[-1]) if questions else _without_passages(user)
    return ParsedPrompt(question[:MAX_QUESTION_CHARS], tuple(passages.values()), grounded="<passages" in user)


def _passage(attributes: str, body: str) -> NumberedPassage | None:
    values = {name: _unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
    own = _CONTEXT.sub(" ", body)
    number, text = values.get("n", ""), _unescape(own)
    if not re.fullmatch("[0-9]{1,6}", number) or not text:
        return None
    names = ("episode", "episode_id", "chapter", "message", "speaker", "source", "title", "section", "page", "place")
    return NumberedPassage(
        number=int(number),
        text=text,
        lines=html.unescape(own).strip(),
        relevance=_score(values.get("relevance", "")),
        **{name: values.get(name, "") for name in names},
    )


def _score(value: str) -> float:
    return min(float(value), 1.0) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", value) else 0.0


def _without_passages(user: str) -> str:
    return _unescape(_PASSAGE.sub(" ", user).replace("<passages>", " ").replace("</passages>", " "))


def _unescape(text: str) -> str:
    """The text as it was before it was escaped, on one line."""
    return " ".join(html.unescape(text).split())
