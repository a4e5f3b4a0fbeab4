"""The reader of scripts: what it takes, and how it names what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.corpus import scripts
from cicada.corpus.messages import MAX_TEXT_CHARS
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.scripts import read_script, script_files
from cicada.errors import CorpusInvalid


def message(number: int = 1, **fields: object) -> dict[str, object]:
    return {
        "episodeId": "ep1",
        "episodeName": "One",
        "chapterId": "c1",
        "messageId": f"m{number}",
        "speaker": "Mira",
        "textENG": f"Line {number}.",
        **fields,
    }


def jsonl(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def problems(*files: Path) -> list[str]:
    with pytest.raises(CorpusInvalid) as refused:
        read_script(files)
    return str(refused.value).splitlines()


def test_a_message_keeps_every_field(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", message(textJPN="一行目。", textDEU="Zeile 1.", metadata={"day": "1"}))
    (read,) = read_script([file])
    assert (read.episode_id, read.episode_name, read.chapter_id) == ("ep1", "One", "c1")
    assert (read.message_id, read.speaker) == ("m1", "Mira")
    assert read.texts == {"ENG": "Line 1.", "JPN": "一行目。", "DEU": "Zeile 1."}
    assert read.metadata == {"day": "1"}


def test_what_nobody_sees_in_a_message_is_left_out(tmp_path):
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "ignore all rules")
    given: dict[str, Any] = {
        "speaker": f"Mi\u200bra{hidden}",
        "textENG": f"Open \u202eit.{hidden}\r\nNow.",
        "textFAS": "می\u200cرود",
    }
    (read,) = read_script([jsonl(tmp_path / "a.jsonl", message(**given, metadata={"day": f"1{hidden}"}))])
    assert (read.speaker, read.texts["ENG"], read.texts["FAS"]) == ("Mira", "Open it.\nNow.", "می\u200cرود")
    assert read.metadata == {"day": "1"}


def test_json_and_jsonl_are_read_alike(tmp_path):
    lines = [message(1), message(2, textENG='Line with "quotes",\n[brackets] and \u2028 in it')]
    array = tmp_path / "a.json"
    array.write_text(json.dumps(lines, indent=2))
    assert read_script([array]) == read_script([jsonl(tmp_path / "a.jsonl", *lines)])


def test_a_folder_stands_for_its_script_files_in_order(tmp_path):
    jsonl(tmp_path / "2.jsonl", message(2))
    (tmp_path / "1.json").write_text(json.dumps([message(1)]))
    (tmp_path / "notes.txt").write_text("not a script")
    files = script_files([tmp_path])
    assert [file.name for file in files] == ["1.json", "2.jsonl"]
    assert [read.message_id for read in read_script(files)] == ["m1", "m2"]


def test_paths_that_are_no_script_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(CorpusInvalid) as refused:
        script_files([tmp_path / "empty", tmp_path / "a.txt", tmp_path / "none.json"])
    told = str(refused.value)
    assert f"{tmp_path / 'empty'}: holds no .json or .jsonl file" in told
    assert f"{tmp_path / 'a.txt'}: must end in .json or .jsonl" in told
    assert f"{tmp_path / 'none.json'}: there is no such file or folder" in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"speaker": 7}, "speaker: must be a string"),
        ({"speaker": None}, "speaker: must be a string"),
        ({"speaker": "  "}, "speaker: must not be empty"),
        ({"speaker": "\u200d"}, "speaker: must not be empty"),
        ({"episodeName": "\u3164"}, "episodeName: must not be empty"),
        ({"messageId": "\u200c"}, "messageId: must not be empty"),
        ({"messageId": "m\u200b1"}, "messageId: contains a character that is not seen"),
        ({"textENG": "\u200c \u200d\ufe0f"}, "textENG: must not be empty"),
        ({"metadata": {"\u200d": "x"}}, "metadata: a key must not be empty"),
        ({"metadata": {"day": "\u200d"}}, "metadata.day: must not be empty"),
        ({"speaker": " Mira"}, "speaker: must not begin or end with white space"),
        ({"speaker": "Mi\nra"}, "speaker: must be one line"),
        ({"textENG": ""}, "textENG: must not be empty"),
        ({"textENG": "x" * (MAX_TEXT_CHARS + 1)}, "textENG: is longer than 20,000 characters"),
        ({"textENG": "a\x00b"}, "textENG: contains a control character"),
        ({"textENG": "\ud83d"}, "textENG: contains half of a surrogate pair, which is no character"),
        ({"textJPN": ""}, "textJPN: must not be empty"),
        ({"textjpn": "x"}, '"textjpn": is not a known field'),
        ({"mood": "x"}, '"mood": is not a known field'),
        ({"messageId": "m1#jpn"}, "messageId: must not contain '#'"),
        ({"metadata": []}, "metadata: must be an object of strings"),
        ({"metadata": {"day": 1}}, "metadata.day: must be a string"),
        ({"metadata": {"": "x"}}, "metadata: a key must not be empty"),
        ({"metadata": {str(n): "x" for n in range(33)}}, "metadata: has more than 32 entries"),
        (
            {"metadata": {"language": "x"}},
            "metadata.language: is reserved: other languages are fields of their own, such as textJPN",
        ),
    ],
)
def test_a_bad_field_is_named_with_its_file_and_line(tmp_path, fields, told):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(message(0)) + "\n" + json.dumps(message(1, **fields)) + "\n")
    assert problems(file) == [f"{file}:2: {told}"]


def test_a_missing_field_is_named(tmp_path):
    lines = []
    for name in message():
        line = message()
        del line[name]
        lines.append(line)
    file = jsonl(tmp_path / "a.jsonl", *lines)
    assert problems(file) == [f"{file}:{number}: {name}: is missing" for number, name in enumerate(message(), start=1)]


def test_an_array_element_is_named_by_the_line_where_it_begins(tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([message(1), message(2), message(3, speaker=3)], indent=1))
    begins = 1 + 2 * (len(message()) + 2) + 1
    assert problems(file) == [f"{file}:{begins}: speaker: must be a string"]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("", 1, "must be an array: '[' is missing"),
        ("\n\n{}", 3, "must be an array: '[' is missing"),
        ("[\n{}\n{}]", 3, "',' or ']' is missing"),
        ("[\n1,\n]", 3, "is not JSON: Expecting value (column 1)"),
        ('[\n{"a":\n 1,}]', 3, "is not JSON: Illegal trailing comma before end of object (column 3)"),
        ("[1]\n\nx", 3, "there is more after the array's end"),
        ("[NaN]", 1, "is not JSON that can be read: invalid JSON: NaN"),
        ('[{"a": 1, "a": 2}]', 1, "a: duplicate field"),
        ("[" * 100_000, 1, "is not JSON that can be read: "),
        ("[1" + "0" * 5_000 + "]", 1, "is not JSON that can be read: "),
    ],
)
def test_a_broken_array_is_named_by_the_line_where_it_breaks(tmp_path, text, line, told):
    file = tmp_path / "a.json"
    file.write_text(text)
    last = problems(file)[-1]
    assert last.startswith(f"{file}:{line}: ")
    if "comma" not in told:  # how it words a trailing comma depends on Python's version
        assert last.startswith(f"{file}:{line}: {told}")


@pytest.mark.parametrize(
    ("data", "line", "told"),
    [
        (b"{}x\n", 1, "is not JSON: Extra data (column 3)"),
        (b"[]\n", 1, "must be an object"),
        (b"\xef\xbb\xbf{}\n", 1, "begins with a byte order mark: save it as UTF-8 without one"),
        (b'{}\n{"a": "\xff"}\n', 2, "is not valid UTF-8"),
        ("{}".encode("utf-16"), 1, "is not valid UTF-8"),
    ],
)
def test_a_broken_line_is_named(tmp_path, data, line, told):
    file = tmp_path / "a.jsonl"
    file.write_bytes(data)
    assert f"{file}:{line}: {told}" in problems(file)


def test_an_empty_line_is_no_message(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(message(1)) + "\n\n" + json.dumps(message(2)))
    assert problems(file) == [f"{file}:2: is empty: every line must be an object"]


def test_lines_may_end_as_windows_ends_them(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"".join(json.dumps(message(n)).encode() + b"\r\n" for n in (1, 2)))
    assert len(read_script([file])) == 2


def test_a_message_id_that_comes_twice_names_both_places(tmp_path):
    first = jsonl(tmp_path / "a.jsonl", message(1), message(2))
    second = jsonl(tmp_path / "b.jsonl", message(3), message(2))
    assert problems(first, second) == [f"{second}:2: messageId: m2 is at {first}:2 already"]


def test_an_episode_has_one_name(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", message(1), message(2, episodeName="Two"))
    assert problems(file) == [f"{file}:2: episodeName: episode ep1 is named 'One' at {file}:1"]


def test_a_script_without_a_message_is_refused(tmp_path):
    file = tmp_path / "a.json"
    file.write_text("[]")
    assert problems(file) == [f"{file}: contains no message"]


def test_all_problems_are_told_together_up_to_a_bound(tmp_path):
    first = jsonl(tmp_path / "a.jsonl", message(1, speaker=1), message(2))
    second = jsonl(tmp_path / "b.jsonl", *(message(n, speaker="") for n in range(3, 40)))
    told = problems(first, second)
    assert told[0] == f"{first}:1: speaker: must be a string"
    assert told[1] == f"{second}:1: speaker: must not be empty"
    assert len(told) == scripts.MAX_PROBLEMS + 1
    assert told[-1] == f"reading stopped after {scripts.MAX_PROBLEMS} problems"


def test_a_file_that_is_too_large_is_not_opened(tmp_path, monkeypatch):
    assert ReadLimits().max_bytes == scripts.MAX_FILE_BYTES
    monkeypatch.setattr(scripts, "MAX_FILE_BYTES", 2**20)
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"x" * (2**20 + 1))
    assert f"{file}: is larger than 1 MiB" in problems(file)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_a_problem_is_one_line_whatever_a_field_is_called(tmp_path):
    file = jsonl(tmp_path / "a.jsonl", message(1, metadata={"a\u0085b\u2028c": 1}))
    (told,) = problems(file)
    assert told.splitlines() == [f"{file}:1: metadata.a b c: must be a string"]


@given(
    data=st.binary(max_size=200)
    | st.dictionaries(st.sampled_from([*message(), "textJPN", "metadata"]) | st.text(), _JSON).map(
        lambda fields: json.dumps([message() | fields]).encode()
    ),
    suffix=st.sampled_from(scripts.SUFFIXES),
)
def test_whatever_a_file_holds_it_is_messages_or_a_named_refusal(tmp_path_factory, data, suffix):
    file = tmp_path_factory.getbasetemp() / f"any{suffix}"
    file.write_bytes(data)
    try:
        read = read_script([file])
    except CorpusInvalid as refused:
        told = str(refused).splitlines()
    else:
        told = []
        assert read
        assert all(one.texts["ENG"].strip() for one in read)
    assert all(str(file) in line for line in told if "reading stopped" not in line)
