"""Read scripts: files of messages in JSON (an array of objects) or JSONL (an object a line).

A script is read whole or not at all: its problems are collected, up to a limit, and raised together.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from cicada.corpus.messages import Message, field_problems, to_message
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import CorpusInvalid

MAX_FILE_BYTES = ReadLimits().max_bytes  # the only bound of this reader
MAX_PROBLEMS = 20  # reported at once: enough to fix a file in one go, few enough to read
SUFFIXES = (".json", ".jsonl")

_WHITE_SPACE = " \t\n\r"


class _TooManyProblemsError(Exception):
    """The limit of reported problems is reached."""


class _Problems:
    def __init__(self) -> None:
        self._told: list[str] = []

    def add(self, place: str, problem: str) -> None:
        self._told.append(" ".join(f"{place}: {problem}".splitlines()))
        if len(self._told) == MAX_PROBLEMS:
            self._told.append(f"reading stopped after {MAX_PROBLEMS} problems")
            raise _TooManyProblemsError

    def raise_if_any(self) -> None:
        if self._told:
            raise CorpusInvalid("\n".join(self._told))


def script_files(paths: Iterable[Path]) -> list[Path]:
    """The script files of some paths: files themselves, and folders' ``.json`` and ``.jsonl`` files by name. Raises
    CorpusInvalid if a path does not exist, has another ending, or is a folder without such files."""
    files: list[Path] = []
    problems: list[str] = []
    for path in paths:
        if path.is_dir():
            found = sorted(child for child in path.iterdir() if child.suffix in SUFFIXES and child.is_file())
            files += found
            if not found:
                problems.append(f"{path}: holds no {' or '.join(SUFFIXES)} file")
        elif not path.is_file():
            problems.append(f"{path}: there is no such file or folder")
        elif path.suffix not in SUFFIXES:
            problems.append(f"{path}: must end in {' or '.join(SUFFIXES)}")
        else:
            files.append(path)
    if problems:
        raise CorpusInvalid("\n".join(problems))
    return files


def read_script(files: Sequence[Path]) -> list[Message]:
    """Read the messages of all files as one script, in order. Raises CorpusInvalid if a file cannot be read or breaks
    the format, a ``messageId`` is repeated, or an episode has two names; every line of the error names file, line (in a
    JSON array, where the element begins) and field."""
    problems = _Problems()
    script = _Script(problems)
    with suppress(_TooManyProblemsError):
        for file in files:
            for place, element in _elements(file, problems):
                script.add(place, element)
    problems.raise_if_any()
    if not script.messages:
        raise CorpusInvalid(f"{', '.join(map(str, files))}: contains no message")
    return script.messages


class _Script:
    """The messages read so far, and the rules between them."""

    def __init__(self, problems: _Problems) -> None:
        self.messages: list[Message] = []
        self._problems = problems
        self._places: dict[str, str] = {}
        self._episodes: dict[str, tuple[str, str]] = {}

    def add(self, place: str, element: Any) -> None:
        found = field_problems(element)
        for problem in found:
            self._problems.add(place, problem)
        if found:
            return
        message = to_message(element)
        if first := self._places.get(message.message_id):
            self._problems.add(place, f"messageId: {message.message_id} is at {first} already")
        self._places.setdefault(message.message_id, place)
        name, named_at = self._episodes.setdefault(message.episode_id, (message.episode_name, place))
        if name != message.episode_name:
            self._problems.add(place, f"episodeName: episode {message.episode_id} is named {name!r} at {named_at}")
        self.messages.append(message)


def _elements(file: Path, problems: _Problems) -> Iterator[tuple[str, Any]]:
    """Each element with its place, ``file:line``."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            problems.add(str(file), f"is larger than {MAX_FILE_BYTES // 2**20} MiB")
            return
        data = file.read_bytes()
        if data.startswith(BOM_UTF8):
            problems.add(f"{file}:1", "begins with a byte order mark: save it as UTF-8 without one")
            return
        text = data.decode()
    except OSError as error:
        problems.add(str(file), f"cannot be read: {error.strerror}")
        return
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(f"{file}:{line}", "is not valid UTF-8")
        return
    yield from _lines(file, text, problems) if file.suffix == ".jsonl" else _array(file, text, problems)


def _lines(file: Path, text: str, problems: _Problems) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        place = f"{file}:{number}"
        if not line.strip(_WHITE_SPACE):
            problems.add(place, "is empty: every line must be an object")
            continue
        try:
            yield place, _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            problems.add(place, _json_problem(error))


def _array(file: Path, text: str, problems: _Problems) -> Iterator[tuple[str, Any]]:
    """The elements of a JSON array, each at the line where it begins. A broken array ends the reading."""
    cursor = _Cursor(text)
    if not cursor.take("["):
        problems.add(f"{file}:{cursor.line()}", "must be an array: '[' is missing")
        return
    closed = cursor.take("]")
    while not closed:
        line = cursor.line()
        try:
            element, cursor.at = _DECODER.raw_decode(text, cursor.at)
        except (ValueError, RecursionError) as error:
            at = error.lineno if isinstance(error, json.JSONDecodeError) else line
            problems.add(f"{file}:{at}", _json_problem(error))
            return
        yield f"{file}:{line}", element
        closed = cursor.take("]")
        if not closed and not cursor.take(","):
            problems.add(f"{file}:{cursor.line()}", "',' or ']' is missing")
            return
    line = cursor.line()
    if cursor.at < len(text):
        problems.add(f"{file}:{line}", "there is more after the array's end")


class _Cursor:
    """A position in a text that is read forwards only; it counts lines as it goes."""

    def __init__(self, text: str) -> None:
        self.at = 0
        self._text = text
        self._counted_to = 0
        self._line = 1

    def line(self) -> int:
        """Skip white space; the line of the next character."""
        while self.at < len(self._text) and self._text[self.at] in _WHITE_SPACE:
            self.at += 1
        self._line += self._text.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        return self._line

    def take(self, character: str) -> bool:
        """Skip white space, and the character if it comes next."""
        self.line()
        taken = self._text.startswith(character, self.at)
        self.at += taken
        return taken


class _FieldTwiceError(ValueError):
    """An object repeats a field; Python's JSON decoder would silently keep the last."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _FieldTwiceError(f"{key}: duplicate field")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"invalid JSON: {name}")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant)


def _json_problem(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg} (column {error.colno})"
    if isinstance(error, _FieldTwiceError):
        return str(error)
    return f"is not JSON that can be read: {error}"
