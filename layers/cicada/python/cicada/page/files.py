"""The page's files under the keys, and with the headers, that they are served with.

Assets lie in a folder named after their version, so that browsers may keep them for ever: a new version has other
names. The document is small, names the current version and is asked for again each time. Only its references are
rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ASSETS = "assets/"
INDEX = "index.html"
CONFIG = "config.json"

IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Files of other types, such as notes for people, are no part of the page."""

_VERSION = re.compile(r"[0-9a-f]{8,64}")


@dataclass(frozen=True)
class PageFile:
    """One object of the bucket."""

    key: str
    body: bytes
    content_type: str
    cache_control: str


def assets_of(version: str) -> str:
    """The prefix of a version's assets.

    Raises:
        ValueError: invalid version.
    """
    if not _VERSION.fullmatch(version):
        raise ValueError(f"invalid version of the page {version!r}: must be 8 to 64 hexadecimal digits")
    return f"{ASSETS}{version}/"


def page_files(folder: Path, version: str) -> Iterator[PageFile]:
    """The files to upload, in that order: all assets, then the document that names them.

    Args:
        folder: the bundled page.
        version: names its content.
    """
    prefix = assets_of(version)
    paths = [path for path in sorted(folder.iterdir()) if _is_served(path)]
    for path in paths:
        yield PageFile(prefix + path.name, path.read_bytes(), CONTENT_TYPES[path.suffix], IMMUTABLE)
    document = (folder / INDEX).read_text(encoding="utf-8")
    targets = {path.name: f"/{prefix}{path.name}" for path in paths} | {CONFIG: f"/{CONFIG}"}
    yield PageFile(INDEX, _pointed(document, targets).encode(), CONTENT_TYPES[".html"], REVALIDATED)


def config_file(document: str) -> PageFile:
    """The page's configuration, from its JSON."""
    return PageFile(CONFIG, document.encode(), CONTENT_TYPES[".json"], REVALIDATED)


def _is_served(path: Path) -> bool:
    return path.is_file() and path.suffix in CONTENT_TYPES and path.name not in (INDEX, CONFIG)


def _pointed(document: str, targets: dict[str, str]) -> str:
    """The document with absolute references: a host may show it for any path, not only at ``/``."""
    names = "|".join(map(re.escape, sorted(targets)))
    return re.sub(rf'(?<=")({names})(?=")', lambda found: targets[found[1]], document)
