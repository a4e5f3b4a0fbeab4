"""Bytecode of layers and functions. Lambda cannot write any: their folders are read-only there.

Without it each cold start compiles all that it imports. Python only uses bytecode of its own version: an interpreter of
that version makes it, where this machine has one.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stacks.builds import BUILD, built, sizes

PYTHON_VERSION = "3.13"
"""Lambda's Python: of the functions' runtime, of the wheels and of the bytecode."""

LAYER_FOLDER = "/opt"
FUNCTION_FOLDER = "/var/task"
"""Where Lambda unpacks layers and functions. Bytecode names its source there, not where it was built."""

NOT_CODE = ("**/__pycache__", "**/*.pyc", "**/.DS_Store")
"""What is left out of code assets, so that running the tests changes no asset."""

NONE_HERE = (
    f"no Python {PYTHON_VERSION} on this machine: layers and functions carry no bytecode, and importing them takes "
    f"about 1.8 times the CPU time. To install it: .venv/bin/uv python install {PYTHON_VERSION}"
)

_RECIPE = "1"
"""Part of a build's key: to be raised when the way of compiling changes."""

_PROBE = """
import sys
version = sys.version_info
print(sys.executable, "%d.%d.%d" % version[:3], sys.implementation.cache_tag, version.releaselevel, sep="\\n")
"""
_PROBE_TIMEOUT_S = 20.0


class Interpreter(NamedTuple):
    """A Python of Lambda's version."""

    path: str
    version: str
    """With its patch level: two of them may compile the same source to other, equally valid bytecode."""


class BytecodeFailed(Exception):
    """A source of a layer or a function does not compile; the message names it."""


@functools.cache
def interpreter() -> Interpreter | None:
    """A Python of Lambda's version on this machine, or None, which is said once on stderr."""
    found = next(filter(None, map(_probed, _candidates())), None)
    if found is None:
        print(NONE_HERE, file=sys.stderr, flush=True)
    return found


def source_key(source: Path, version: str) -> str:
    """What compiled code depends on, as 16 hexadecimal digits: its files, the interpreter and the recipe."""
    digest = hashlib.sha256("\n".join((_RECIPE, version)).encode())
    for path in sorted(path for path in source.rglob("*") if path.is_file() and _is_code(path)):
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(source).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def compiled(name: str, source: Path, seen_as: str, *, build: Path = BUILD) -> Path | None:
    """A copy of some code with its bytecode; None if this machine has no Python of Lambda's version.

    Args:
        name: what the copy is named, without a hyphen.
        source: the folder of the code.
        seen_as: where Lambda has it.
        build: where built folders are kept.

    Raises:
        BytecodeFailed: a source does not compile.
    """
    python = interpreter()
    if python is None:
        return None

    def make(folder: Path) -> None:
        ignore = shutil.ignore_patterns(*(pattern.removeprefix("**/") for pattern in NOT_CODE))
        shutil.copytree(source, folder, ignore=ignore, dirs_exist_ok=True)
        compile_folder(folder, seen_as, python)
        if seen_as == LAYER_FOLDER:
            print(sizes(name, folder), file=sys.stderr, flush=True)

    return built(name, source_key(source, python.version), make, build=build)


def compile_folder(folder: Path, seen_as: str, python: Interpreter) -> None:
    """Put bytecode beside each source of a folder.

    It is never checked against its source (PEP 552): archives give files another time, and nothing changes in Lambda.
    The same sources give the same bytes: one process compiles them in the order of their names, with a fixed hash seed.

    Args:
        folder: the folder, an absolute path.
        seen_as: where Lambda has it.
        python: compiles.

    Raises:
        BytecodeFailed: a source does not compile.
    """
    command = [python.path, "-S", "-s", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(folder), "-p", seen_as, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=_environment())
    if done.returncode != 0:
        last_words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise BytecodeFailed(f"Python {python.version} could not compile {folder.name}:\n{last_words}")


def _environment() -> dict[str, str]:
    """This process's, but for what changes how Python compiles or where it writes."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
        "PYTHONHASHSEED": "0",
        "PYENV_VERSION": PYTHON_VERSION,  # else pyenv's `python3.13` refuses in a folder that names another version
    }


def _candidates() -> Iterator[str]:
    yield sys.executable
    for folder in os.get_exec_path():
        if (path := shutil.which(f"python{PYTHON_VERSION}", path=folder)) is not None:
            yield path
    # What `uv python install` has put where uv keeps it.
    command = [
        sys.executable,
        "-m",
        "uv",
        "python",
        "find",
        "--managed-python",
        "--no-python-downloads",
        "--no-project",
    ]
    done = subprocess.run([*command, PYTHON_VERSION], check=False, capture_output=True, text=True)
    if done.returncode == 0:
        yield done.stdout.strip()


def _probed(path: str) -> Interpreter | None:
    """The interpreter at a path, if it is a release of Lambda's version."""
    command = [path, "-I", "-S", "-c", _PROBE]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=_environment(), timeout=_PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = done.stdout.splitlines()
    if done.returncode != 0 or told[2:] != [f"cpython-{PYTHON_VERSION.replace('.', '')}", "final"]:
        return None
    return Interpreter(*told[:2])


def _is_code(path: Path) -> bool:
    return path.suffix != ".pyc" and path.name != ".DS_Store"
