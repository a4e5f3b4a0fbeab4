"""Built folders below ``.cicada/build``, each named by a key of what it was made from: what has not changed is kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".cicada" / "build"


def built(name: str, key: str, make: Callable[[Path], None], *, build: Path = BUILD) -> Path:
    """The folder ``<name>-<key>`` of ``build``; made if it is not there yet, in place of those of other keys.

    Args:
        name: what is built, without a hyphen.
        key: what its content depends on, in hexadecimal digits.
        make: fills an empty folder. What it raises leaves nothing behind.
        build: where built folders are kept.
    """
    done = build / f"{name}-{key}"
    if done.is_dir():
        return done
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build, prefix=f".{name}-") as scratch:
        fresh = Path(scratch) / "fresh"
        fresh.mkdir()
        make(fresh)
        try:
            fresh.rename(done)
        except OSError:
            if not done.is_dir():  # else another synthesis has just built the same
                raise
    for other in build.glob(f"{name}-*"):
        if other != done:
            shutil.rmtree(other, ignore_errors=True)
    return done


def unzipped_bytes(folder: Path, pattern: str = "*") -> int:
    """The size of a folder's files, or of those whose names match: what Lambda's limit of 250 MB counts."""
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())


def sizes(layer: str, folder: Path) -> str:
    """A layer's size and that of its bytecode, to be printed."""
    megabytes, of_bytecode = (unzipped_bytes(folder, pattern) / 1e6 for pattern in ("*", "*.pyc"))
    return f"layer {layer}: {megabytes:.1f} MB, {of_bytecode:.1f} of them bytecode"
