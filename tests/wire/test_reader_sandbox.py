"""Reading in a child process: what a document does to it stays there, and is told."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cicada.corpus.readers import sandbox as sandbox_module
from cicada.corpus.readers.confinement import OUT_OF_MEMORY
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.limits import MIB, ReadLimits
from cicada.corpus.readers.sandbox import ReaderUnavailable, Sandbox, read_safely, what_is_refused
from cicada.errors import (
    DocumentBroken,
    DocumentEncrypted,
    DocumentRefused,
    DocumentTooLarge,
    DocumentTooSlow,
    DocumentUnsafe,
    DocumentUnsupported,
    DocumentWithoutText,
)
from tests.support.made_documents import archive, docx, p, packed, pdf, pdf_file, shown

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds address space on Linux alone")
SHELF = Path(__file__).parents[2] / "samples" / "shelf"
SMALL = ReadLimits(memory_bytes=400 * MIB, cpu_s=20, wall_s=30)


@pytest.fixture(scope="module")
def odd() -> Iterator[Sandbox]:
    environ = {**os.environ, "AWS_SECRET_ACCESS_KEY": "canary"}
    with Sandbox(reader="tests.support.odd_readers:behave", environ=environ) as sandbox:
        yield sandbox


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "said.txt"


@pytest.mark.parametrize("path", sorted(SHELF.iterdir()), ids=lambda path: path.name)
def test_the_child_reads_what_this_process_would(path: Path) -> None:
    assert read_safely(path.name, path, title="T") == read_document(path.name, path.read_bytes(), title="T")


def test_threads_read_side_by_side(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(30)]
    for path in paths:
        path.write_text(f"Text of {path.name}.")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda path: read_safely(path.name, path), paths))
    assert [document.blocks[0].text for document in found] == [f"Text of {path.name}." for path in paths]


@pytest.mark.parametrize(
    ("what", "limits", "refusal", "told"),
    [
        ("crash", SMALL, DocumentBroken, "SIGSEGV"),
        ("hang up", SMALL, DocumentTooLarge, "killed"),
        ("wait", ReadLimits(wall_s=0.2), DocumentTooSlow, "wall_s"),
        ("spin", ReadLimits(cpu_s=0.2), DocumentTooSlow, "cpu_s"),
        ("ignore the time", ReadLimits(cpu_s=0.2), DocumentTooSlow, "cpu_s"),
        ("find itself too large", SMALL, DocumentTooLarge, "memory_bytes"),
        ("leave", SMALL, DocumentBroken, "no result"),
        ("fail", SMALL, DocumentBroken, "KeyError"),
        ("lack", SMALL, DocumentBroken, "ModuleNotFoundError"),
        ("write a file", SMALL, DocumentBroken, "FileNotFoundError|OSError|PermissionError"),
        pytest.param("eat", SMALL, DocumentTooLarge, "memory_bytes", marks=LINUX),
    ],
)
def test_whatever_happens_to_the_reader_becomes_a_refusal_and_the_next_document_is_read(
    odd: Sandbox, said: Path, what: str, limits: ReadLimits, refusal: type[DocumentRefused], told: str
) -> None:
    said.write_text(what)
    with pytest.raises(DocumentRefused, match=told) as found:
        odd.read("said.txt", said, limits)
    assert type(found.value) is refusal
    assert "secret" not in str(found.value)
    said.write_text("be good")
    assert odd.read("said.txt", said, SMALL).blocks


@LINUX
@pytest.mark.parametrize("victim", ["the fork", "the child"])
def test_a_process_that_is_killed_while_it_reads_becomes_a_refusal(odd: Sandbox, said: Path, victim: str) -> None:
    child = _child_of(odd, said)
    said.write_text("wait")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(odd.read, "said.txt", said, SMALL)
        while not (forks := _forks_of(child)):
            assert not reading.done()
        os.kill(forks[0] if victim == "the fork" else child, signal.SIGKILL)
        with pytest.raises(DocumentTooLarge, match="killed"):
            reading.result()
    said.write_text("be good")
    assert odd.read("said.txt", said, SMALL).blocks


def _child_of(sandbox: Sandbox, said: Path) -> int:
    said.write_text("be good")
    return int(sandbox.read("said.txt", said, SMALL).blocks[0].text.split()[1])


def _forks_of(pid: int) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            _state, parent, *_ = place.read_text().rpartition(")")[2].split()
            if int(parent) == pid:
                found.append(int(place.parent.name))
    return found


@LINUX
def test_a_reader_inherits_neither_credentials_nor_open_files(odd: Sandbox, said: Path) -> None:
    said.write_text("be good")
    found = odd.read("said.txt", said, SMALL).metadata
    assert "canary" not in found["environment"]
    assert "AWS" not in found["environment"]
    assert int(found["files"]) == 5  # the null device three times, the result's pipe, and the one that tells of the end


def test_each_document_has_a_process_of_its_own_and_all_have_one_parent(odd: Sandbox, said: Path) -> None:
    said.write_text("be good")
    first, second = (odd.read("said.txt", said, SMALL).blocks[0].text.split() for _ in range(2))
    assert first[0] != second[0]
    assert first[1] == second[1]


def test_a_child_that_was_killed_meanwhile_is_started_again(odd: Sandbox, said: Path) -> None:
    child = _child_of(odd, said)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert odd.read("said.txt", said, SMALL).blocks


def test_a_missing_library_is_no_fault_of_the_document(said: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said.write_text("%PDF-1.7")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not (Path(place) / "pypdf").is_dir()])
    with Sandbox(reader="tests.support.odd_readers:behave") as sandbox, pytest.raises(ReaderUnavailable):
        sandbox.read("said.pdf", said, SMALL)
    with Sandbox(reader="cicada.no_such_module:read") as sandbox, pytest.raises(ReaderUnavailable):
        sandbox.read("said.txt", said)


def test_a_process_whose_address_space_is_not_bounded_ends_itself_when_it_has_grown_too_large() -> None:
    program = """
from cicada.corpus.readers.confinement import watch_resident_size
watch_resident_size(100 * 2**20)
held = []
while True:
    held.append(bytearray(b"x") * 2**20)
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environ, timeout=60).returncode == OUT_OF_MEMORY


def test_what_a_reader_is_refused_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    sandbox_module._logged.cache_clear()
    with caplog.at_level(logging.INFO, logger="cicada"), Sandbox() as one, Sandbox() as other:
        assert one.refused() == other.refused() == what_is_refused()
    assert [getattr(record, "refused", None) for record in caplog.records] == [one.refused()]


def test_links_devices_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    plain, link, pipe = tmp_path / "a.txt", tmp_path / "link.txt", tmp_path / "pipe.txt"
    plain.write_text("text")
    link.symlink_to(plain)
    os.mkfifo(pipe)
    for path, refusal in (
        (link, DocumentUnsafe),
        (pipe, DocumentUnsupported),
        (tmp_path, DocumentUnsupported),
        (tmp_path / "none.txt", DocumentRefused),
    ):
        with pytest.raises(DocumentRefused) as found:
            read_safely("a.txt", path)
        assert type(found.value) is refusal


def test_a_file_that_is_too_large_is_not_even_opened_by_the_child(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(65 * MIB)
    with pytest.raises(DocumentTooLarge, match="max_bytes"):
        read_safely("huge.txt", path)


PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<<>>/XObject<</X 5 0 R>>>>/Contents 4 0 R>>"
ENTITIES = "<!DOCTYPE x [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]><x>&b;</x>"


def hostile() -> Iterator[tuple[str, str, bytes, ReadLimits, type[DocumentRefused]]]:
    """Name, source, bytes, limits, and what is expected."""
    catalogue = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[3 0 R]>>"]
    image = archive({"word/document.xml": "x", "word/media/image1.png": bytes(300 * MIB)})
    yield "zip bomb", "a.docx", image, SMALL, DocumentTooLarge
    yield "zip path", "a.docx", archive({"../a": "x"}), SMALL, DocumentUnsafe
    yield "xml entities", "a.docx", archive({"_rels/.rels": ENTITIES}), SMALL, DocumentUnsafe
    yield "xml depth", "a.docx", docx("<w:p>" * 9_000 + "</w:p>" * 9_000), SMALL, DocumentTooLarge
    large = docx(p("<w:r><w:t>x</w:t></w:r>" * 600_000))
    yield "xml size", "a.docx", large, SMALL, DocumentTooLarge
    bomb = pdf_file([*catalogue, PAGE, packed(bytes(100 * MIB)), b"null"])
    yield "pdf stream", "a.pdf", bomb, SMALL, DocumentTooLarge
    form = b"<</Length %d/Type/XObject/Subtype/Form/Resources<</XObject<</X 5 0 R>>>>>>\nstream\n%s\nendstream"
    calls = b"/X Do " * 50
    loop = pdf_file([*catalogue, PAGE, packed(b"/X Do"), form % (len(calls), calls)])
    yield "pdf forms in themselves", "a.pdf", loop, ReadLimits(cpu_s=5), DocumentRefused
    pages = b" ".join([b"3 0 R"] * 3_000)
    many = pdf_file([catalogue[0], b"<</Type/Pages/Count 3000/Kids[%s]>>" % pages, PAGE, packed(b""), b"null"])
    yield "pdf pages", "a.pdf", many, SMALL, DocumentTooLarge
    slow = pdf([shown([("x", 10, 700)] * 20_000)] * 30)
    yield "pdf time", "a.pdf", slow, ReadLimits(cpu_s=0.5), DocumentTooSlow
    yield "pdf scan", "a.pdf", pdf([b"q Q"]), SMALL, DocumentWithoutText
    locked = (
        b"/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -44/O<"
        + b"28" * 32
        + b">/U<"
        + b"11" * 32
        + b">>>/ID[<00><00>]"
    )
    yield "pdf password", "a.pdf", pdf([shown([("x", 10, 700)])], trailer=locked), SMALL, DocumentEncrypted
    yield "pdf cut", "a.pdf", pdf([shown([("x", 10, 700)])])[:200], SMALL, DocumentBroken
    yield "markdown quotes", "a.md", b">" * 200_000, ReadLimits(cpu_s=5), DocumentRefused
    yield "markdown brackets", "a.md", b"[" * 400_000, ReadLimits(cpu_s=1), DocumentRefused
    aliases = [b"a0: &a0 [%s]" % b", ".join([b"x"] * 10)]
    aliases += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)]
    yield "yaml aliases", "a.yaml", b"\n".join(aliases), SMALL, DocumentTooLarge
    yield "yaml depth", "a.yaml", b"[" * 5_000_000, SMALL, DocumentRefused
    yield "yaml size", "a.yaml", b"- {}\n" * 2_000_000, SMALL, DocumentTooLarge
    yield "json depth", "a.json", b"[" * 5_000_000, SMALL, DocumentTooLarge
    yield "json size", "a.json", b"[" + b"{}," * 10_000_000 + b"{}]", SMALL, DocumentTooLarge
    yield "csv rows", "a.csv", b"a,b\n" + b"1,2\n" * 300_000, ReadLimits(cpu_s=20), DocumentTooLarge
    yield "csv columns", "a.csv", b"x," * 5_000_000, SMALL, DocumentTooLarge
    yield "text of one word", "a.txt", b"x" * 25_000_000, SMALL, DocumentTooLarge
    yield "binary text", "a.txt", bytes(range(256)) * 1_000, SMALL, DocumentBroken
    yield "program", "a.exe", b"MZ\x90", SMALL, DocumentUnsupported
    yield "name", "../a.txt", b"x", SMALL, DocumentUnsafe


@LINUX
def test_a_shelf_of_hostile_files_costs_each_its_own_refusal(tmp_path: Path) -> None:
    path = tmp_path / "file"
    got: dict[str, str] = {}
    expected: dict[str, str] = {}
    for name, source, data, limits, refusal in hostile():
        path.write_bytes(data)
        with pytest.raises(refusal) as found:
            read_safely(source, path, limits)
        got[name] = type(found.value).__name__
        expected[name] = got[name] if refusal is DocumentRefused else refusal.__name__
        print(f"{name}: {found.value.code}: {found.value}")
    assert got == expected


def test_records_and_rows_cross_with_their_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"a": {"b": "c"}}]))
    assert read_safely("a.json", path).blocks[0].fields == (("a.b", "c"),)
