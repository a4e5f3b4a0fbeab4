"""Third-party wheels for the functions, fetched by pip for Lambda's processor and system, without Docker."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "layers" / "vendor"
BUILD = ROOT / ".cicada" / "build"
"""Built layers, one folder for each state of a lock: what has not changed is not built again."""

PYTHON_VERSION = "3.13"
# Amazon Linux 2023, the runtime's system, has glibc 2.34. pip takes only the tags that it is told.
PLATFORMS = (*(f"manylinux_2_{minor}_aarch64" for minor in range(34, 16, -1)), "manylinux2014_aarch64")

# What no function reads at run time.
_PRUNED_FOLDERS = ("__pycache__", "tests", "bin", "include")
_PRUNED_SUFFIXES = (".pyi", ".pyx", ".pxd", ".a", ".h", ".c", ".cpp")
_PRUNED_RECORDS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")

_RECIPE = "2"
"""Part of a build's key: to be raised when the way of building changes."""


class WheelsUnavailable(Exception):
    """pip could not fetch the wheels; the message holds its last words."""


def build_key(lock: bytes) -> str:
    """What a layer's content depends on, as 16 hexadecimal digits: lock, target and recipe."""
    target = "\n".join((_RECIPE, PYTHON_VERSION, *PLATFORMS))
    return hashlib.sha256(target.encode() + b"\0" + lock).hexdigest()[:16]


def built_layer(name: str, *, vendor: Path = VENDOR, build: Path = BUILD) -> Path:
    """The folder of one vendor layer, ``<name>-<build key>``; built if it is not there yet.

    Args:
        name: a folder of ``vendor`` with a ``requirements.lock``.
        vendor: where the vendor layers are described.
        build: where built layers are kept.

    Raises:
        WheelsUnavailable: a wheel does not exist for the target or has another hash than the lock, or the package index
            cannot be reached.
    """
    lock = vendor / name / "requirements.lock"
    built = build / f"{name}-{build_key(lock.read_bytes())}"
    if built.is_dir():
        return built
    build.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"layer {name}: fetching wheels for arm64, Python {PYTHON_VERSION} …", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=build, prefix=f".{name}-") as scratch:
        fresh = Path(scratch) / "layer"
        _install(lock, fresh / "python")
        _prune(fresh / "python")
        try:
            fresh.rename(built)
        except OSError:
            if not built.is_dir():  # else another synthesis has just built the same
                raise
    for other in build.glob(f"{name}-*"):
        if other != built:
            shutil.rmtree(other, ignore_errors=True)
    print(
        f"layer {name}: {unzipped_bytes(built) / 1e6:.1f} MB in {time.monotonic() - began:.1f} s",
        file=sys.stderr,
        flush=True,
    )
    return built


def unzipped_bytes(folder: Path) -> int:
    """What the files of a folder weigh: what Lambda's limit of 250 MB counts."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _install(lock: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-compile", "--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON_VERSION]
    command += [word for platform in PLATFORMS for word in ("--platform", platform)]
    command += ["--target", str(target), "--no-deps", "--require-hashes", "--requirement", str(lock)]
    # A user-wide `pip install --user` default contradicts --target.
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "PIP_USER": "0"})
    if done.returncode != 0:
        last_words = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise WheelsUnavailable(f"pip could not fetch the wheels of {lock}:\n{last_words}")


def _prune(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):  # a folder's content before the folder
        if path.is_dir():
            if path.name in _PRUNED_FOLDERS:
                shutil.rmtree(path)
        elif path.suffix in _PRUNED_SUFFIXES or (path.parent.suffix == ".dist-info" and path.name in _PRUNED_RECORDS):
            path.unlink()
