"""What the web page costs its reader: time until a question can be typed on a slow processor, bytes, requests.

The bundled page is served from this machine to a Chromium whose processor is slowed down; each run is a first visit.
*Interactive* is the time from the navigation until the question box takes input and the page's scripts have run. Bytes
are those of the files as they are served, compressed with gzip at level 6; CloudFront's Brotli is a little smaller.

    .venv/bin/python -m benchmarks.page
"""

from __future__ import annotations

import argparse
import gzip
import statistics
from pathlib import Path

from stacks.page_bundle import page_bundle
from tests.e2e.page.browser import Browser
from tests.e2e.page.server import ScriptedServer

_LEVEL = 6
_WATCH = """(() => {
  const look = () => {
    const box = document.querySelector('#question');
    if (box && !box.disabled) window.interactiveMs = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})()"""


def transfer_bytes(folder: Path) -> dict[str, int]:
    """The compressed size of each file that a first visit loads."""
    return {path.name: len(gzip.compress(path.read_bytes(), _LEVEL, mtime=0)) for path in sorted(folder.iterdir())}


def _visit(browser: Browser, url: str, slower: float) -> tuple[float, int]:
    with browser.page("data:text/html,") as page:
        page.throttle(slower)
        page.at_start(_WATCH)
        page.go(url)
        interactive_ms: float = page.wait("window.interactiveMs")
        page.wait("document.querySelector('#connection').dataset.state === 'open'")
        requests: int = page.run("performance.getEntriesByType('resource').length + 1")
        return interactive_ms, requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="first visits (default: 9)")
    parser.add_argument("--slower", type=float, default=4.0, help="how many times slower the processor is (default: 4)")
    arguments = parser.parse_args()
    sizes = transfer_bytes(page_bundle())
    with ScriptedServer({}) as server, Browser() as browser:
        visits = [_visit(browser, server.page_url, arguments.slower) for _ in range(arguments.runs)]
    times = [interactive_ms for interactive_ms, _ in visits]
    print("| file | bytes, compressed |\n| --- | ---: |")
    for name, size in sizes.items():
        print(f"| {name} | {size:,} |")
    print(f"| all | {sum(sizes.values()):,} |\n")
    print(f"requests: {max(requests for _, requests in visits)}")
    print(
        f"interactive, processor {arguments.slower:g} times slower: median {statistics.median(times):.0f} ms,"
        f" {min(times):.0f} to {max(times):.0f} ms of {len(times)} visits"
    )


if __name__ == "__main__":
    main()
