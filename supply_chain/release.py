"""``make release``: keep what later releases are tested against, of the release that is being cut.

It checks that nothing is uncommitted, that the release's number is new, and that the changelog has a section for it.
Then it writes the synthesised templates and an archive of the code, which are committed.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App

from cicada import __version__
from stacks.app import add_stacks
from stacks.context import parse
from supply_chain.archives import archive, numbers, pack
from supply_chain.locks import ROOT

TEMPLATES = ROOT / "tests" / "template" / "releases"
KEPT_SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "options": {
        "retrieval": {"engine": "s3vectors"},
        "knowledge": {"enabled": True},
        "agents": {"adapter": "classic"},
        "limits": {"answerConcurrency": 10, "tableReadUnits": 100, "tableWriteUnits": 200},
        "pointInTimeRecovery": True,
        "customerManagedKey": True,
        "alarmEmail": "operator@example.org",
        "tags": {"team": "reading"},
    },
    "harness": {"agents": {"adapter": "harness"}},
}
"""The settings that the kept templates are made with, in today's form."""


def releases() -> tuple[str, ...]:
    """The releases whose templates are kept, the oldest first."""
    return tuple(sorted((path.name for path in TEMPLATES.iterdir() if path.is_dir()), key=numbers))


def kept_templates(release: str, name: str) -> Any:
    """The templates of a release with some of :data:`KEPT_SETTINGS`, by the stacks' names."""
    return json.loads(gzip.decompress((TEMPLATES / release / f"{name}.json.gz").read_bytes()))


def problems(release: str, changelog: str, uncommitted: str, kept: tuple[str, ...]) -> Iterator[str]:
    """What must be done before a release is cut; ``uncommitted`` is what ``git status --porcelain`` prints."""
    if uncommitted.strip():
        yield "commit or remove what git status names"
    if kept and numbers(release) <= numbers(kept[-1]):
        yield f"set cicada.__version__ above {kept[-1]}, which is kept already; it is {release}"
    if not re.search(rf"^## {re.escape(release)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f"give CHANGELOG.md a section “## {release} (YYYY-MM-DD)”"
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## )", changelog, re.MULTILINE | re.DOTALL)
    if unreleased is None or unreleased[1].strip():
        yield "leave the section “## Unreleased” of CHANGELOG.md empty, above the release's"


def synthesised(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The templates with some settings, by the stacks' names."""
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = App(context=context | {"aws:cdk:disable-asset-staging": True}, outdir=folder)
        add_stacks(app, parse(dict(settings), source="make release"))
        app.synth()
        return {
            path.name.removesuffix(".template.json"): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(Path(folder).glob("*.template.json"))
        }


def keep_templates(release: str, folder: Path) -> None:
    """Write the templates of today's stacks below a folder."""
    (folder / release).mkdir(parents=True)
    for name, settings in KEPT_SETTINGS.items():
        text = json.dumps(synthesised(settings), separators=(",", ":"))
        (folder / release / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def main() -> int:
    """Check and write; exit status 1 where something must be done first."""
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = list(problems(__version__, changelog, status.stdout, releases()))
    for problem in found:
        print(f"release: {problem}", file=sys.stderr)
    if found:
        return 1
    pack("HEAD", archive(__version__))
    keep_templates(__version__, TEMPLATES)
    print(f"Kept {__version__}: commit tests/, and tag that commit v{__version__}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
