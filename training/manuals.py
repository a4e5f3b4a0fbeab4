"""Gather the manuals that the questions of ``training/data/manuals`` are about: ``python -m training.manuals DIR``.

The documents are other people's text and are not part of this repository: ``documents.json`` names each with its source
and its digest, and they are read from what is installed on this machine. A Python package's description, a topic of
Python's own help and a file of ``/usr/share/doc`` are sources. ``DIR`` becomes a document set for ``cicada eval``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import pydoc_data.topics
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from cicada_evaluation.document_sets import DOCUMENTS, QUESTIONS
from training.models import DATA

FOLDER = DATA / "manuals"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the set, and say which documents this machine lacks or has in another version."""
    parser = argparse.ArgumentParser(prog="python -m training.manuals", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path, help="where the set is written")
    authors = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
    parser.add_argument("--authors", metavar="NAME,…", default=",".join(authors), help="whose (default: %(default)s)")
    asked = parser.parse_args(arguments)
    questions = "".join((FOLDER / f"{name}.jsonl").read_text(encoding="utf-8") for name in asked.authors.split(","))
    folder = asked.folder / DOCUMENTS
    folder.mkdir(parents=True, exist_ok=True)
    (asked.folder / QUESTIONS).write_text(questions, encoding="utf-8")
    listed = json.loads((FOLDER / "documents.json").read_text(encoding="utf-8"))
    missing, differing = [], []
    for name, told in listed.items():
        text = text_of(told["source"])
        if text is None:
            missing.append(name)
            continue
        data = text.encode()
        (folder / name).write_bytes(data)
        if hashlib.sha256(data).hexdigest() != told["sha256"]:
            differing.append(name)
    for name in missing:
        print(f"missing: {name} ({listed[name]['source']})")
    for name in differing:
        print(f"differs: {name} ({listed[name]['source']})")
    print(f"{len(listed) - len(missing)} of {len(listed)} documents gathered, {len(differing)} differ")
    return 0


def text_of(source: str) -> str | None:
    """The text of a source; None where this machine does not have it."""
    kind, _, name = source.partition(":")
    try:
        if kind == "python":
            return str(metadata.metadata(name.partition("==")[0])["Description"] or "") or None
        if kind == "pydoc":
            return str(pydoc_data.topics.topics[name])
        path = Path(source)
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return data.decode()
    except (metadata.PackageNotFoundError, KeyError, OSError, UnicodeDecodeError):
        return None


if __name__ == "__main__":
    sys.exit(main())
