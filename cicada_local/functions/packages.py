"""Code and layer archives, unpacked for the processes; and which layers this machine can run.

A layer built for Lambda often holds extensions compiled for another processor or another Python. Such a layer is left
out, and its modules come from this Python's own packages instead: the project's requirements pin the layers' packages
for this machine too. A layer without foreign extensions is used as it is.

A layer that holds its ``requirements.txt`` and nothing else, as the stacks of the local cloud have them, names such
packages without bringing any. A function without either may import whatever is installed.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import io
import os
import re
import shutil
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cicada_local.functions.config import FunctionConfig, Layer

RUNTIME_MODULES = (
    "awslambdaric",
    "boto3",
    "botocore",
    "dateutil",
    "jmespath",
    "runtime_client",
    "s3transfer",
    "simplejson",
    "six",
    "snapshot_restore_py",
    "urllib3",
)
"""What Lambda's Python runtimes bring besides the standard library."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAGGED = (".cpython-", ".abi3", ".pypy")


@dataclass(frozen=True)
class Packages:
    """Where a function's modules are."""

    code: Path
    paths: Sequence[Path]
    """The code and the layers that are used, in search order."""
    installed: Sequence[str] | None
    """The top-level modules that may come from this Python's own packages; None for all of them."""


class PackageStore:
    """Unpacks each archive once, below one folder. Safe to call from several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._foreign: dict[str, bool] = {}

    def prepare(self, config: FunctionConfig) -> Packages:
        """Unpack what the function needs."""
        with self._lock:
            code = self._unpacked("code", config.code_sha, config.code_zip)
            paths, replaced = [code], list[str]()
            site_packages = _site_packages(config.runtime)
            for layer in reversed(config.layers):  # a later layer's files win
                if (requirements := requirements_of(layer)) is not None:
                    replaced += modules_required(requirements)
                elif self._is_foreign(layer):
                    replaced += modules_of(layer, config.runtime)
                else:
                    folder = self._unpacked("layer", layer.sha, layer.zip_bytes)
                    paths += [path for path in (folder / site_packages, folder / "python") if path.is_dir()]
        return Packages(code, paths, sorted({*RUNTIME_MODULES, *replaced}) if replaced else None)

    def _unpacked(self, kind: str, sha: str, archive: bytes) -> Path:
        # Lambda's digests are base64, which is no file name.
        folder = self._root / f"{kind}-{hashlib.sha256(sha.encode()).hexdigest()[:32]}"
        if not folder.exists():
            self._root.mkdir(parents=True, exist_ok=True)
            partial = Path(tempfile.mkdtemp(prefix="partial-", dir=self._root))
            try:
                with zipfile.ZipFile(io.BytesIO(archive)) as unzipped:
                    unzipped.extractall(partial)
                    _keep_executable(unzipped, partial)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        return folder

    def _is_foreign(self, layer: Layer) -> bool:
        if layer.sha not in self._foreign:
            self._foreign[layer.sha] = has_foreign_extensions(layer.zip_bytes)
        return self._foreign[layer.sha]


def has_foreign_extensions(archive: bytes) -> bool:
    """Whether an archive holds a compiled library that this Python cannot load."""
    with Path(os.path.realpath(sys.executable)).open("rb") as file:
        own = _machine(file.read(20))
    with zipfile.ZipFile(io.BytesIO(archive)) as unzipped:
        for name in unzipped.namelist():
            base = PurePosixPath(name).name
            if not base.endswith((".so", ".pyd", ".dylib")):
                continue
            if any(tag in base for tag in _TAGGED) and not base.endswith(_tagged_suffixes()):
                return True
            with unzipped.open(name) as library:
                if _machine(library.read(20)) != own:
                    return True
    return False


def modules_of(layer: Layer, runtime: str) -> list[str]:
    """The top-level modules that a layer would bring."""
    roots = (_site_packages(runtime), "python")
    found: set[str] = set()
    with zipfile.ZipFile(io.BytesIO(layer.zip_bytes)) as unzipped:
        for name in unzipped.namelist():
            for root in roots:
                if name.startswith(f"{root}/"):
                    found.add(name.removeprefix(f"{root}/").split("/")[0].split(".")[0])
                    break
    return sorted(name for name in found if name.isidentifier())


def requirements_of(layer: Layer) -> str | None:
    """The requirements of a layer that holds nothing else; None for every other."""
    with zipfile.ZipFile(io.BytesIO(layer.zip_bytes)) as unzipped:
        if unzipped.namelist() != ["requirements.txt"]:
            return None
        return unzipped.read("requirements.txt").decode("utf-8")


def modules_required(requirements: str) -> list[str]:
    """The top-level modules that the named distributions have installed for this Python.

    Raises:
        PackageNotFoundError: one is not installed.
    """
    named = (_DISTRIBUTION.match(line) for line in requirements.splitlines())
    found: set[str] = set()
    for name in filter(None, named):
        files = importlib.metadata.distribution(name[0]).files or []
        found.update(PurePosixPath(file).parts[0].split(".")[0] for file in files)
    return sorted(module for module in found if module.isidentifier())


def _keep_executable(archive: zipfile.ZipFile, folder: Path) -> None:
    """Give files back the right to be run, which ``extractall`` drops."""
    for entry in archive.infolist():
        if not entry.is_dir() and (entry.external_attr >> 16) & 0o111:
            path = folder / entry.filename
            path.chmod(path.stat().st_mode | 0o111)


def _site_packages(runtime: str) -> str:
    return f"python/lib/{runtime}/site-packages"


def _tagged_suffixes() -> tuple[str, ...]:
    return tuple(suffix for suffix in importlib.machinery.EXTENSION_SUFFIXES if suffix.count(".") > 1)


def _machine(head: bytes) -> tuple[bytes, bytes]:
    """The executable format, and for ELF the processor, from a file's first bytes."""
    return (head[:4], head[18:20]) if head[:4] == b"\x7fELF" else (head[:4], b"")
