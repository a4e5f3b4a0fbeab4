"""Reading the files of judged sets: line by line, and every problem with its file and line."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cicada.corpus.scripts import MAX_PROBLEMS
from cicada.errors import CorpusInvalid

_BOM = b"\xef\xbb\xbf"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Problems:
    """What is wrong with a set, collected so that it can be mended in one go."""

    def __init__(self) -> None:
        self._told: list[str] = []

    def add(self, file: Path, line: int, problem: str) -> None:
        """Note a problem of a line, counted from 1.

        Raises:
            CorpusInvalid: there are so many that reading on would tell nothing more.
        """
        self._told.append(f"{file}:{line}: {problem}")
        if len(self._told) == MAX_PROBLEMS:
            self._told.append(f"reading stopped after {MAX_PROBLEMS} problems")
            self.raise_if_any()

    def raise_if_any(self) -> None:
        """End the reading if anything is wrong.

        Raises:
            CorpusInvalid: with every problem on a line of its own.
        """
        if self._told:
            raise CorpusInvalid("\n".join(self._told))


def text_lines(file: Path, problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers and without their ends.

    Raises:
        CorpusInvalid: the file cannot be read at all.
    """
    try:
        with file.open("rb") as opened:
            for number, data in enumerate(opened, start=1):
                if number == 1:
                    data = data.removeprefix(_BOM)
                try:
                    line = data.decode().rstrip("\r\n")
                except UnicodeDecodeError:
                    problems.add(file, number, "is not UTF-8")
                    continue
                if line.strip():
                    yield number, line
    except OSError as error:
        raise CorpusInvalid(f"{file}: cannot be read: {error.strerror}") from error


def json_lines(file: Path, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, with their lines' numbers.

    Raises:
        CorpusInvalid: the file cannot be read at all.
    """
    for number, line in text_lines(file, problems):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(file, number, f"is not JSON: {error}")
            continue
        if not isinstance(found, dict):
            problems.add(file, number, "must be a JSON object")
        elif "\\u" in line and _LONE_SURROGATE.search(json.dumps(found, ensure_ascii=False)):
            problems.add(file, number, "contains half of a surrogate pair, which is no character")
        else:
            yield number, found


def content_digest(files: Iterable[Path]) -> str:
    """A SHA-256 of the files' contents, in the order given, in hexadecimal.

    Raises:
        CorpusInvalid: one cannot be read.
    """
    digest = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise CorpusInvalid(f"{file}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()
