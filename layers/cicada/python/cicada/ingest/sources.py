"""Find the documents below some paths, and the source of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.chunking.passages import DOC_TYPE_KEY, PAGES_KEY
from cicada.corpus.declared.declaration import DECLARATION, misplaced
from cicada.corpus.messages import (
    LANGUAGE_KEY,
    MAX_METADATA_ENTRIES,
    MAX_METADATA_KEY_CHARS,
    MAX_METADATA_VALUE_CHARS,
)
from cicada.errors import CorpusInvalid, DocumentInvalid, DocumentRefused, DocumentTooLarge, DocumentUnsafe
from cicada.ingest.contracts import MAX_SOURCE_CHARS, Quarantined
from cicada.ingest.cutting import SOURCE
from cicada.text.characters import composed

MAX_DOCUMENTS = 200_000  # of one load: more must be loaded in parts, or uploaded
MAX_SHOWN_CHARS = 300  # of a path in a message
RESERVED_KEYS = frozenset({SOURCE, DOC_TYPE_KEY, LANGUAGE_KEY, PAGES_KEY})  # metadata set by a document's reader


@dataclass(frozen=True)
class SourceFile:
    """A file to load."""

    source: str
    """Its path relative to the given folder, with ``/``; for a file given by itself, its name."""
    path: Path  # of the file itself, links resolved
    size: int  # bytes


@dataclass(frozen=True)
class SourceFiles:
    """The files below some paths."""

    files: tuple[SourceFile, ...]
    refused: tuple[Quarantined, ...]  # files that cannot be loaded
    declaration: SourceFile | None = None  # the collection's declaration, if any


def source_files(paths: Sequence[Path]) -> SourceFiles:
    """The documents below some paths: files themselves, and all files of folders and their subfolders, by name.

    A ``collection.yaml`` given by itself, or at the top of a given folder, is the collection's declaration. Hidden
    files are skipped unless given by themselves. A link to a file within the given folder is followed; any other link
    or special file is refused. Raises CorpusInvalid if a path does not exist, a folder cannot be listed, there is no
    document, two have one name, or there are more than :data:`MAX_DOCUMENTS`.
    """
    _raise_if_any([problem for path in paths if (problem := _problem_of(path)) is not None])
    problems: list[str] = []
    files: dict[str, SourceFile] = {}
    refused: list[Quarantined] = []
    for source, path, root in _entries(paths):
        try:
            file = _file(source, path, root)
        except DocumentRefused as error:
            shown = source.encode("utf-8", "replace").decode()[:MAX_SOURCE_CHARS]
            refused.append(Quarantined(source=shown, code=error.code, message=str(error)))
            continue
        first = files.setdefault(file.source, file)
        if first is not file and first.path != file.path:
            problems.append(
                f"{first.path} and {file.path} would both be known as {file.source}: load them by themselves"
            )
        if len(files) > MAX_DOCUMENTS:
            raise CorpusInvalid(f"the limit of {MAX_DOCUMENTS:,} documents a load is exceeded: load them in parts")
    _raise_if_any(problems)
    declaration = files.pop(DECLARATION, None)
    if not (files or refused):
        raise CorpusInvalid(f"{', '.join(map(str, paths))}: no document{f' beside {DECLARATION}' * bool(declaration)}")
    return SourceFiles(tuple(files.values()), tuple(refused), declaration)


def _raise_if_any(problems: Sequence[str]) -> None:
    if problems:
        raise CorpusInvalid("\n".join(problems))


def _problem_of(path: Path) -> str | None:
    """Why a path cannot be read, if it cannot: it may also be too long for the system, or contain a NUL."""
    try:
        path.stat()
    except FileNotFoundError:
        why = "there is no such file or folder"
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    else:
        return None
    shown = str(path)
    return f"{shown if len(shown) <= MAX_SHOWN_CHARS else shown[:MAX_SHOWN_CHARS] + '…'}: {why}"


def checked_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Metadata for every passage of a document. Raises CorpusInvalid if a key or value is empty, too long or not
    printable, a key is reserved, or there are too many."""
    if len(metadata) > MAX_METADATA_ENTRIES:
        raise CorpusInvalid(f"metadata has more than {MAX_METADATA_ENTRIES} keys")
    for key, value in metadata.items():
        if key in RESERVED_KEYS:
            raise CorpusInvalid(f"the metadata key {key} is reserved")
        for what, text, most in (("key", key, MAX_METADATA_KEY_CHARS), ("value", value, MAX_METADATA_VALUE_CHARS)):
            if not text.strip() or len(text) > most or not text.isprintable():
                raise CorpusInvalid(f"a metadata {what} must be one line of 1 to {most:,} characters: {text[:80]!r}")
    return dict(metadata)


def _entries(paths: Sequence[Path]) -> Iterator[tuple[str, Path, Path | None]]:
    """Each file's source, its path, and the folder that a link must stay within."""
    for path in paths:
        if not path.is_dir():
            yield path.name, path, None
            continue
        for folder, folders, names in os.walk(path, onerror=_unlisted):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            linked = [name for name in folders if (Path(folder) / name).is_symlink()]
            for name in sorted([*names, *linked]):
                if not name.startswith("."):
                    found = Path(folder) / name
                    yield found.relative_to(path).as_posix(), found, path


def _unlisted(error: OSError) -> None:
    # A folder that cannot be listed must not be taken for an empty one: its documents would be deleted.
    raise CorpusInvalid(f"{error.filename}: cannot list the folder: {error.strerror}") from error


def _file(source: str, path: Path, root: Path | None) -> SourceFile:
    named = composed(source)
    if len(named) > MAX_SOURCE_CHARS:
        raise DocumentTooLarge(f"its path has more than {MAX_SOURCE_CHARS} characters")
    if not named.isprintable():  # undecodable bytes included
        raise DocumentInvalid("its name contains characters that cannot be displayed")
    if told := misplaced(named):
        raise DocumentInvalid(told)
    try:
        linked = path.is_symlink()
        if linked and root is not None and not _stays_within(path, root):
            raise DocumentUnsafe("is a link to a missing file or to one outside the folder")
        if not path.is_file():
            raise DocumentUnsafe("is not a regular file")
        return SourceFile(named, path.resolve() if linked else path, path.stat().st_size)
    except OSError as error:
        raise DocumentInvalid(f"cannot be read: {error.strerror}") from error


def _stays_within(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root.resolve(strict=True)) and path.is_file()
    except (OSError, RuntimeError):  # it is broken, or a loop
        return False
