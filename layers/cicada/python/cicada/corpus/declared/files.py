"""Which file declares a collection."""

from __future__ import annotations

DECLARATION = "collection.yaml"
"""The file at the top of a collection's folder that declares it: no document of the collection."""
_TAKEN_FOR_ONE = (DECLARATION, "collection.yml")


def misplaced(source: str) -> str | None:
    """Why a file is neither the declaration of the folder that it is known in nor a document; None where it is one."""
    folder, _, name = source.rpartition("/")
    if name.casefold() not in _TAKEN_FOR_ONE or source == DECLARATION:
        return None
    if folder:
        return f"declares the collection of its own folder: load {folder} by itself"
    return f"a collection is declared in a file called {DECLARATION}"
