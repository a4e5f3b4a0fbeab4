"""Parts of texts as whole words, in scripts with spaces between words and without."""

from __future__ import annotations

import pytest

from cicada.text.characters import stands_in, word_pattern


@pytest.mark.parametrize(
    ("text", "part", "stands"),
    [
        ("tovin ashgrove", "tovin", True),
        ("tovington and tovin", "tovin", True),
        ("tovington", "tovin", False),
        ("old-tovin's", "tovin", True),
        ("रामायण", "राम", False),
        ("श्री राम", "राम", True),
        ("สวัสดีก้องครับ", "ก้อง", True),
        ("กี", "ก", False),
        ("山田太郎", "太郎", True),
        ("tovin", "", False),
    ],
)
def test_a_part_stands_in_a_text_as_whole_words(text: str, part: str, stands: bool) -> None:
    assert stands_in(text, part) is stands


def test_words_keep_their_marks_and_scripts_without_spaces_are_taken_by_their_characters() -> None:
    assert word_pattern().findall("किताब, Zoe\u0308 ก้อง 太郎") == ["किताब", "Zoe\u0308", "ก้", "อ", "ง", "太", "郎"]
