"""Records below the paths that lead to them, in YAML and JSON; and what YAML can hide."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.documents import Document
from cicada.corpus.readers.detect import doc_type_of
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.limits import ReadLimits
from cicada.corpus.readers.sandbox import read_safely
from cicada.corpus.yaml_nodes import YamlInvalid, YamlTooLarge, read_nodes
from cicada.errors import DocumentBroken, DocumentRefused, DocumentTooLarge, DocumentWithoutText

SHEET = {
    "name": "Teasel",
    "level": 4,
    "combat": {
        "guard": 15,
        "attacks": [{"name": "Gutterflame", "damage": {"dice": "1d8", "kind": "fire"}}, {"damage": "1d4"}],
    },
    "abilities": {"strength": {"score": 16, "tags": ["a", "b"]}, "wits": {"score": 9}},
    "mount": {"name": "Minnow", "kind": "otter"},
}
DIVIDED = [
    ((), "name: Teasel\nlevel: 4"),
    (("combat",), "guard: 15"),
    (("combat", "attacks", "Gutterflame"), "name: Gutterflame\ndamage.dice: 1d8\ndamage.kind: fire"),
    (("combat", "attacks"), "damage: 1d4"),
    (("abilities", "strength"), "score: 16\ntags: a, b"),
    (("abilities", "wits"), "score: 9"),
    (("mount", "Minnow"), "name: Minnow\nkind: otter"),
]
AS_YAML = """\
name: Teasel
level: 4
combat:
  guard: 15
  attacks:
    - name: Gutterflame
      damage: {dice: 1d8, kind: fire}
    - damage: 1d4
abilities:
  strength:
    score: 16
    tags: [a, b]
  wits: {score: 9}
mount: {name: Minnow, kind: otter}
"""


def read(source: str, text: str, limits: ReadLimits | None = None) -> Document:
    return read_document(source, text.encode(), limits=limits)


def divided(found: Document) -> list[tuple[tuple[str, ...], str]]:
    return [(block.section, block.text) for block in found.blocks]


@pytest.mark.parametrize(("source", "text"), [("sheet.yaml", AS_YAML), ("sheet.json", json.dumps(SHEET))])
def test_a_sheet_is_divided_by_its_keys_in_yaml_and_json_alike(source: str, text: str) -> None:
    found = read(source, text)
    assert divided(found) == DIVIDED
    assert (found.title, {block.kind for block in found.blocks}) == ("Teasel", {"record"})


def test_the_elements_of_a_list_stand_below_their_names() -> None:
    rows = [{"name": "Heron", "size": "9 m"}, {"size": "3 m"}, "a word"]
    for source, text in (("a.json", json.dumps(rows)), ("a.yml", json.dumps(rows))):
        assert [block.section for block in read(source, text).blocks] == [("Heron",), (), ()]


def test_each_document_of_a_yaml_file_is_divided_by_itself() -> None:
    found = read("crew.yaml", "name: Mira\nboat: {length: 9}\n---\n- a\n")
    assert divided(found) == [(("Mira",), "name: Mira\nboat.length: 9"), ((), "values: a")]
    found = read("crew.yaml", "name: Mira\nboat: {length: 9}\n---\nrole: mate\n")
    assert divided(found) == [(("Mira",), "name: Mira"), (("Mira", "boat"), "length: 9"), ((), "role: mate")]


def test_what_lies_too_deep_for_a_path_is_part_of_its_record() -> None:
    text = "".join(f"{'  ' * level}k{level}:\n" for level in range(12)) + "  " * 12 + "end: x\n"
    (block,) = read("deep.yaml", text).blocks
    assert block.section == tuple(f"k{level}" for level in range(9))
    assert block.text == "k9.k10.k11.end: x"


def test_values_stay_as_they_are_written() -> None:
    text = "a: yes\nb: 010\nc: 2026-11-21\nd: ~\ne: 'null'\nf: !tag 1_000\n? g\n: |\n  two\n  lines\n"
    (block,) = read("a.yaml", text).blocks
    assert dict(block.fields) == {
        "a": "yes",
        "b": "010",
        "c": "2026-11-21",
        "e": "null",
        "f": "1_000",
        "g": "two lines",
    }


def test_aliases_and_merges_stand_for_what_they_name() -> None:
    text = "base: &b {x: 1, y: 2}\nnear: *b\nmade:\n  <<: [*b, {z: 3}]\n  y: own\n"
    assert divided(read("a.yaml", text)) == [
        (("base",), "x: 1\ny: 2"),
        (("near",), "x: 1\ny: 2"),
        (("made",), "y: own\nx: 1\nz: 3"),
    ]


def test_a_bomb_of_aliases_is_refused_before_it_is_opened() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentTooLarge, match="aliases"):
        read("bomb.yaml", "\n".join(lines))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2", "line 2: duplicate name a"),
        ("a: 1\nb: [", "line 3: is not valid YAML"),
        ("a: &x\n  b: *x", "line 2: the alias"),
        ("a: *x", "line 1: the alias"),
        ("? [a]\n: b", "line 1: a mapping's key must be text"),
        ("<<: [a]", "line 1: only mappings can be merged"),
        ("a:\n\t- b", "line 2: is not valid YAML"),
        (f"a: {'x' * 300}\x01", "is not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(DocumentBroken, match=told.replace("[", r"\[")):
        read("a.yaml", text)


@pytest.mark.parametrize("text", ["[" * 200, "- " * 200 + "a", "{a: " * 70 + "1" + "}" * 70])
def test_deep_yaml_is_refused(text: str) -> None:
    with pytest.raises(DocumentRefused, match=r"max_depth|is not valid YAML"):
        read("a.yaml", text)


@pytest.mark.parametrize("text", ["# nothing", "---\n---\n", "a:\n", "{}", "~"])
def test_yaml_that_says_nothing_has_no_text(text: str) -> None:
    with pytest.raises(DocumentWithoutText):
        read("a.yaml", text)


@pytest.mark.parametrize("source", ["a.yaml", "B.YML"])
def test_yaml_is_told_by_its_name(source: str) -> None:
    assert doc_type_of(source, b"a: 1") == "yaml"


def test_yaml_is_read_in_the_sandbox(tmp_path: object) -> None:
    path = tmp_path / "sheet.yaml"  # type: ignore[operator]
    path.write_text(AS_YAML)
    found = read_safely("sheet.yaml", path, title=None)
    assert (found.doc_type, divided(found)) == ("yaml", DIVIDED)


def test_nodes_know_their_lines() -> None:
    (root,) = read_nodes("a:\n  - b\n  - c:\n      d\n", max_depth=9, max_nodes=99)
    assert isinstance(root.value, dict)
    listed = root.value["a"]
    assert isinstance(listed.value, list)
    assert (root.line, listed.line, [node.line for node in listed.value]) == (1, 1, [2, 3])


@given(st.text(alphabet=st.sampled_from(list("ab:-?[]{}&*!|>'\"#,~< \n\t")), max_size=50))
@settings(max_examples=120)
def test_any_text_is_read_within_its_limits_or_refused(text: str) -> None:
    try:
        nodes = list(read_nodes(text, max_depth=5, max_nodes=20))
    except (YamlInvalid, YamlTooLarge):
        return
    assert sum(node.size for node in nodes) <= 20
