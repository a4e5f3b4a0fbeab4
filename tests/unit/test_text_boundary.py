"""Work on language is in ``cicada.text`` alone; word lists are data; no pattern over prose decides for an agent."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "layers" / "cicada" / "python" / "cicada"
MODULES = {path.relative_to(LIBRARY).as_posix(): path for path in sorted(LIBRARY.rglob("*.py"))}
OUTSIDE = [name for name in MODULES if not name.startswith("text/")]
LEAST_WORDS = 4

FOLDS_CASE = {
    "citations/sentences.py": "looks an abbreviation up",
    "corpus/declared/declaration.py": "names of files",
    "corpus/declared/naming.py": "words of names that keep their places in the text",
    "corpus/declared/sectioning.py": "names of fields",
    "corpus/readers/blocks.py": "names of columns",
    "corpus/readers/docx/body.py": "names of styles",
    "corpus/readers/docx/paragraphs.py": "names of styles",
    "corpus/readers/markdown.py": "names of fields",
    "corpus/readers/pdf/layout.py": "headings and bookmarks",
    "corpus/readers/table_rows.py": "names of columns",
    "ingest/enrichment/names.py": "names that are on disk with their passages",
    "integrators/schema_explaining.py": "names of columns",
    "retrieval/example_questions.py": "headings and titles",
}
"""Modules that compare names without case, and what these are of."""

PATTERNS_OF_AGENTS = {
    "agents/classic/schema.py": "a whole number, as the service writes it",
    "agents/classic/session.py": "keys and milliseconds that we wrote",
    "profiles/rules.py": "the form of a profile's id",
}


class Facts(NamedTuple):
    """What a module does with words."""

    imported: set[str]
    folds_case: bool
    most_words: int
    """Of one of its lists of words."""


@cache
def facts() -> dict[str, Facts]:
    """Of each module; every file is parsed once."""
    found = {}
    for name, path in MODULES.items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        found[name] = Facts(
            {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names},
            any(isinstance(node, ast.Attribute) and node.attr == "casefold" for node in nodes),
            max(map(words_in, nodes)),
        )
    return found


def importing(module: str, names: Collection[str]) -> set[str]:
    return {name for name in names if module in facts()[name].imported}


def words_in(node: ast.AST) -> int:
    """How many words a literal text has that is taken apart into a list of them."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return len(text.split())
    return 0


def test_no_other_package_reads_the_properties_of_characters():
    assert not importing("unicodedata", OUTSIDE)


def test_no_other_package_folds_case_but_to_look_names_up():
    assert {name for name in OUTSIDE if facts()[name].folds_case} == set(FOLDS_CASE)


def test_word_lists_are_no_code():
    assert not [name for name in MODULES if facts()[name].most_words >= LEAST_WORDS]


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.json")), ids=lambda path: path.name)
def test_every_data_file_says_where_it_is_from(path):
    assert json.loads(path.read_text(encoding="utf-8"))["source"].strip()


def test_no_pattern_over_prose_decides_for_an_agent_or_a_profile():
    folders = ("agents/", "profiles/", "answering/agent", "answering/profile")
    assert importing("re", [name for name in MODULES if name.startswith(folders)]) == set(PATTERNS_OF_AGENTS)
