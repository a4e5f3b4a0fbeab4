"""A release's code as a small archive: its library and its functions, to run beside those of the next."""

from __future__ import annotations

import io
import lzma
import subprocess
import tarfile
from pathlib import Path

from supply_chain.locks import ROOT

ARCHIVES = ROOT / "tests" / "releases"
CODE = ("layers/cicada/python/cicada", "lambdas")
"""What an archive holds of a checkout."""
SUFFIX = ".tar.xz"


def numbers(release: str) -> tuple[int, ...]:
    """A release's number, to be compared."""
    return tuple(map(int, release.split(".")))


def archive(release: str) -> Path:
    """Where the archive of a release is."""
    return ARCHIVES / f"{release}{SUFFIX}"


def archived() -> tuple[str, ...]:
    """The releases with an archive, the oldest first."""
    names = (path.name.removesuffix(SUFFIX) for path in ARCHIVES.glob(f"*{SUFFIX}"))
    return tuple(sorted(names, key=numbers))


def pack(commit: str, target: Path) -> None:
    """Write the archive of a commit. The same commit gives the same bytes."""
    told = subprocess.run(
        ["git", "archive", "--format=tar", commit, "--", *CODE], cwd=ROOT, check=True, capture_output=True
    ).stdout
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(told)) as whole, tarfile.open(fileobj=packed, mode="w") as plain:
        for member in sorted((each for each in whole if each.isfile()), key=lambda each: each.name):
            file = tarfile.TarInfo(member.name)
            file.size = member.size
            plain.addfile(file, whole.extractfile(member))
    target.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def unpack(release: str, folder: Path) -> None:
    """Write a release's code into a folder."""
    with tarfile.open(archive(release)) as packed:
        packed.extractall(folder, filter="data")
