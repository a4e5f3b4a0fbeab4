"""Who may read the index's collections: an object beside its versions, so that rolling one back changes no rights."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Protocol

from pydantic import Field, ValidationError

from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index.manifest import PREFIX, IndexModel
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed, StoredObject
from cicada.rights import AccessRules, CollectionName, ConfiguredAccess, GroupName, Readers

ACCESS_KEY = PREFIX + "access.json"
WRITE_ATTEMPTS = 10  # of one change, on top of others'


class _StoredRules(IndexModel):
    """What the collections' declarations say."""

    format_version: Literal[1] = 1
    readers: dict[CollectionName, Annotated[tuple[GroupName, ...], Field(strict=False)]] = Field(default_factory=dict)


class AccessRulesStore(Protocol):
    """Knows who may read which collections."""

    def rules(self) -> AccessRules:
        """The rules of this moment.

        Raises IndexUnavailable or IndexCorrupt if they cannot be read: then nothing may be searched.
        """


class StoredAccessRules:
    """:class:`AccessRulesStore` over the index's store and the deployment's settings. Thread-safe."""

    def __init__(self, store: ObjectStore, configured: ConfiguredAccess | None = None) -> None:
        """Reads nothing yet."""
        self._store = store
        self._configured = configured or ConfiguredAccess()
        self._lock = threading.Lock()
        self._held: tuple[StoredObject, Mapping[str, Readers]] | None = None

    def rules(self) -> AccessRules:
        """See the port. Makes one request to the store, which is consistent: a change is seen at once."""
        declared = self._declared()
        return AccessRules(self._configured.default, {**declared, **self._configured.collections})

    def _declared(self) -> Mapping[str, Readers]:
        with self._lock:
            held = self._held
        try:
            found = self._store.read_if_changed(ACCESS_KEY, held[0].etag) if held else self._store.read(ACCESS_KEY)
        except ObjectMissing:
            return {}
        if found is None:
            assert held is not None  # an unconditional read returns an object
            return held[1]
        readers = _parse(found.data).readers
        with self._lock:
            self._held = (found, readers)
        return readers


def declare_readers(store: ObjectStore, collection: str, readers: Readers | None) -> None:
    """Store who may read a collection; None for no rule. Errors as for :func:`change_readers`."""
    change_readers(store, collection, lambda _: readers)


def change_readers(store: ObjectStore, collection: str, change: Callable[[Readers | None], Readers | None]) -> None:
    """Change a collection's rule by compare-and-swap; nothing is written if it stays.

    Raises IndexCorrupt if the stored rules are damaged, or IndexUnavailable if the store does not respond or others
    keep changing them.
    """
    for _ in range(WRITE_ATTEMPTS):
        replaces: str | None = None
        stored = _StoredRules()
        try:
            found = store.read(ACCESS_KEY)
            replaces, stored = found.etag, _parse(found.data)
        except ObjectMissing:
            pass
        before = stored.readers.get(collection)
        after = change(before)
        if after == before:  # also after a write of ours whose response was lost
            return
        others = {name: readers for name, readers in stored.readers.items() if name != collection}
        changed = others if after is None else {**others, collection: after}
        data = _StoredRules(readers=dict(sorted(changed.items()))).model_dump_json(by_alias=True, indent=1).encode()
        try:
            store.write(ACCESS_KEY, data, replaces=replaces)
        except PreconditionFailed:
            continue
        return
    raise IndexUnavailable(f"{ACCESS_KEY} was changed {WRITE_ATTEMPTS} times meanwhile")


def _parse(data: bytes) -> _StoredRules:
    try:
        return _StoredRules.model_validate_json(data)
    except ValidationError as error:
        raise IndexCorrupt(f"{ACCESS_KEY}, who may read which collections, cannot be read: {error}") from error
