"""Sources and titles of documents."""

from __future__ import annotations

from pathlib import PurePosixPath

from cicada.corpus.readers.blocks import one_line
from cicada.errors import DocumentUnsafe
from cicada.text.visible import is_unseen, visible

MAX_SOURCE_CHARS = 512
MAX_TITLE_CHARS = 300


def checked_source(source: str) -> str:
    """The source, if it is a valid relative path. Raises DocumentUnsafe if it is empty, too long or absolute, contains
    ``..``, a backslash or an invisible character."""
    if not 0 < len(source) <= MAX_SOURCE_CHARS:
        raise DocumentUnsafe(f"the source's name must have 1 to {MAX_SOURCE_CHARS} characters")
    if any(map(is_unseen, source)) or source != visible(source).strip():
        raise DocumentUnsafe("the source's name contains invisible characters")
    if "\\" in source or source.startswith("/") or not {".", ".."}.isdisjoint(source.split("/")):
        raise DocumentUnsafe("the source's path leads outside its folder")
    return source


def title_of(source: str, given: str | None, found: str | None) -> str:
    """The given title, else the file's own, else its name without the ending."""
    lines = (one_line(title or "") for title in (given, found, PurePosixPath(source).stem, source))
    return next(line for line in lines if line)[:MAX_TITLE_CHARS]
