"""``make lock``: compile every lock from its requirements.

Versions that a lock already has are kept where the requirements allow them. Further options go to ``uv pip compile``:
``python -m supply_chain.lock --upgrade-package urllib3`` takes the newest urllib3, ``--upgrade`` the newest of
everything that is not pinned.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stacks.bytecode import PYTHON_VERSION
from supply_chain.locks import ROOT, lock_of, requirement_files

OLDEST_PYTHON = "3.11"
LAMBDA_PLATFORM = "aarch64-manylinux_2_34"
"""Amazon Linux 2023 on arm64: what the layers are built for."""

MAIN = ROOT / "requirements.txt"
_WITHOUT_DEPENDENCIES = "requirements-no-deps.txt"

_HEADER = "# Written by `make lock` from {}. To change a version, change it there (docs/supply-chain.md).\n"


def command(requirements: Path, *options: str) -> list[str]:
    """How uv compiles one lock. The project's own holds for every machine, a layer's for Lambda."""
    words = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-config"]
    words += ["--generate-hashes", "--output-file", str(lock_of(requirements).relative_to(ROOT))]
    if requirements.is_relative_to(ROOT / "layers"):
        words += ["--python-version", PYTHON_VERSION, "--python-platform", LAMBDA_PLATFORM]
    else:
        words += ["--universal", "--python-version", OLDEST_PYTHON]
    if requirements.name == _WITHOUT_DEPENDENCIES:
        words.append("--no-deps")
    if requirements != MAIN:
        words += ["--constraint", str(lock_of(MAIN).relative_to(ROOT))]
    return [*words, *options, str(requirements.relative_to(ROOT))]


def main(options: Sequence[str]) -> int:
    """Compile all locks, the main one first: the others take their versions from it."""
    for requirements in sorted(requirement_files(), key=lambda path: path != MAIN):
        shown = requirements.relative_to(ROOT)
        # uv does not read pip's settings: a private index or a folder of wheels of this machine cannot get into a lock.
        done = subprocess.run(command(requirements, *options), cwd=ROOT, check=False)
        if done.returncode != 0:
            print(f"{shown}: uv could not compile the lock", file=sys.stderr)
            return 1
        lock = lock_of(requirements)
        lock.write_text(_HEADER.format(shown.name) + lock.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"{lock.relative_to(ROOT)}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
