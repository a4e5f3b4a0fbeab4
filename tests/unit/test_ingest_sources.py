"""Which files are documents, and what each is known by."""

from __future__ import annotations

import os

import pytest

from cicada.corpus.readers.sandbox import read_safely
from cicada.errors import CorpusInvalid
from cicada.ingest import sources
from cicada.ingest.sources import checked_metadata, source_files
from tests.support.ingest import shelf


def names(found):
    return [file.source for file in found.files]


def refused(found):
    return {one.source: one.code for one in found.refused}


def test_files_of_a_folder_are_known_by_their_paths_in_it(tmp_path):
    shelf(tmp_path, {"b.md": "x", "a/c.md": "xy", "a/b/d.txt": "x", "a.md": "x"})
    found = source_files([tmp_path])
    assert names(found) == ["a.md", "b.md", "a/c.md", "a/b/d.txt"]
    assert found.files[2].size == 2


def test_a_file_that_is_named_is_known_by_its_name(tmp_path):
    shelf(tmp_path, {"a/c.md": "x", "d.md": "x"})
    assert names(source_files([tmp_path / "d.md", tmp_path / "a" / "c.md"])) == ["d.md", "c.md"]


def test_hidden_files_are_left_out_unless_they_are_named(tmp_path):
    shelf(tmp_path, {".hidden": "x", ".git/config": "x", "a/.b.md": "x", "c.md": "x"})
    assert names(source_files([tmp_path])) == ["c.md"]
    assert names(source_files([tmp_path / ".hidden"])) == [".hidden"]


def test_links_are_followed_within_the_folder_and_refused_beyond_it(tmp_path):
    inside, outside = shelf(tmp_path / "in", {"a.md": "x"}), shelf(tmp_path / "out", {"secret.md": "x"})
    (inside / "again.md").symlink_to(inside / "a.md")
    (inside / "secret.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    (inside / "nowhere").symlink_to(tmp_path / "gone")
    (inside / "self").symlink_to(inside / "self")
    found = source_files([inside])
    assert names(found) == ["a.md", "again.md"]
    assert refused(found) == dict.fromkeys(["folder", "nowhere", "secret.md", "self"], "document_unsafe")


def test_a_link_is_read_as_the_file_that_it_leads_to(tmp_path):
    inside = shelf(tmp_path, {"a.md": "Text."})
    (inside / "again.md").symlink_to(inside / "a.md")
    for file in (*source_files([inside]).files, *source_files([inside / "again.md"]).files):
        assert not file.path.is_symlink()
        assert read_safely(file.source, file.path).blocks[0].text == "Text."


def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    shelf(tmp_path, {"a.md": "x", "b/c.md": "x"})
    scan = os.scandir

    def scandir(path):
        if os.fspath(path).endswith("b"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(CorpusInvalid, match=r"b: cannot list the folder: Permission denied"):
        source_files([tmp_path])


def test_what_is_no_file_is_refused_and_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    shelf_file = tmp_path / "a.md"
    shelf_file.write_text("x")
    assert refused(source_files([tmp_path])) == {"pipe": "document_unsafe"}


def test_a_name_that_cannot_be_shown_is_refused(tmp_path):
    (tmp_path / "line\nbreak.md").write_text("x")
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("x")
    found = source_files([tmp_path])
    assert list(refused(found).values()) == ["document_invalid", "document_invalid"]
    for one in found.refused:
        one.model_dump_json()


def test_a_name_is_the_same_however_its_accents_are_written(tmp_path):
    (tmp_path / "cafe\u0301.md").write_text("x")
    assert names(source_files([tmp_path])) == ["caf\u00e9.md"]


def test_a_path_that_is_too_long_is_refused(tmp_path):
    folder = tmp_path / ("d" * 200) / ("e" * 200)
    shelf(folder, {"f" * 150 + ".md": "x"})
    assert list(refused(source_files([tmp_path])).values()) == ["document_too_large"]


def test_two_documents_of_one_name_are_told_together(tmp_path):
    shelf(tmp_path, {"1/a.md": "x", "2/a.md": "x"})
    with pytest.raises(CorpusInvalid, match=r"would both be known as a\.md"):
        source_files([tmp_path / "1", tmp_path / "2"])
    assert names(source_files([tmp_path / "1", tmp_path / "1" / "a.md"])) == ["a.md"]


def test_paths_that_are_not_there_are_all_told(tmp_path):
    with pytest.raises(CorpusInvalid) as told:
        source_files([tmp_path / "x", tmp_path / "y"])
    assert str(told.value).count("there is no such file or folder") == 2


@pytest.mark.parametrize("name", ["a" * 5_000, "b" * 300, "c\0d", "file/below"])
def test_a_path_that_the_system_cannot_look_up_is_told_and_no_traceback(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CorpusInvalid) as told:
        source_files([tmp_path / name])
    assert len(str(told.value)) < 500


def test_an_empty_folder_holds_no_document(tmp_path):
    with pytest.raises(CorpusInvalid, match=": no document"):
        source_files([tmp_path])


def test_there_is_a_bound_on_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_DOCUMENTS", 2)
    shelf(tmp_path, {"a": "x", "b": "x", "c": "x"})
    with pytest.raises(CorpusInvalid, match="limit of 2 documents"):
        source_files([tmp_path])


@pytest.mark.parametrize(
    "metadata",
    [
        {"source": "x"},
        {"doc_type": "x"},
        {"language": "x"},
        {"": "x"},
        {"k": " "},
        {"k": "v" * 1_001},
        {"k" * 65: "v"},
        {"k": "a\nb"},
        {"k": "\udcff"},
        {f"k{n}": "v" for n in range(33)},
    ],
)
def test_metadata_that_cannot_be_kept_is_refused(metadata):
    with pytest.raises(CorpusInvalid):
        checked_metadata(metadata)


def test_metadata_is_taken_as_it_is():
    assert checked_metadata({"workflow_id": "w 1"}) == {"workflow_id": "w 1"}
