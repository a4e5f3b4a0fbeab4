"""Word lists are data files that say where their words come from."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from cicada.text.word_lists import SOURCE, word_lists

FILES = [
    ("cicada.text", "frequent_words.json"),
    ("cicada.ingest.enrichment", "words.json"),
    ("cicada.retrieval.knowledge", "gazetteer_words.json"),
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
