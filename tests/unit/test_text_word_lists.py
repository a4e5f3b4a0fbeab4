"""Word lists are data files that say where their words come from."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from cicada.text import word_lists as word_lists_module
from cicada.text.word_lists import SOURCE, word_lists

LIBRARY = Path(word_lists_module.__file__).parents[1]
FILES = [
    ("cicada_local", "words.json"),
    *(
        (".".join(("cicada", *path.relative_to(LIBRARY).parent.parts)), path.name)
        for path in sorted(LIBRARY.rglob("*.json"))
        if path.name != "prices.json"
    ),
]


@pytest.mark.parametrize(("package", "file"), FILES)
def test_a_file_says_where_its_words_come_from_and_no_list_of_it_is_empty(package, file):
    assert json.loads((files(package) / file).read_text(encoding="utf-8"))[SOURCE].strip()
    lists = word_lists(package, file)
    assert lists
    assert SOURCE not in lists
    assert all(lists.values())


def test_a_list_of_several_lines_is_one_list():
    assert {"the", "me", "been"} <= word_lists("cicada.text", "frequent_words.json")["eng"]
