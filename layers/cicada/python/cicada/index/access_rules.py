"""Who may read the index's collections: an object beside its versions, so that rolling one back changes no rights."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field, ValidationError

from cicada.errors import IndexCorrupt, IndexUnavailable
from cicada.index.manifest import PREFIX, IndexModel
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.rights import AccessRules, CollectionName, ConfiguredAccess, GroupName, Readers

ACCESS_KEY = PREFIX + "access.json"
WRITE_ATTEMPTS = 10  # of one change, on top of others'
HELD_S = 30.0
"""How old rules may be that are used while the store refuses reads because of their rate: one object of S3 takes 5,500
reads a second."""
SPARING_S = 300.0
"""How long after such a refusal a process reads less often,"""
PAUSE_S = (15.0, 28.0)
"""with so much time between two reads,"""
SOON_S = (2.0, 4.0)
"""or between a refusal and the next read."""


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


@dataclass(frozen=True)
class _Held:
    etag: str | None
    """None where there was no object."""
    readers: Mapping[str, Readers]
    read_at_s: float

    def may_be_used(self, now_s: float) -> bool:
        return 0 <= now_s - self.read_at_s < HELD_S


class StoredAccessRules:
    """:class:`AccessRulesStore` over the index's store and the deployment's settings. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        configured: ConfiguredAccess | None = None,
        *,
        clock: Callable[[], float] = time.time,
        between: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Reads nothing yet. ``clock`` includes the time for which the function was frozen."""
        self._store = store
        self._configured = configured or ConfiguredAccess()
        self._clock = clock
        self._between = between
        self._lock = threading.Lock()
        self._held: _Held | None = None
        self._throttled_at_s = float("-inf")
        self._ask_at_s = float("-inf")

    def rules(self) -> AccessRules:
        """See the port. Makes one request to the store, which is consistent: a change is seen at once.

        While the store refuses reads because of their rate, rules of the last ``HELD_S`` are used.
        """
        declared = self._declared()
        return AccessRules(self._configured.default, {**declared, **self._configured.collections})

    def _declared(self) -> Mapping[str, Readers]:
        now_s = self._clock()
        with self._lock:
            held, ask_at_s = self._held, self._ask_at_s
        usable = held is not None and held.may_be_used(now_s)
        if held is not None and usable and 0 < ask_at_s - now_s < HELD_S:
            return held.readers
        try:
            read = self._read(held, now_s)
        except IndexUnavailable as error:
            if held is None or not usable or not error.throttled:
                raise
            with self._lock:
                self._throttled_at_s, self._ask_at_s = now_s, now_s + self._between(*SOON_S)
            return held.readers
        with self._lock:
            self._held = read
            spares = 0 <= now_s - self._throttled_at_s < SPARING_S
            self._ask_at_s = now_s + self._between(*PAUSE_S) if spares else now_s
        return read.readers

    def _read(self, held: _Held | None, now_s: float) -> _Held:
        known = None if held is None else held.etag
        try:
            found = self._store.read_if_changed(ACCESS_KEY, known) if known else self._store.read(ACCESS_KEY)
        except ObjectMissing:
            return _Held(None, {}, now_s)
        if found is None:
            assert held is not None  # an unconditional read returns an object
            return _Held(held.etag, held.readers, now_s)
        return _Held(found.etag, _parse(found.data).readers, now_s)


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
    raise IndexUnavailable(f"{ACCESS_KEY} was changed concurrently {WRITE_ATTEMPTS} times")


def _parse(data: bytes) -> _StoredRules:
    try:
        return _StoredRules.model_validate_json(data)
    except ValidationError as error:
        raise IndexCorrupt(f"cannot parse the access rules in {ACCESS_KEY}: {error}") from error
