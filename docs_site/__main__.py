"""``make docs``: build the documentation's site with MkDocs, in an environment of its own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".cicada" / "docs-environment"
LOCK = ROOT / "requirements-docs.lock"


def main() -> int:
    """Install MkDocs where it is missing, and build ``mkdocs.yml`` strictly: a warning is a failure."""
    install()
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "mkdocs", "build", "--strict", *sys.argv[1:]]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode


def install() -> None:
    """Make the environment from the lock, unless it is there already."""
    stamp = ENVIRONMENT / "lock.sha256"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--only-binary=:all:", "--require-hashes", "-r", str(LOCK)], cwd=ROOT, check=True)
    stamp.write_text(wanted)


if __name__ == "__main__":
    sys.exit(main())
