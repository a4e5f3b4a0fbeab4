"""One message of a script, and the rules of its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cicada.text.visible import visible

MAX_ID_CHARS = 200
MAX_NAME_CHARS = 200
MAX_TEXT_CHARS = 20_000
MAX_METADATA_ENTRIES = 32
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 1_000

TEXT_PREFIX = "text"
MAIN_LANGUAGE = "ENG"  # every message has a text in this language
LANGUAGE_KEY = "language"  # metadata key of a passage in another language; messages may not set it

_MAIN_TEXT = TEXT_PREFIX + MAIN_LANGUAGE
_IDS = ("episodeId", "chapterId", "messageId")
_NAMES = ("episodeName", "speaker")
_REQUIRED = (*_IDS[:1], _NAMES[0], *_IDS[1:], _NAMES[1], _MAIN_TEXT)
_TEXT_FIELD = re.compile(rf"{TEXT_PREFIX}([A-Z]{{3}})")
_OF_MESSAGES = frozenset((*_IDS, _NAMES[0]))  # fields that identify a message, as a text field (*textENG*) does
_MANY_OF_THEM = 3
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Message:
    """One line of a script."""

    episode_id: str
    episode_name: str
    chapter_id: str
    message_id: str
    speaker: str
    texts: Mapping[str, str]  # by language, in three upper-case letters; ``ENG`` is always there
    metadata: Mapping[str, str] = field(default_factory=dict)


def is_of_a_script(names: Iterable[str]) -> bool:
    """Whether an object with these fields is meant as a message."""
    names = set(names)
    found = {name for name in names if name in _OF_MESSAGES or _TEXT_FIELD.fullmatch(name)}
    has_text = _MAIN_TEXT in names and (len(found) > 1 or _NAMES[1] in names)
    return has_text or {"episodeId", "messageId"} <= found or len(found) >= _MANY_OF_THEM


def field_problems(found: object) -> list[str]:
    """Why a value read from JSON is not a message, field by field; empty if it is one."""
    if not isinstance(found, dict):
        return ["must be an object"]
    return [f"{name}: is missing" for name in _REQUIRED if name not in found] + [
        f"{name}: {problem}" for key, value in found.items() for name, problem in _problems_of(key, value)
    ]


def to_message(found: Mapping[str, object]) -> Message:
    """The message in a value without problems; invisible characters are dropped."""
    fields = {key: _seen(value) for key, value in found.items() if isinstance(value, str)}
    texts = {match[1]: value for key, value in fields.items() if (match := _TEXT_FIELD.fullmatch(key))}
    metadata = found.get("metadata", {})
    assert isinstance(metadata, dict)  # checked by field_problems
    return Message(
        episode_id=fields["episodeId"],
        episode_name=fields["episodeName"],
        chapter_id=fields["chapterId"],
        message_id=fields["messageId"],
        speaker=fields["speaker"],
        texts=texts,
        metadata={key: _seen(value) for key, value in metadata.items()},
    )


def _seen(text: str) -> str:
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def _problems_of(key: str, value: object) -> Iterator[tuple[str, str]]:
    if key in _IDS:
        if problem := _name_problem(value, MAX_ID_CHARS):
            yield key, problem
        elif "#" in str(value):
            yield key, "must not contain '#'"
        elif value != visible(str(value)):
            yield key, "contains a character that is not seen"
    elif key in _NAMES:
        if problem := _name_problem(value, MAX_NAME_CHARS):
            yield key, problem
    elif _TEXT_FIELD.fullmatch(key):
        if problem := _text_problem(value, MAX_TEXT_CHARS):
            yield key, problem
    elif key == "metadata":
        yield from _metadata_problems(value)
    else:
        yield json.dumps(key)[:MAX_NAME_CHARS], "is not a known field"


def _metadata_problems(value: object) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield "metadata", "must be an object of strings"
        return
    if len(value) > MAX_METADATA_ENTRIES:
        yield "metadata", f"has more than {MAX_METADATA_ENTRIES} entries"
    for key, entry in value.items():
        if problem := _name_problem(key, MAX_METADATA_KEY_CHARS):
            yield "metadata", f"a key {problem}"
        elif key == LANGUAGE_KEY:
            yield f"metadata.{key}", "is reserved: other languages are fields of their own, such as textJPN"
        elif problem := _text_problem(entry, MAX_METADATA_VALUE_CHARS):
            yield f"metadata.{key}", problem


def _name_problem(value: object, max_chars: int) -> str | None:
    if problem := _text_problem(value, max_chars):
        return problem
    assert isinstance(value, str)
    if value != value.strip():
        return "must not begin or end with white space"
    if any(character in value for character in "\n\r\t"):
        return "must be one line"
    return None


def _text_problem(value: object, max_chars: int) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    if len(value) > max_chars:
        return f"is longer than {max_chars:,} characters"
    if _CONTROL.search(value):
        return "contains a control character"
    if _LONE_SURROGATE.search(value):
        return "contains half of a surrogate pair, which is no character"
    return None if _seen(value).strip() else "must not be empty"
