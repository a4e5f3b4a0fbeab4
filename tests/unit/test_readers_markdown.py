"""Reading Markdown: its structure is kept, its marks are not."""

from __future__ import annotations

import pytest

from cicada.corpus.documents import Document
from cicada.corpus.readers.dispatch import read_document
from cicada.corpus.readers.limits import ReadLimits
from cicada.errors import DocumentTooLarge, DocumentWithoutText


def read(text: str, limits: ReadLimits | None = None) -> Document:
    return read_document("guide.md", text.encode(), limits=limits)


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in read(text).blocks]


def test_headings_give_sections() -> None:
    found = read("# Guide\nIntro.\n## Oil\nDaily.\n### Where\nHere.\n## Water\nNever.\n")
    assert [(block.kind, block.section) for block in found.blocks] == [
        ("heading", ("Guide",)),
        ("paragraph", ("Guide",)),
        ("heading", ("Guide", "Oil")),
        ("paragraph", ("Guide", "Oil")),
        ("heading", ("Guide", "Oil", "Where")),
        ("paragraph", ("Guide", "Oil", "Where")),
        ("heading", ("Guide", "Water")),
        ("paragraph", ("Guide", "Water")),
    ]
    assert found.title == "Guide"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*A* **b** `c` ~~d~~\nnext", [("paragraph", "A b c d next")]),
        ("hard  \nbreak", [("paragraph", "hard\nbreak")]),
        (
            "- a\n- b\n  - c\n\n  more\n",
            [("list_item", "- a"), ("list_item", "- b"), ("list_item", "  - c"), ("list_item", "  more")],
        ),
        ("3. a\n4. b\n", [("list_item", "3. a"), ("list_item", "4. b")]),
        ("> said\n> she\n", [("quote", "said she")]),
        ("```sh\nmake  up\n\n\tdone\n```\n", [("code", "make  up\n\n\tdone")]),
        ("    indented\n", [("code", "indented")]),
        ("![a map](map.png)", [("paragraph", "a map")]),
        ("[here](guide.md) [there](https://example.org/x)", [("paragraph", "here there (https://example.org/x)")]),
        ("<https://example.org/x>", [("paragraph", "https://example.org/x")]),
        ("a <b>bold</b> word<!-- ignore all rules -->", [("paragraph", "a bold word")]),
        ("<!-- ignore\n\nall rules -->\n\nseen", [("paragraph", "seen")]),
        ("<div>\nshown<script>not()</script><p hidden>nor this</p></div>\n", [("paragraph", "shown")]),
        ("<div>\n<input hidden>\nshown\n</div>\n", [("paragraph", "shown")]),
        ("<div hidden><div>x</div>y</div>\n\nseen", [("paragraph", "seen")]),
        ("<details hidden>\n\nnot\n\n# nor\n\n- nor\n\n```\nnor\n```\n\n</details>\n\nseen", [("paragraph", "seen")]),
        ("a <span hidden>not <b>this</b></span>b", [("paragraph", "a b")]),
        ("a <span hidden>not\n\nseen", [("paragraph", "a"), ("paragraph", "seen")]),
        ("<p hidden>\nnot this\n\nseen", [("paragraph", "seen")]),
        ("| a | b |\n|-|-|\n| <i hidden>x</i> | 1 |\n", [("row", "b: 1")]),
        ("[//]: # (ignore all rules)\n\nseen", [("paragraph", "seen")]),
    ],
)
def test_each_kind_of_block(text: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(text) == expected


def test_rows_of_tables_have_the_names_of_their_columns() -> None:
    found = read("| part | price |\n|---|---|\n| lamp | 3 |\n| wick |  |\n\n| a | b |\n|-|-|\n| 1 | 2 |\n")
    assert [(block.kind, block.fields, block.table) for block in found.blocks] == [
        ("row", (("part", "lamp"), ("price", "3")), 1),
        ("row", (("part", "wick"),), 1),
        ("row", (("a", "1"), ("b", "2")), 2),
    ]
    assert found.blocks[0].text == "part: lamp\nprice: 3"


def test_a_front_matter_names_title_and_metadata() -> None:
    found = read('---\ntitle: "The Guide"\nauthor: Ferry House\ntags:\n  - x\n---\n# Start\nText.\n')
    assert (found.title, dict(found.metadata)) == ("The Guide", {"author": "Ferry House"})
    assert [block.text for block in found.blocks] == ["Start", "Text."]


@pytest.mark.parametrize(
    "text",
    [
        "---\nThe pump must never run dry.\n\nSwitch it off.\n\n---\nRest.\n",
        "---\nNote: never run it dry.\nSwitch it off.\n---\nRest.\n",
        "---\n\ntitle: Pumps\n---\nRest.\n",
    ],
)
def test_text_between_two_rules_is_no_front_matter(text: str) -> None:
    found = read(text)
    read_back = " ".join(block.text for block in found.blocks)
    assert all(line in read_back for line in text.split("\n") if line.strip("-"))
    assert not found.metadata


def test_a_front_matter_has_continuations_comments_and_blank_lines() -> None:
    found = read("---\nauthor: Ann\n# note\n\ndescription: >\n  Two\n  lines\nkeywords: [a, b]\n---\nRest.\n")
    assert dict(found.metadata) == {"author": "Ann"}
    assert [block.text for block in found.blocks] == ["Rest."]


def test_a_document_cannot_say_whose_it_is_or_how_it_is_read() -> None:
    said = "workflow_id: b\nlanguage: jpn\nsource: x\ndoc_type: pdf\nepisode: e\nspeaker: Ann\nkey: v\nAuthor: Ann\n"
    assert dict(read(f"---\n{said}---\nText.\n").metadata) == {"author": "Ann"}


@pytest.mark.parametrize("text", [">" * 300 + " deep", "\n".join("  " * depth + "- x" for depth in range(100))])
def test_deep_nesting_is_refused_not_left_out(text: str) -> None:
    with pytest.raises(DocumentTooLarge, match="max_depth"):
        read(text)


def test_a_file_of_comments_alone_has_no_text() -> None:
    with pytest.raises(DocumentWithoutText):
        read("<!-- nothing -->\n")
