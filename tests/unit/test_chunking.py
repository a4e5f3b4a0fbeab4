"""Documents become chunks: nothing is lost, nothing is too long, and what an edit does not touch stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.chunking.passages import chunks_of, passages_of
from cicada.corpus.documents import BlockKind, Document, DocumentBlock
from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import DocumentLocator
from cicada.text.sentences import sentences
from cicada.text.tokens import estimated_tokens

OPTIONS = ChunkOptions(chunk_size=100, overlap=30)
FERRY = "The ferry crosses the sound twice a day. It carries forty people. Its captain is seldom late."
OVEN = "Bread needs a hot oven. The dough rests for an hour. Salt goes in last of all."


def document(*blocks: DocumentBlock, source: str = "book.md", title: str = "A Book") -> Document:
    return Document(source, title, "markdown", "0" * 64, blocks)


def paragraph(text: str, *section: str, page: int | None = None) -> DocumentBlock:
    return DocumentBlock("paragraph", text, section, page)


def heading(*section: str) -> DocumentBlock:
    return DocumentBlock("heading", section[-1], section)


def fields(kind: str, *pairs: tuple[str, str], table: int | None = None) -> DocumentBlock:
    text = "\n".join(f"{name}: {value}" for name, value in pairs)
    return DocumentBlock("row" if kind == "row" else "record", text, (), None, pairs, table)


def cut(*blocks: DocumentBlock, options: ChunkOptions = OPTIONS) -> list[Indexable]:
    return passages_of(document(*blocks), "shelf", options)


def texts(items: Sequence[Indexable]) -> list[str]:
    return [item.passage.text for item in items]


def located(item: Indexable) -> DocumentLocator:
    assert isinstance(item.passage.locator, DocumentLocator)
    return item.passage.locator


def bare(text: str) -> str:
    return re.sub(r"\s+", "", text)


# --- what always holds ---

WORDS = st.lists(st.sampled_from("ferry lamp oil 14 rope tide 灯台 Sturm, a".split()), min_size=1, max_size=25)
SENTENCES = st.builds(
    lambda words, end: " ".join(words).capitalize() + end, WORDS, st.sampled_from([".", "?", "。", ""])
)
PARAGRAPHS = st.lists(SENTENCES, min_size=1, max_size=8).map(" ".join)
BLOCK_KINDS: list[BlockKind] = ["paragraph", "list_item", "quote", "code", "row", "record"]
SECTIONS = st.lists(st.sampled_from(["One", "Two", "Three"]), max_size=3).map(tuple)


@st.composite
def blocks(draw: st.DrawFn) -> list[DocumentBlock]:
    found: list[DocumentBlock] = []
    for _ in range(draw(st.integers(1, 7))):
        section, headed = draw(SECTIONS), draw(st.booleans())
        if section and headed:
            found.append(heading(*section))
        for kind in draw(st.lists(st.sampled_from(BLOCK_KINDS), min_size=0, max_size=4)):
            text = draw(PARAGRAPHS)
            if kind in ("row", "record"):
                pairs = (("id", str(draw(st.integers(1, 99)))), ("told", text))
                found.append(DocumentBlock(kind, f"id: {pairs[0][1]}\ntold: {text}", section, None, pairs, 1))
            else:
                found.append(DocumentBlock(kind, text, section))
    return found or [paragraph("Nothing.")]


@given(blocks(), st.sampled_from(["structure", "words"]), st.integers(50, 120), st.integers(0, 49))
@settings(max_examples=60)
def test_every_text_is_in_the_chunks_in_order_within_both_limits(
    found: list[DocumentBlock], boundaries: str, size: int, overlap: int
) -> None:
    options = ChunkOptions.model_validate({"chunk_size": size, "overlap": overlap, "boundaries": boundaries})
    chunks = list(chunks_of(document(*found), options))
    assert all(estimated_tokens(chunk.text) <= size for chunk in chunks)
    assert all(chunk.text.endswith(chunk.own) for chunk in chunks)
    own = bare("".join(chunk.own for chunk in chunks))
    at = 0
    for block in found:
        if block.kind != "heading":
            text = bare(block.text)
            assert own.find(text, at) >= 0
            at = own.find(text, at) + len(text)
        else:
            told = {part for chunk in chunks for part in chunk.section} | {chunk.own for chunk in chunks}
            assert any(block.text in part for part in told)
    for chunk in chunks:
        repeated = chunk.text.removesuffix(chunk.own)
        assert estimated_tokens(repeated.strip()) <= max(overlap, size / 8 + 1)


@given(blocks())
@settings(max_examples=25)
def test_the_same_document_gives_the_same_passages_each_with_its_own_id(found: list[DocumentBlock]) -> None:
    items = cut(*found)
    assert items == cut(*found)
    assert len({item.passage.id for item in items}) == len(items)


@given(st.lists(PARAGRAPHS, min_size=2, max_size=4, unique=True), st.integers(0, 4), PARAGRAPHS)
@settings(max_examples=25)
def test_a_section_that_is_put_in_changes_no_id_in_another(found: list[str], at: int, new: str) -> None:
    def book(*told: str) -> list[DocumentBlock]:
        return [block for text in told for block in (heading(text[:9]), paragraph(f"{text} {FERRY * 2}", text[:9]))]

    before = {item.passage.id for item in cut(*book(*found))}
    after = {item.passage.id for item in cut(*book(*found[:at], f"New {new}", *found[at:]))}
    assert before <= after


def test_a_sentence_that_is_put_into_a_long_section_changes_only_chunks_near_it() -> None:
    told = [
        f"Day {n} of the log. The wind blew {n * 7 % 13} knots. The lamp took {n * 5 % 11} pints." for n in range(200)
    ]
    before = cut(*map(paragraph, told))
    after = cut(*map(paragraph, [*told[:90], "A stranger came ashore at noon.", *told[90:]]))
    assert len(before) > 40
    changed = {item.passage.id for item in before} - {item.passage.id for item in after}
    assert 1 <= len(changed) <= 4


# --- sentences and sections ---


def test_chunks_end_where_sentences_do_and_repeat_whole_ones() -> None:
    told = " ".join(f"Sentence {n} tells how lamp {n} was lit at dusk." for n in range(30))
    whole = {sentence.strip() for sentence in sentences(told)}
    items = texts(cut(paragraph(told)))
    assert len(items) > 4
    assert all({sentence.strip() for sentence in sentences(text)} <= whole for text in items)
    told_by = [{sentence.strip() for sentence in sentences(text)} for text in items]
    assert any(before & after for before, after in pairwise(told_by))


def test_without_overlap_nothing_is_repeated() -> None:
    told = " ".join(f"Sentence {n} tells how lamp {n} was lit at dusk." for n in range(30))
    items = texts(cut(paragraph(told), options=ChunkOptions(chunk_size=100, overlap=0)))
    assert bare("".join(items)) == bare(told)


def test_a_heading_begins_a_chunk_and_is_told_as_its_section() -> None:
    items = cut(
        heading("Boats"), paragraph(FERRY, "Boats"), heading("Boats", "Bread"), paragraph(OVEN, "Boats", "Bread")
    )
    assert [located(item).section for item in items] == ["Boats", "Boats > Bread"]
    assert texts(items) == [FERRY, OVEN]


def test_a_first_heading_that_is_the_title_is_not_told_twice() -> None:
    items = cut(heading("A Book"), heading("A Book", "Boats"), paragraph(FERRY, "A Book", "Boats"))
    assert [located(item).label() for item in items] == ["A Book · Boats"]


def test_small_sections_below_one_heading_share_a_chunk_with_their_headings() -> None:
    found = [
        part
        for chapter in ("I", "II")
        for part in (
            heading(chapter),
            *(
                block
                for name in ("Oil", "Rope", "Wick")
                for block in (heading(chapter, name), paragraph(f"{name} is in {chapter}.", chapter, name))
            ),
        )
    ]
    items = cut(*found)
    assert [located(item).section for item in items] == ["I", "II"]
    assert texts(items)[0] == "Oil\n\nOil is in I.\n\nRope\n\nRope is in I.\n\nWick\n\nWick is in I."


def test_a_heading_with_nothing_below_it_is_kept() -> None:
    items = cut(heading("Boats"), paragraph(FERRY, "Boats"), heading("The end"))
    assert texts(items)[-1] == "The end"


def test_a_heading_whose_sections_share_a_chunk_with_those_of_another_is_kept() -> None:
    items = cut(
        heading("Contacts"),
        paragraph("Call 112.", "Contacts"),
        heading("Pump P-7"),
        heading("Pump P-7", "Limits"),
        paragraph("At most 4.5 bar.", "Pump P-7", "Limits"),
    )
    assert texts(items) == ["Contacts\n\nCall 112.\n\nPump P-7\n\nLimits\n\nAt most 4.5 bar."]


def test_a_page_is_where_the_chunk_begins_and_a_chunk_over_two_pages_says_so() -> None:
    items = cut(paragraph("It began here.", page=3), paragraph("It ended here.", page=4))
    assert [(located(item).page, item.passage.metadata.get("pages")) for item in items] == [(3, "3-4")]


@pytest.mark.parametrize("boundaries", ["words", "embedding"])
def test_a_chunk_ends_where_the_subject_changes(boundaries: str) -> None:
    ferry = " ".join(f"The ferry crosses the sound with {n} people." for n in range(7))
    bread = " ".join(f"The dough rests beside the oven for {n} minutes." for n in range(7))
    options = ChunkOptions.model_validate({"chunk_size": 150, "overlap": 0, "boundaries": boundaries})
    asked: list[str] = []

    def embed(found: Sequence[str]) -> list[list[float]]:
        asked.extend(found)
        return [[1.0, 0.0] if "ferry" in text else [0.0, 1.0] for text in found]

    items = passages_of(document(paragraph(f"{ferry} {bread}")), "shelf", options, embed=embed)
    assert texts(items) == [ferry, bread]
    assert len(asked) == (14 if boundaries == "embedding" else 0)


def test_boundaries_by_embedding_need_a_model() -> None:
    with pytest.raises(ValueError, match="embed"):
        cut(paragraph(FERRY * 5), options=ChunkOptions(chunk_size=50, overlap=0, boundaries="embedding"))


# --- tables, records, lists, code ---


def test_rows_are_never_cut_and_each_keeps_the_names_of_its_columns() -> None:
    rows = [fields("row", ("part", f"P-{n}"), ("place", "engine shed, shelf two"), table=1) for n in range(30)]
    items = texts(cut(*rows))
    assert len(items) > 3
    assert [row for text in items for row in text.split("\n\n")] == [row.text for row in rows]


def test_a_record_that_fits_is_a_passage() -> None:
    records = [fields("record", ("id", str(n)), ("told", "A lamp.")) for n in range(5)]
    assert texts(cut(*records)) == [record.text for record in records]


def test_a_record_that_does_not_fit_is_cut_between_fields_and_every_part_names_it() -> None:
    pairs = (("id", "R-7"), *((f"note {n}", "The valve stuck and was cleaned with oil and paper.") for n in range(20)))
    items = texts(cut(fields("record", *pairs)))
    assert len(items) > 2
    assert all(text.startswith("id: R-7\n") for text in items)
    assert [line for text in items for line in text.splitlines()[1:]] == [
        f"{name}: {value}" for name, value in pairs[1:]
    ]


def test_code_and_list_items_stay_whole_where_they_fit() -> None:
    code = "for lamp in lamps:\n    trim(lamp)\n\n    light(lamp)"
    step = "Close the cock. Drain the pump. Open the lid."
    found = [block for _ in range(6) for block in (DocumentBlock("list_item", step), DocumentBlock("code", code))]
    assert all(text.count("trim") == text.count("light") for text in texts(cut(*found)))
    assert all(text.count("Close") == text.count("lid") for text in texts(cut(*found)))


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    lines = [f"    trim(lamp[{n}], wick[{n}])" for n in range(60)]
    items = texts(cut(DocumentBlock("code", "\n".join(lines))))
    assert len(items) > 3
    assert [line.strip() for text in items for line in text.splitlines()] == [line.strip() for line in lines]


# --- identity ---


def test_equal_texts_have_ids_of_their_own_that_an_edit_does_not_change() -> None:
    def book(*named: str) -> list[DocumentBlock]:
        return [block for name in named for block in (heading(name), paragraph(FERRY, name))]

    ids = [item.passage.id for item in cut(*book("A", "B", "C"))]
    assert len(set(ids)) == 3
    assert [item.passage.id for item in cut(*book("A", "X", "B", "C"))][2:] == ids[1:]
    twice = cut(*[fields("record", ("told", "A lamp."))] * 3)
    assert len({item.passage.id for item in twice}) == 3


def test_the_same_text_in_another_source_is_another_passage() -> None:
    one = passages_of(document(paragraph(FERRY)), "shelf", OPTIONS)
    other = passages_of(document(paragraph(FERRY), source="copy.md"), "shelf", OPTIONS)
    assert one[0].passage.id != other[0].passage.id


def test_metadata_is_the_documents_and_the_callers_who_wins() -> None:
    found = Document("a.md", "A", "markdown", "0" * 64, (paragraph(FERRY),), metadata={"author": "x", "date": "1961"})
    items = passages_of(found, "shelf", OPTIONS, metadata={"author": "y", "workflow_id": "w"})
    assert items[0].passage.metadata == {"author": "y", "date": "1961", "workflow_id": "w", "doc_type": "markdown"}


def test_whose_a_document_is_it_does_not_say_itself() -> None:
    said = {"workflow_id": "theirs", "language": "jpn", "source": "b.md", "doc_type": "pdf", "pages": "9", "mood": "x"}
    found = Document("a.md", "A", "markdown", "0" * 64, (paragraph(FERRY),), metadata=said)
    assert passages_of(found, "shelf", OPTIONS)[0].passage.metadata == {"doc_type": "markdown"}


def test_a_chunk_larger_than_its_overlap_is_asked_for() -> None:
    with pytest.raises(ValueError, match="overlap"):
        ChunkOptions(chunk_size=100, overlap=100)


@pytest.mark.parametrize("sign", [".", "(", "。", "e.g. ", ".[1]", "\n ", ". (", "1. ", "x"])
def test_signs_without_end_are_cut_like_other_text(sign: str) -> None:
    told = sign * (3_000 // len(sign)) + "z"
    items = texts(cut(paragraph(told), options=ChunkOptions(chunk_size=100, overlap=0)))
    assert bare("".join(items)) == bare(told)
    assert all(estimated_tokens(text) <= 100 for text in items)


@pytest.mark.parametrize("overlap", [0, 30])
@pytest.mark.parametrize("line", ["a", "1", "ab c", "。"])
def test_many_short_lines_share_chunks(line: str, overlap: int) -> None:
    lines = [paragraph(line) for _ in range(1_000)]
    items = texts(cut(*lines, options=ChunkOptions(chunk_size=100, overlap=overlap)))
    sizes = [estimated_tokens(text) for text in items]
    assert max(sizes) <= 100
    assert min(sizes) >= 0.4 * 100 - 1
    assert bare("".join(items)).startswith(bare(line) * (1_000 if overlap == 0 else 1))


# --- what a passage is found by ---


def test_a_short_passage_is_embedded_as_one_text_below_its_headings() -> None:
    item = cut(heading("Boats"), paragraph(FERRY, "Boats"))[0]
    assert [(part.text, part.weight) for part in item.parts] == [(f"A Book > Boats\n\n{FERRY}", 1.0)]
    assert item.passage.text == FERRY


def test_a_long_passage_counts_again_by_windows_of_whole_sentences() -> None:
    told = " ".join(f"Sentence {n} tells how lamp {n} was lit at dusk." for n in range(30))
    whole, *windows = (
        part.text for part in passages_of(document(paragraph(told), title=""), "c", ChunkOptions())[0].parts
    )
    assert whole == told
    assert len(windows) > 1
    assert " ".join(windows) == told
    assert max(map(len, windows)) < 2 * min(map(len, windows))
