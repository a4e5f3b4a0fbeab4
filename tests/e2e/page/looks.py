"""How the page looks, as fingerprints that are kept in ``looks.json``.

A fingerprint holds the mean colour of each square of 16 by 16 pixels of what is seen. To take them anew after a change
that is meant, and then look at the pictures of the folder that is named:

    CICADA_LOOKS=/tmp/looks .venv/bin/python -m pytest tests/e2e/page/test_page_looks.py
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import time
import zlib
from pathlib import Path
from typing import TypedDict

import pytest

from tests.e2e.page.browser import Page

KEPT = Path(__file__).with_name("looks.json")
SQUARE_PX = 16
TOLERANCE = 4
"""How far the mean of a square may be off, of 255: below what one changed letter is."""
SETTLE_S = 10.0
"""How long what is seen may take to become what is kept: a bound for failures."""

_MEANS = """(async (encoded, size) => {
  const bytes = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const context = new OffscreenCanvas(image.width, image.height).getContext('2d');
  context.drawImage(image, 0, 0);
  const columns = Math.floor(image.width / size);
  const sums = new Float64Array(columns * Math.floor(image.height / size) * 3);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  for (let y = 0; y < Math.floor(image.height / size) * size; y += 1) {
    for (let x = 0; x < columns * size; x += 1) {
      const square = (Math.floor(y / size) * columns + Math.floor(x / size)) * 3;
      for (let part = 0; part < 3; part += 1) sums[square + part] += data[(y * image.width + x) * 4 + part];
    }
  }
  return [columns, ...sums.map((sum) => Math.round(sum / size / size))];
})"""


class Kept(TypedDict):
    """The content of ``looks.json``."""

    taken_with: str
    """The browser's major version, and a digest of what `fc-list` lists."""
    looks: dict[str, str]


def renewing() -> Path | None:
    """The folder for pictures, where fingerprints are to be taken anew."""
    return Path(folder) if (folder := os.environ.get("CICADA_LOOKS")) else None


def machine(page: Page) -> str:
    """What pixels depend on besides the page."""
    fonts = subprocess.run(["fc-list", ":", "family", "fontversion"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256("\n".join(sorted(fonts.splitlines())).encode()).hexdigest()[:12]
    return f"{page.version().partition('.')[0]}, fonts {digest}"


def kept(page: Page) -> Kept:
    """What is kept. Skips the test where this machine draws otherwise."""
    found: Kept = json.loads(KEPT.read_text(encoding="utf-8"))
    here = machine(page)
    if found["taken_with"] != here:
        pytest.skip(f"fingerprints were taken with {found['taken_with']}; here: {here}")
    return found


def keep(page: Page, looks: dict[str, str]) -> None:
    """Keep fingerprints, besides others that were taken on this machine."""
    before: Kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"taken_with": "", "looks": {}}
    here = machine(page)
    others = before["looks"] if before["taken_with"] == here else {}
    content = Kept(taken_with=here, looks=dict(sorted({**others, **looks}.items())))
    KEPT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def look(page: Page) -> tuple[int, bytes, bytes]:
    """The number of columns, the means of squares row by row, and the picture."""
    picture = page.screenshot()
    columns, *means = page.run(f"{_MEANS}({json.dumps(base64.b64encode(picture).decode())}, {SQUARE_PX})")
    return columns, bytes(means), picture


def settled(page: Page) -> tuple[str, bytes]:
    """The fingerprint, once it no longer changes, and the picture."""
    before = b""
    while True:
        _, means, picture = look(page)
        if means == before:
            return base64.b85encode(zlib.compress(means, 9)).decode(), picture
        before = means
        time.sleep(0.3)


def difference(page: Page, fingerprint: str, picture_to: Path) -> str:
    """Where what is seen differs from a fingerprint, once it should not; empty if it looks the same."""
    wanted = zlib.decompress(base64.b85decode(fingerprint))
    deadline = time.monotonic() + SETTLE_S
    while True:
        columns, means, picture = look(page)
        squares = _changed(wanted, means)
        if not squares:
            return ""
        if time.monotonic() > deadline:
            break
    picture_to.write_bytes(picture)
    left, right = min(one % columns for one in squares), max(one % columns for one in squares)
    top, bottom = min(squares) // columns, max(squares) // columns
    corner, end = (left * SQUARE_PX, top * SQUARE_PX), ((right + 1) * SQUARE_PX, (bottom + 1) * SQUARE_PX)
    return f"{len(squares)} squares from {corner} to {end} look different: {picture_to}"


def _changed(wanted: bytes, means: bytes) -> list[int]:
    if len(wanted) != len(means):
        return list(range(len(means) // 3))
    return sorted(
        {place // 3 for place, (a, b) in enumerate(zip(wanted, means, strict=True)) if abs(a - b) > TOLERANCE}
    )
