"""Whatever a file holds, its reader gives a document or a refusal, never anything else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.frames import MalformedResultError, read_result, written_document, written_refusal
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentEncrypted, DocumentRefused
from cicada.text.visible import visible
from tests.support.made_documents import docx, p, pdf, shown

LIMITS = ReadLimits(max_unpacked_bytes=2_000_000, max_blocks=5_000, max_text_chars=500_000)
FEW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
SAMPLES = {
    "a.pdf": pdf([shown([("Heading", 20, 700), ("A line of text.", 10, 650)])]),
    "a.docx": docx(p("Heading", "H1") + p("A line of text.")),
    "a.md": b"# Heading\n\n- item\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n<div>x</div>\n",
    "a.txt": "Überschrift\n===\n\n- item\n\fText.".encode("cp1252"),
    "a.csv": b'a;b;c\n1;"2;3";4\n',
    "a.yaml": b"name: A\nmap: &m {b: [1, ~], c: 'd'}\nlist:\n  - <<: *m\n    e: |\n      f\n---\n- g\n",
    "a.json": b'[{"a": {"b": [1, 2, {"c": null}]}}, {"d": true}]',
}


def attempt(source: str, data: bytes) -> Document | None:
    try:
        return read_document(source, data, limits=LIMITS)
    except DocumentRefused:
        return None


def check(found: Document | None) -> None:
    if found is None:
        return
    assert found.blocks or found.doc_type == "script"
    for block in found.blocks:
        assert block.text.strip()
        assert visible(block.text) == block.text
        assert all(name == visible(name) and value.strip() for name, value in block.fields)
    assert read_result(written_document(found)) == found


@pytest.mark.parametrize("source", SAMPLES)
@FEW
@given(data=st.binary(max_size=300))
def test_any_bytes(source: str, data: bytes) -> None:
    check(attempt(source, data))


@pytest.mark.parametrize("source", SAMPLES)
@FEW
@given(edits=st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=6)), min_size=1, max_size=6))
def test_a_damaged_file(source: str, edits: list[tuple[int, bytes]]) -> None:
    data = bytearray(SAMPLES[source])
    for at, new in edits:
        at %= len(data)
        data[at : at + len(new)] = new
    check(attempt(source, bytes(data)))


@pytest.mark.parametrize("source", ["a.md", "a.txt", "a.csv", "a.json"])
@FEW
@given(text=st.text(alphabet=st.sampled_from(list('#>-*|`[]{}",:;\n\t 1ab\f=\u200d\ufe0f\U000e0041')), max_size=200))
def test_any_text_of_marks(source: str, text: str) -> None:
    check(attempt(source, text.encode()))


def test_every_sample_is_read() -> None:
    for source, data in SAMPLES.items():
        assert attempt(source, data) is not None, source


def test_a_refusal_crosses_with_its_class_and_its_sentence() -> None:
    with pytest.raises(DocumentEncrypted, match="a password"):
        read_result(written_refusal(DocumentEncrypted("needs a\u202e password")))


GOOD = written_document(read_document("a.txt", b"One.\n\nTwo."))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        GOOD[:-1],
        b"[]",
        b'{"code": "no_such_code", "message": ""}',
        b'{"code": "model_error", "message": ""}',
        b"[" * 100_000,
        GOOD.replace(b'"paragraph"', b'"instruction"'),
        GOOD.replace(b'"Two."', b"7"),
        GOOD.replace(b'"Two."', b'" "'),
        GOOD.replace(b'"text"', b'"exe"'),
    ],
)
def test_what_is_no_result_is_told_apart(data: bytes) -> None:
    with pytest.raises(MalformedResultError):
        read_result(data)
