"""Third-party wheels for the functions, fetched by pip for Lambda's processor and system, without Docker."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from stacks.builds import BUILD, ROOT, built, sizes
from stacks.bytecode import LAYER_FOLDER, PYTHON_VERSION, Interpreter, compile_folder, interpreter

VENDOR = ROOT / "layers" / "vendor"

# Amazon Linux 2023, the runtime's system, has glibc 2.34. pip takes only the tags that it is told.
PLATFORMS = (*(f"manylinux_2_{minor}_aarch64" for minor in range(34, 16, -1)), "manylinux2014_aarch64")

# What no function reads at run time.
_PRUNED_FOLDERS = ("__pycache__", "tests", "bin", "include", "f2py", "__pyinstaller")
_PRUNED_SUFFIXES = (".pyi", ".pyx", ".pxd", ".a", ".h", ".c", ".cpp", ".js", ".css")
_PRUNED_RECORDS = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")

_RECIPE = "3"
"""Part of a build's key: to be raised when the way of building changes."""


class WheelsUnavailable(Exception):
    """pip could not fetch the wheels; the message holds its last words."""


def build_key(lock: bytes, python: Interpreter | None) -> str:
    """What a layer's content depends on, as 16 hexadecimal digits: lock, target, compiling interpreter and recipe."""
    compiler = "no bytecode" if python is None else python.version
    target = "\n".join((_RECIPE, compiler, PYTHON_VERSION, *PLATFORMS))
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
        BytecodeFailed: a source does not compile.
    """
    lock, python = vendor / name / "requirements.lock", interpreter()

    def make(folder: Path) -> None:
        began = time.monotonic()
        print(f"layer {name}: fetching wheels for arm64, Python {PYTHON_VERSION} …", file=sys.stderr, flush=True)
        _install(lock, folder / "python")
        _prune(folder / "python")
        if python is not None:
            compile_folder(folder, LAYER_FOLDER, python)
        print(f"{sizes(name, folder)}, in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)

    return built(name, build_key(lock.read_bytes(), python), make, build=build)


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
