"""Which section a passage is of, and whom a declaration names in it."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.chunking.passages import passages_of
from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.corpus.declared.naming import DeclaredNames, _fits
from cicada.corpus.declared.sectioning import Sectioning, SectionRules
from cicada.corpus.documents import DocumentBlock
from cicada.corpus.readers.dispatch import read_document
from tests.support.passages import document_place


def rules(sections=None, headings=(), aliases=None):
    given = sections or {"people": {"headings": ["* > People"]}, "letters": {"sources": ["letters/*.md"]}}
    declaration = CollectionDeclaration(
        collection="notes",
        kind="notes",
        description="d",
        sections=[{"name": name, "description": "d", **patterns} for name, patterns in given.items()],
        intentions=[{"name": "any", "description": "d", "sections": [next(iter(given))]}],
        names={"headings": headings, "aliases": aliases or {}},
    )
    return SectionRules.of(declaration)


def section(path, *, source="a.md", title="A", **patterns):
    return Sectioning(rules(patterns or None), source, title).section(tuple(path))


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("People", ["People"], True),
        ("people", ["PEOPLE"], True),
        ("People", ["People", "Karr"], True),
        ("People", ["Session 1", "People"], False),
        ("* > People", ["Session 1", "People", "Karr"], True),
        ("People > K*", ["People", "Karr"], True),
        ("People > K*", ["People"], False),
        ("P?ople", ["People"], True),
        ("People", ["Peoples"], False),
        ("[People]", ["[People]"], True),
        ("[People]", ["P"], False),
        ("*", [], True),
        ("People", [], False),
    ],
)
def test_a_pattern_fits_a_path_of_headings_and_what_stands_below_it(pattern, path, fits):
    assert (section(path, s={"headings": [pattern]}) == "s") is fits


def test_the_documents_title_may_be_named_or_left_out():
    assert section(["A", "People"], s={"headings": ["People"]}) == "s"
    assert section(["A", "People"], s={"headings": ["A > People"]}) == "s"
    assert section(["A", "People"], s={"headings": ["A"]}) == "s"
    assert section(["B", "People"], s={"headings": ["People"]}) == "other"


def test_the_first_section_that_fits_by_headings_or_source_has_it():
    both = {"one": {"headings": ["X"], "sources": ["b*"]}, "two": {"headings": ["*"]}}
    assert section(["X"], **both) == "one"
    assert section(["Y"], source="b.md", **both) == "one"
    assert section(["Y"], **both) == "two"
    assert section(["Y"], one={"headings": ["X"]}) == "other"


def test_a_pattern_of_many_stars_is_no_trap():
    assert section(["a" * 300], s={"headings": ["*a" * 60 + "*b"]}) == "other"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Captain Karr spoke.", ["Ysolt Karr"]),
        ("ysolt karr’s ship", ["Ysolt Karr"]),
        ("the CAPTAIN-KARR affair", ["Ysolt Karr"]),
        ("Captain. Karr", []),
        ("Captains Karr", []),
        ("Sedge rowed; the sedge grew.", ["Brother Sedge"]),
        ("The sedge grew.", []),
        ("He was GRAPPLED, or grappling.", ["Gripped"]),
        ("the bell of warding rang", ["Bell of Warding"]),
        ("the Bell rang", ["Bell"]),
        ("Karr and Ysolt", []),
        ("ミラさんが来た", ["ミラ"]),
        ("St. Aldric's well", ["St. Aldric"]),
        ("", []),
    ],
)
def test_a_declared_name_is_found_as_whole_words(text, names):
    aliases = {
        "Ysolt Karr": ["Captain Karr"],
        "Brother Sedge": ["Sedge"],
        "Gripped": ["grappled", "grappling"],
        "Bell of Warding": [],
        "Bell": [],
        "ミラ": [],
        "St. Aldric": [],
    }
    assert list(DeclaredNames(aliases).of(text)) == names


def test_an_alias_of_two_is_filed_under_both():
    names = DeclaredNames({"Ysolt Karr": ["the captain"], "Orrin Vale": ["the captain"]})
    assert names.of("Ask the captain.") == ("Ysolt Karr", "Orrin Vale")
    assert names.filed_under("The Captain") == ("Ysolt Karr", "Orrin Vale")
    assert names.filed_under("Somebody") == ("Somebody",)


@pytest.mark.parametrize(
    ("written", "filed"),
    [
        ("Jean-Luc", "Jean-Luc d'Arc"),
        ("jean luc", "Jean-Luc d'Arc"),
        ("Jean\u2010Luc d\u2019Arc", "Jean-Luc d'Arc"),
        ("O\u2019Brien", "Miles O'Brien"),
        ("O Brien", "Miles O'Brien"),
        ("A.J", "Ada Jory"),
        ("Tollwife", "Ottoline Prawle"),
        ("a Tollwife", "Ottoline Prawle"),
        ("The Ottoline Prawle", "Ottoline Prawle"),
        ("Jean", "Jean"),
        ("Arc", "Arc"),
        ("AJ", "AJ"),
        ("Drift", "Drift"),
        ("The Drift", "The Drift"),
    ],
)
def test_a_name_is_filed_however_it_is_spelt(written, filed):
    aliases = {
        "Jean-Luc d'Arc": ["Jean-Luc"],
        "Miles O'Brien": ["O'Brien"],
        "Ada Jory": ["A.J."],
        "Ottoline Prawle": ["the Tollwife"],
        "The Drift": [],
        "Drift": [],
    }
    assert DeclaredNames(aliases).filed_under(written) == (filed,)


def test_a_heading_that_spells_a_declared_name_otherwise_is_no_other_entity():
    names = DeclaredNames({"Mary-Jane O'Neill": ["the Tollwife"]}, ["Mary Jane O\u2019Neill", "Tollwife", "Owl Post"])
    assert names.of("Tollwife! Mary Jane O'Neill took the owl post.") == ("Mary-Jane O'Neill", "Owl Post")
    assert names.filed_under("Owl-Post") == ("Owl Post",)


@pytest.mark.parametrize("headings", [["An Nguyen", "Nguyen"], ["Nguyen", "An Nguyen"]])
def test_headings_that_only_an_article_could_tell_apart_are_two_in_any_order(headings):
    names = DeclaredNames({}, headings)
    assert names.of("Nguyen came, then An Nguyen.") == ("Nguyen", "An Nguyen")
    assert [names.filed_under(one) for one in headings] == [(one,) for one in headings]


@pytest.mark.parametrize(
    ("declared", "written", "same"),
    [
        ("Nguyen", "An Nguyen", False),
        ("Les Paul", "Paul", False),
        ("Paso", "El Paso", False),
        ("Ferry", "The Ferry", True),
        ("the Ferry", "Ferry", True),
        ("the Ferry", "a ferry", True),
        ("Wirt", "der Wirt", True),
    ],
)
def test_an_article_makes_no_other_name_where_it_can_be_nothing_else(declared, written, same):
    assert DeclaredNames({declared: ()}).filed_under(written) == (declared if same else written,)
    names = DeclaredNames({declared: ()}, [written])
    assert set(names.of(f"{written} came.")) == {declared if same else written}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("राम", "रामायण", False),
        ("राम", "श्री राम ने कहा।", True),
        ("ก้อง", "สวัสดีก้องครับ", True),
        ("กอง", "สวัสดีก้องครับ", False),
        ("太郎", "山田太郎です", True),
        ("민수", "민수는 갔다", True),
        ("Zoe\u0308", "Ask Zoë.", True),
    ],
)
def test_names_are_whole_words_in_every_script_and_anywhere_where_words_have_no_spaces(name, text, found):
    assert DeclaredNames({name: ()}).of(text) == ((name,) if found else ())


def test_a_name_is_found_among_thousands_that_begin_alike_without_comparing_them():
    names = DeclaredNames({}, [f"The Item {number}" for number in range(3_000)])
    text = " ".join(f"The item {number} stands here." for number in range(0, 3_000, 3))
    with patch("cicada.corpus.declared.naming._fits", wraps=_fits) as compared:
        assert len(names.of(text)) == 1_000
    assert compared.call_count == 1_000


NOTES = """\
# Session 1

## What happened

The party crossed on the ferry. Captain Karr let them.

## People

### Captain Karr

Wants the bell.

### Old Tam

Rows the ferry, and fears Ysolt Karr.

## Places

### The Ferry

Leaks.
"""


def notes_passages(**options):
    sectioned = {
        "events": {"headings": ["* > What happened"]},
        "people": {"headings": ["* > People"]},
        "places": {"headings": ["* > Places"]},
    }
    found = read_document("session-1.md", NOTES.encode())
    declared = rules(sectioned, **options)
    sectioning = Sectioning(declared, found.source, found.title, found.blocks)
    return [one.passage for one in passages_of(found, "notes", ChunkOptions(), sectioning=sectioning)]


def test_small_neighbouring_sections_share_no_passage_across_declared_sections():
    found = notes_passages()
    assert [one.metadata["section"] for one in found] == ["events", "people", "places"]
    assert "Karr" in found[1].text
    assert "Old Tam" in found[1].text


def test_without_a_declaration_they_do_as_before():
    found = read_document("session-1.md", NOTES.encode())
    (only,) = passages_of(found, "notes", ChunkOptions())
    assert only.passage.metadata == {"doc_type": "markdown"}
    assert only.passage.entities == ()


def test_in_a_section_of_names_each_heading_stands_by_itself_and_names_its_passage():
    found = notes_passages(headings=["people"], aliases={"Ysolt Karr": ["Captain Karr"]})
    assert [(one.metadata["section"], one.locator.section, one.entities) for one in found] == [
        ("events", "What happened", ("Ysolt Karr",)),
        ("people", "People > Captain Karr", ("Ysolt Karr",)),
        ("people", "People > Old Tam", ("Old Tam", "Ysolt Karr")),
        ("places", "Places > The Ferry", ()),
    ]


def test_records_are_named_by_their_own_name_and_not_by_the_lists():
    text = b"combat:\n  guard: 15\n  attacks:\n    - {name: Gutterflame, damage: 1d8}\n    - {damage: 1d4}\n"
    found = read_document("sheet.yaml", text)
    sectioning = Sectioning(
        rules({"combat": {"headings": ["combat"]}}, headings=["combat"]), "sheet.yaml", "sheet", found.blocks
    )
    passages = [one.passage for one in passages_of(found, "notes", ChunkOptions(), sectioning=sectioning)]
    assert [(document_place(one).section, one.entities) for one in passages] == [
        ("combat", ()),
        ("combat > attacks > Gutterflame", ("Gutterflame",)),
        ("combat > attacks", ()),
    ]


def test_rows_of_a_table_are_named_by_their_column_of_names():
    blocks = [
        DocumentBlock("row", f"Name: {name}\nrole: x", fields=(("Name", name), ("role", "x")))
        for name in ("Heron", "Ibis")
    ]
    sectioning = Sectioning(rules({"boats": {"sources": ["*.csv"]}}, headings=["boats"]), "b.csv", "b", blocks)
    assert sectioning.entities((), "Name: Heron\nrole: x") == ("Heron",)
