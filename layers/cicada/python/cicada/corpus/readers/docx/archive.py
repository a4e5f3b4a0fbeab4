"""A ZIP archive that is not trusted."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import PurePosixPath

from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentBroken, DocumentEncrypted, DocumentTooLarge, DocumentUnsafe

_ENCRYPTED = 0x1
_TELLS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)
"""What :mod:`zipfile` raises for broken archives and for what it does not read."""


class Archive:
    """An archive in memory whose members are read one at a time. Nothing is ever written to a disk."""

    def __init__(self, data: bytes, limits: ReadLimits) -> None:
        """Look at its directory.

        Raises:
            DocumentBroken: it is no archive.
            DocumentEncrypted: a member is protected by a password.
            DocumentTooLarge: it has too many members, or they are too large when unpacked.
            DocumentUnsafe: a member's name leads out of the archive, or stands twice.
        """
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _TELLS as error:
            raise DocumentBroken(f"its archive cannot be opened: {type(error).__name__}") from None
        members = self._zip.infolist()
        if len(members) > limits.max_members:
            raise DocumentTooLarge(f"has more than {limits.max_members:,} members (max_members)")
        if any(_leads_out(member.orig_filename) for member in members):
            raise DocumentUnsafe("a member's name leads out of the archive")
        self.names = frozenset(member.filename for member in members)
        if len(self.names) < len(members):
            raise DocumentUnsafe("two members have one name")
        if any(member.flag_bits & _ENCRYPTED for member in members):
            raise DocumentEncrypted("its archive is protected by a password")
        self._max_bytes = limits.max_unpacked_bytes
        if sum(member.file_size for member in members) > self._max_bytes:  # no more is ever unpacked than is declared
            raise DocumentTooLarge(f"unpacks to more than {self._max_bytes:,} bytes (max_unpacked_bytes)")

    def read(self, name: str) -> bytes | None:
        """A member's bytes; None if there is no such member.

        Raises:
            DocumentBroken: it cannot be unpacked, or its checksum is wrong.
        """
        if name not in self.names:
            return None
        try:
            return self._zip.read(name)
        except _TELLS as error:
            raise DocumentBroken(f"a member of its archive cannot be unpacked: {type(error).__name__}") from None


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name.split("/")[0]
