"""Documents to load, by the thousand: our own sentences, in the formats that are read, no two documents alike."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

_PLACES = "jetty lighthouse boathouse causeway gauge-tower station kiosk workshop cellar archive chapel mill".split()
_THINGS = "lamp bell letter ledger winch pump radio valve rope mirror compass hatch lens battery gauge ladder".split()
_PEOPLE = "keeper pilot clerk watchman surveyor diver baker postmistress mechanic archivist".split()
_DOINGS = "checked repaired counted painted carried hid found lit closed oiled replaced measured".split()
_WHENS = ("at dawn", "before the tide", "in the third week", "during the storm", "on the last ferry", "after dark")
_WHYS = ("because the log asked for it", "without telling anybody", "for the second time", "as the rule says")
_SHARES = {"md": 30, "txt": 24, "csv": 14, "json": 12, "docx": 8, "pdf": 8, "jsonl": 4}
"""Per cent of each format."""


def write_shelf(folder: Path, documents: int, *, seed: int = 7) -> dict[str, int]:
    """Write documents of mixed formats, and return how many of each."""
    numbers = random.Random(seed)
    chosen = numbers.choices(list(_SHARES), weights=list(_SHARES.values()), k=documents)
    for number, kind in enumerate(chosen):
        path = folder / f"{number // 100:02}" / f"document-{number:05}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[kind](path, number, numbers)
    return {kind: chosen.count(kind) for kind in _SHARES}


def _sentence(numbers: random.Random) -> str:
    pick = numbers.choice
    order = f"{pick('ABCDEFGH')}{numbers.randrange(100, 999)}"
    return (
        f"The {pick(_PEOPLE)} {pick(_DOINGS)} the {pick(_THINGS)} of the {pick(_PLACES)} {pick(_WHENS)} "
        f"{pick(_WHYS)}, and wrote it down under {order}-{numbers.randrange(10_000)}."
    )


def _paragraph(numbers: random.Random) -> str:
    return " ".join(_sentence(numbers) for _ in range(numbers.randint(3, 9)))


def _markdown(path: Path, number: int, numbers: random.Random) -> None:
    parts = [f"# Report {number}"]
    for section in range(numbers.randint(2, 6)):
        parts += [f"## Part {section + 1} of {number}", *(_paragraph(numbers) for _ in range(numbers.randint(1, 4)))]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _text(path: Path, number: int, numbers: random.Random) -> None:
    parts = [f"Note {number}.", *(_paragraph(numbers) for _ in range(numbers.randint(2, 10)))]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _csv(path: Path, number: int, numbers: random.Random) -> None:
    rows = [
        f"{number}-{row},{numbers.choice(_PLACES)},{numbers.choice(_THINGS)},{numbers.randrange(500)}"
        for row in range(numbers.randint(5, 40))
    ]
    path.write_text("\n".join(["order,place,thing,amount", *rows]) + "\n", encoding="utf-8")


def _json(path: Path, number: int, numbers: random.Random) -> None:
    records = [
        {"order": f"{number}-{row}", "place": numbers.choice(_PLACES), "told": _sentence(numbers)}
        for row in range(numbers.randint(3, 15))
    ]
    path.write_text(json.dumps(records, indent=1), encoding="utf-8")


def _script(path: Path, number: int, numbers: random.Random) -> None:
    messages = (
        {
            "episodeId": f"ep{number}",
            "episodeName": f"Episode {number}",
            "chapterId": f"ep{number}-c1",
            "messageId": f"ep{number}-{line:03}",
            "speaker": numbers.choice(_PEOPLE).title(),
            "textENG": _sentence(numbers),
        }
        for line in range(numbers.randint(5, 20))
    )
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")


def _docx(path: Path, number: int, numbers: random.Random) -> None:
    import docx

    document = docx.Document()
    document.add_heading(f"Letter {number}", 1)
    for _ in range(numbers.randint(2, 6)):
        document.add_paragraph(_paragraph(numbers))
    document.save(str(path))


def _pdf(path: Path, number: int, numbers: random.Random) -> None:
    pages = [
        [f"Survey {number}, page {page + 1}", *(_sentence(numbers) for _ in range(numbers.randint(4, 12)))]
        for page in range(numbers.randint(1, 4))
    ]
    path.write_bytes(_pdf_of(pages))


def _pdf_of(pages: list[list[str]]) -> bytes:
    """A PDF of lines of text, uncompressed, in one of the fonts that every reader has."""
    kids = " ".join(f"{4 + 2 * page} 0 R" for page in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        drawn = "".join(f"({line}) Tj T*\n" for line in lines)
        stream = f"BT /F1 7 Tf 14 TL 20 800 Td\n{drawn}ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 842 842] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    written = "%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(written))
        written += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(written)}\n%%EOF\n"
    return f"{written}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode("ascii")


_WRITERS: Mapping[str, Callable[[Path, int, random.Random], None]] = {
    "md": _markdown,
    "txt": _text,
    "csv": _csv,
    "json": _json,
    "jsonl": _script,
    "docx": _docx,
    "pdf": _pdf,
}
