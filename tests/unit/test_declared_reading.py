"""A ``collection.yaml`` becomes a declaration, or every fault in it is told with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.declared.declaration import CollectionDeclaration, SectionDeclared
from cicada.corpus.declared.parsing import MAX_BYTES, MAX_PROBLEMS, read_declaration
from cicada.errors import CorpusInvalid

WHOLE = """\
# What the notes say of themselves.
collection: notes
kind: session_notes
description: >-
  What happened so far,
  session by session.
immutable: yes
sections:
  - name: people
    description: Who was met.
    headings: ["* > People", NPC?]
  - name: letters
    description: Letters that were found.
    sources: [letters/*]
intentions:
  - name: npc_history
    description: Who somebody is.
    sections: [people, other]
    examples: [Who is the ferryman?]
names:
  headings: [people]
  aliases:
    Ysolt Karr: [Captain Karr, 'the Grey Captain']
    Seven: [7, on]
    Brother Sedge:
"""


def told(text: str | bytes, **options: str) -> list[str]:
    with pytest.raises(CorpusInvalid) as refused:
        read_declaration(text.encode() if isinstance(text, str) else text, **options)
    return str(refused.value).split("\n")


def changed(*pairs: tuple[str, str]) -> str:
    text = WHOLE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_every_field_is_read() -> None:
    found = read_declaration(WHOLE.encode(), collection="notes")
    assert (found.collection, found.kind, found.immutable) == ("notes", "session_notes", True)
    assert found.description == "What happened so far, session by session."
    assert found.sections[0] == SectionDeclared(
        name="people", description="Who was met.", headings=("* > People", "NPC?")
    )
    assert found.sections[1].sources == ("letters/*",)
    assert found.intentions[0].sections == ("people", "other")
    assert found.intentions[0].examples == ("Who is the ferryman?",)
    assert found.names.headings == ("people",)


def test_values_are_the_text_that_was_written_and_a_name_may_stand_without_others() -> None:
    aliases = read_declaration(WHOLE.encode()).names.aliases
    assert aliases == {
        "Ysolt Karr": ("Captain Karr", "the Grey Captain"),
        "Seven": ("7", "on"),
        "Brother Sedge": (),
    }


def test_what_was_read_survives_being_written_as_json() -> None:
    found = read_declaration(WHOLE.encode())
    assert CollectionDeclaration.model_validate_json(found.model_dump_json(by_alias=True)) == found


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("immutable: yes", "immutable: perhaps", "line 7: immutable must be true or false"),
        ("kind: session_notes\n", "", "line 2: kind is missing"),
        ("kind: session_notes", "kind: Session Notes", "line 3: kind must be lower-case letters, digits and '_'"),
        ("    sources: [letters/*]", "    sources: letters/*", "line 14: sections[2].sources must be a list"),
        ("    sources:", "    source:", "line 14: sections[2].source is no field; there are name, description"),
        ("    sources: [letters/*]\n", "", "line 12: section letters has neither headings nor sources"),
        ("name: letters", "name: people", "line 12: section people is declared twice"),
        ("[people, other]", "[people,\n      peple]", "line 19: intention npc_history needs the section peple"),
        ("  headings: [people]", "  headings: [places]", "line 21: names.headings: the section places is not"),
        ("description: Who somebody is.", 'description: ""', "line 17: intentions[1].description is blank"),
        ("sections: [people, other]", "sections: []", "line 18: intentions[1].sections must have at least 1"),
        ("Brother Sedge:", "Seven: []", "line 25: duplicate name Seven"),
        ("Brother Sedge:", "Brother Sedge: {a: b}", "line 25: names.aliases.Brother Sedge must be a list"),
        ("collection: notes", "collection: &c notes", "line 2: anchors and aliases (& and *) are not supported here"),
        (
            "Seven: [7, on]",
            'Seven: [7, "\\e[31m"]',
            "line 24: names.aliases.Seven[2] contains invisible characters",
        ),
        ("Seven: [7, on]", '"Se\\0ven": [7]', "line 24: names.aliases.Seven contains invisible characters"),
        ("Who was met.", '"Who was \\u202emet."', "line 10: sections[1].description contains invisible characters"),
        ("[letters/*]", '["letters\\0/*"]', "line 14: sections[2].sources[1] contains invisible characters"),
        ("Seven: [7, on]", "Seven: ['!']", "line 24: names.aliases.Seven[1] has no letter or digit"),
        ("Seven: [7, on]", "'...': [on]", "line 24: names.aliases.... has no letter or digit"),
        ("Seven: [7, on]", "ysolt Karr: [on]", "line 24: ysolt Karr is declared twice"),
        ("Seven: [7, on]", "Brother-Sedge: []", "line 25: Brother Sedge is declared twice: Brother-Sedge is the same"),
        ("Seven: [7, on]", "Brother Sedge.: []", "line 25: Brother Sedge is declared twice: Brother Sedge. is the"),
        ("names:\n", "names:\n  - a\n", "line 22: is not valid YAML"),
        ("sections: [people, other]", "sections: [people, {other: 1}]", "line 18: intentions[1].sections[2] must be"),
    ],
)
def test_a_fault_is_told_with_its_line_and_field(old: str, new: str, line: str) -> None:
    (found,) = [one for one in told(changed((old, new))) if line.partition(":")[0] in one]
    assert found.startswith(f"collection.yaml, {line}")


def test_all_faults_are_told_at_once_in_the_order_of_their_lines() -> None:
    found = told(changed(("immutable: yes", "immutable: perhaps"), ("    sources:", "    source:"), ("kind:", "sort:")))
    assert [one.split(":")[0].split(", ")[1] for one in found] == ["line 2", "line 3", "line 7", "line 14"]


def test_a_flood_of_faults_is_cut() -> None:
    found = told(WHOLE + "".join(f"x{number}: 1\n" for number in range(50)))
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1] == "collection.yaml: and 30 more"


def test_a_declaration_of_another_collection_is_refused() -> None:
    assert told(WHOLE, name="shelf/collection.yaml", collection="shelf") == [
        "shelf/collection.yaml, line 2: collection is notes, but the collection is shelf"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1: must be a mapping with the fields collection, kind"),
        ("- a", "line 1: must be a mapping"),
        ("a: 1\n---\nb: 2", "line 3: contains a second document"),
        ("a:\n  " + "[" * 1_000, "line 2: is nested more than 8 deep"),
        ("a: *b", "line 1: anchors and aliases"),
        ("a: 1\n<<: {b: 2}", "line 2: merge keys (<<) are not supported here"),
        ("a:\n  - <<: [{b: 2}]", "line 2: merge keys (<<) are not supported here"),
        (b"a: 1\nb: \xff", "line 2: is not valid UTF-8"),
        (b"#" * (MAX_BYTES + 1), "has 262,145 bytes"),
        ("a:\n" + "- b\n" * 30_000, "line 19999: holds more than 20,000 values"),
        ("a: \u00e9\r\nb: \U0001f43e\n\nc: \x07", "line 4: is not valid YAML"),
        ("a: \u00e9\rb: c\0d", "line 2: is not valid YAML"),
    ],
)
def test_what_is_no_declaration_at_all_is_refused(text: str | bytes, reason: str) -> None:
    assert reason in told(text)[0]


@given(st.text(alphabet=st.sampled_from(list(":-[]{}&*!|>'\"#, \nabcollection")), max_size=60) | st.binary(max_size=60))
@settings(max_examples=60)
def test_any_bytes_are_a_declaration_or_refused_as_none(data: str | bytes) -> None:
    with pytest.raises(CorpusInvalid, match=r"^collection\.yaml"):
        read_declaration(data.encode() if isinstance(data, str) else data)
