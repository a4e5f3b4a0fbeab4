"""Requirements, and the locks made from them.

Each ``requirements*.txt`` names packages with their versions. The ``.lock`` beside it adds every package that those
need in turn, and the SHA-256 of every file that the index has of that version. pip takes no other file.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGE_LOCK = ROOT / "package-lock.json"

SUPPORTED = tuple(
    {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system.lower(),
        "platform_system": system,
        "platform_machine": machine,
    }
    for python, (system, machine) in itertools.product(
        ("3.11", "3.12", "3.13", "3.14"), (("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64"))
    )
)
"""The machines that Cicada is developed on, as environments of markers."""

_NPM_NEEDS = ("dependencies", "devDependencies", "optionalDependencies")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>.+?))? \\$")
_HASH = re.compile(r"    --hash=sha256:(?P<digest>[0-9a-f]{64})(?: \\)?$")
_FIRST_REASON = re.compile(r"    # via(?: (?P<reason>.+))?$")
_REASON = re.compile(r"    #   (?P<reason>.+)$")


class LockDamaged(Exception):
    """A lock has a line that ``make lock`` does not write."""


@dataclass(frozen=True)
class Locked:
    """One version of one package."""

    name: str
    version: str
    marker: Marker | None
    """Where it is installed; None for everywhere."""
    hashes: tuple[str, ...]
    """The SHA-256 of each file of this version, in hexadecimal digits."""
    needed_by: tuple[str, ...]
    """The packages that need it; ``-r <file>`` for a file that names it."""

    def machines(self) -> int:
        """On how many of the supported machines it is installed."""
        return sum(self.marker is None or self.marker.evaluate(machine) for machine in SUPPORTED)


@dataclass(frozen=True)
class NpmPackage:
    """One package of ``package-lock.json``."""

    name: str
    version: str
    licence: str | None
    integrity: str
    needed_by: tuple[str, ...]
    """The packages that need it; an empty name for the project itself."""


def requirement_files(root: Path = ROOT) -> list[Path]:
    """Every file of requirements: the project's, then each layer's."""
    return [*sorted(root.glob("requirements*.txt")), *sorted((root / "layers" / "vendor").glob("*/requirements.txt"))]


def lock_of(requirements: Path) -> Path:
    """The lock of a file of requirements."""
    return requirements.with_suffix(".lock")


def layer_locks(root: Path = ROOT) -> dict[str, Path]:
    """The lock of each vendor layer by the layer's name."""
    return {path.parent.name: path for path in sorted((root / "layers" / "vendor").glob("*/requirements.lock"))}


def read_requirements(path: Path) -> list[Requirement]:
    """The requirements of a file and of the files that it includes."""
    found: list[Requirement] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            found += read_requirements(path.parent / text.removeprefix("-r ").strip())
        elif text:
            found.append(Requirement(text))
    return found


def read_lock(path: Path) -> list[Locked]:
    """The packages of a lock, by name.

    Raises:
        LockDamaged: a line is neither a pin, nor a hash or a reason below one.
    """
    found: list[Locked] = []
    pin: re.Match[str] | None = None
    hashes: list[str] = []
    reasons: list[str] = []

    def finish() -> None:
        if pin is not None:
            name, marker = canonicalize_name(pin["name"]), Marker(pin["marker"]) if pin["marker"] else None
            found.append(Locked(name, pin["version"], marker, tuple(sorted(hashes)), tuple(reasons)))
            hashes.clear()
            reasons.clear()

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if start := _PIN.match(line):
            finish()
            pin = start
        elif pin is not None and (digest := _HASH.match(line)):
            hashes.append(digest["digest"])
        elif pin is not None and (reason := _FIRST_REASON.match(line) or _REASON.match(line)):
            reasons += [reason["reason"]] if reason["reason"] else []
        elif line and not line.startswith("# "):
            raise LockDamaged(f"{path}, line {number}: unexpected: {line}")
    finish()
    return found


def all_locked(root: Path = ROOT) -> dict[tuple[str, str], dict[Path, Locked]]:
    """Every package that a supported machine or Lambda installs, by name and version, with the locks that have it."""
    found: dict[tuple[str, str], dict[Path, Locked]] = {}
    for path in map(lock_of, requirement_files(root)):
        for package in read_lock(path):
            if package.machines():
                found.setdefault((package.name, package.version), {})[path] = package
    return dict(sorted(found.items()))


def npm_packages(lock: Path = PACKAGE_LOCK) -> list[NpmPackage]:
    """The packages that npm installs."""
    entries = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    names = {path: path.rpartition("node_modules/")[2] for path in entries}
    needed_by: dict[str, set[str]] = {}
    for path, entry in entries.items():
        for kind in _NPM_NEEDS:
            for need in entry.get(kind, {}):
                needed_by.setdefault(need, set()).add(names[path])
    found = {
        (names[path], entry["version"]): NpmPackage(
            names[path],
            entry["version"],
            entry.get("license"),
            entry.get("integrity", ""),
            tuple(sorted(needed_by.get(names[path], ()))),
        )
        for path, entry in entries.items()
        if path
    }
    return [package for _, package in sorted(found.items())]
