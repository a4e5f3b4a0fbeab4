"""Resolve a reference to its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada.citations.checking import Objection
from cicada.corpus.passages import DocumentLocator
from cicada.protocol.events import Source
from cicada.protocol.markers import Reference
from cicada.text.normal import normalised

NO_NUMBER = 0  # stands for the number of a marker that has none and names no passage

_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,5}$")
_UNSIGNED = re.compile(r"[\s_\-]+")


@dataclass(frozen=True)
class Resolved:
    """A marker's number, its source, and an objection, if any."""

    n: int
    source: Source | None
    objection: Objection | None = None


def resolve(reference: Reference, sources: Sequence[Source]) -> Resolved:
    """The source with the reference's number; without one, or if no source has it, the only one at its place.

    An objection says if the number's source is elsewhere: then the marker may mean either of two passages.
    """
    numbered = next((source for source in sources if source.n == reference.n), None)
    if numbered is not None:
        return Resolved(numbered.n, numbered, _misplaced(reference, numbered))
    there = [] if reference.file is None else [one for one in sources if _misplaced(reference, one) is None]
    if len(there) == 1:
        return Resolved(there[0].n, there[0])
    reason = f"there is no passage {'with this number' if reference.n is not None else f'from {reference.file}'}"
    if there:
        reason = f"{len(there)} passages are from {reference.file}: the marker does not tell which it means"
    return Resolved(reference.n or NO_NUMBER, None, Objection("no_such_passage", reason))


def _misplaced(reference: Reference, source: Source) -> Objection | None:
    """A place in the reference that contradicts the source's; an unknown place cannot."""
    locator = source.locator
    if reference.file is not None and not _is_of(reference.file, source):
        known = locator.source if isinstance(locator, DocumentLocator) else locator.label()
        return Objection("wrong_place", f"the passage is from {known}, not from {reference.file}")
    page = locator.page if isinstance(locator, DocumentLocator) else None
    if reference.pages and page is not None and not any(first <= page <= last for first, last in reference.pages):
        named = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in reference.pages)
        return Objection("wrong_place", f"the passage is on page {page}, not on page {named}")
    return None


def _is_of(file: str, source: Source) -> bool:
    named = _plain(file)
    locator = source.locator
    if isinstance(locator, DocumentLocator):
        path = locator.source.replace("\\", "/")
        known = {path, path.rpartition("/")[2], locator.title}
    else:
        known = set(locator.names().values())
    names = {_plain(name) for name in known if name}
    return named in names or _EXTENSION.sub("", named) in {_EXTENSION.sub("", name) for name in names}


def _plain(name: str) -> str:
    return _UNSIGNED.sub(" ", normalised(name)).strip()
