"""Work on language is in ``cicada.text`` alone; word lists are data; no pattern over prose decides for an agent."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "layers" / "cicada" / "python" / "cicada"
MODULES = {path.relative_to(LIBRARY).as_posix(): path for path in sorted(LIBRARY.rglob("*.py"))}
OUTSIDE = {name: path for name, path in MODULES.items() if not name.startswith("text/")}
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
}
"""Modules that compare names without case, and what these are of."""

PATTERNS_OF_AGENTS = {
    "agents/classic/schema.py": "a whole number, as the service writes it",
    "agents/classic/session.py": "keys and milliseconds that we wrote",
    "profiles/rules.py": "the form of a profile's id",
}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    return {alias.name for node in ast.walk(tree(path)) if isinstance(node, ast.Import) for alias in node.names}


def words_in(node: ast.AST) -> int:
    """How many words a literal text has that is taken apart into a list of them."""
    splits = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    text = node.func.value.value if splits and isinstance(node.func.value, ast.Constant) else ""
    return len(text.split()) if isinstance(text, str) else 0


def test_no_other_package_reads_the_properties_of_characters():
    assert not [name for name, path in OUTSIDE.items() if "unicodedata" in imported(path)]


def test_no_other_package_folds_case_but_to_look_names_up():
    folding = {
        name
        for name, path in OUTSIDE.items()
        if any(isinstance(node, ast.Attribute) and node.attr == "casefold" for node in ast.walk(tree(path)))
    }
    assert folding == set(FOLDS_CASE)


def test_word_lists_are_no_code():
    assert not [
        name for name, path in MODULES.items() if any(words_in(node) >= LEAST_WORDS for node in ast.walk(tree(path)))
    ]


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.json")), ids=lambda path: path.name)
def test_every_data_file_says_where_it_is_from(path):
    assert json.loads(path.read_text(encoding="utf-8"))["source"].strip()


def test_no_pattern_over_prose_decides_for_an_agent_or_a_profile():
    folders = ("agents/", "profiles/", "answering/agent", "answering/profile")
    matching = {name for name, path in MODULES.items() if name.startswith(folders) and "re" in imported(path)}
    assert matching == set(PATTERNS_OF_AGENTS)
