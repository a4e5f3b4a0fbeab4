"""Bundles the web page with esbuild."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from stacks.builds import BUILD, ROOT, built

SOURCES = (ROOT / "web", ROOT / "packages")
"""What the page is made from."""

ESBUILD = ROOT / "node_modules" / ".bin" / "esbuild"
ENTRIES = ("main.js", "page.css")
"""Of ``web/``; everything else of the page is imported by them."""

COPIED = ("index.html", "icon.svg")

_TARGET = "es2022"
_SOURCE_SUFFIXES = (".css", ".html", ".js", ".json", ".svg")


def page_bundle(build: Path = BUILD) -> Path:
    """The folder ``web`` with the page's files; built if its sources have changed.

    Raises:
        RuntimeError: esbuild is missing, or does not accept the sources.
    """
    return built("page", page_key(), _bundle, build=build) / "web"


def page_key() -> str:
    """A digest of the sources and of what bundles them, in hexadecimal digits."""
    digest = hashlib.sha256((ROOT / "package-lock.json").read_bytes())
    digest.update(Path(__file__).read_bytes())
    for folder in SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.suffix in _SOURCE_SUFFIXES and "node_modules" not in path.parts:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _bundle(folder: Path) -> None:
    if not ESBUILD.exists():
        raise RuntimeError("esbuild is missing, which bundles the page: run `make setup`")
    web = folder / "web"
    web.mkdir()
    command = [
        str(ESBUILD),
        *ENTRIES,
        "--bundle",
        "--minify",
        "--format=esm",
        f"--target={_TARGET}",
        "--charset=utf8",
        "--log-level=warning",
        f"--outdir={web}",
    ]
    run = subprocess.run(command, cwd=ROOT / "web", capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"esbuild cannot bundle the page:\n{run.stderr}")
    for name in COPIED:
        shutil.copyfile(ROOT / "web" / name, web / name)
