"""An object store in a folder: the index of an evaluation on a laptop."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cicada.errors import IndexUnavailable
from cicada.index.ports import ObjectMissing, PreconditionFailed, StoredEntry, StoredObject

LOCK = ".lock"
_WRITING = ".writing"


class FolderStore:
    """:class:`~cicada.index.ports.ObjectStore` over a folder: a file an object, for one machine.

    Writers lock the whole folder; a file is written beside its place and then moved there, so that nobody ever reads
    half of one.
    """

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is made if there is none."""
        self._folder = folder
        with _failures(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> StoredObject:  # noqa: D102 (the port's contract)
        data = self._data(key)
        return StoredObject(data, _etag(data))

    def read_if_changed(self, key: str, etag: str) -> StoredObject | None:  # noqa: D102
        found = self.read(key)
        return None if found.etag == etag else found

    def read_range(self, key: str, start: int, length: int) -> bytes:  # noqa: D102
        with _failures(key), self._path(key).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def write(self, key: str, data: bytes, *, replaces: str | None) -> str:  # noqa: D102
        path = self._path(key)
        with self._locked():
            try:
                present = _etag(self._data(key))
            except ObjectMissing:
                present = None
            if present != replaces:
                raise PreconditionFailed(key)
            with _failures(key):
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh = path.with_name(path.name + _WRITING)
                fresh.write_bytes(data)
                fresh.replace(path)
        return _etag(data)

    def entries(self, prefix: str) -> Iterator[StoredEntry]:  # noqa: D102
        with _failures(prefix):
            files = {path.relative_to(self._folder).as_posix(): path for path in self._folder.rglob("*")}
            for key in sorted(files, key=str.encode):
                if key.startswith(prefix) and key != LOCK and not key.endswith(_WRITING) and files[key].is_file():
                    found = files[key].stat()
                    yield StoredEntry(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def delete(self, key: str) -> None:  # noqa: D102
        with self._locked(), _failures(key):
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        relative = Path(key)
        if relative.is_absolute() or ".." in relative.parts:
            raise IndexUnavailable(f"{key} is no key of {self._folder}")
        return self._folder / relative

    def _data(self, key: str) -> bytes:
        with _failures(key):
            return self._path(key).read_bytes()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _failures(self._folder):
            lock = (self._folder / LOCK).open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


@contextmanager
def _failures(what: Path | str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ObjectMissing(str(what)) from error
    except OSError as error:
        raise IndexUnavailable(f"{what}: {error.strerror}") from error


def _etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
