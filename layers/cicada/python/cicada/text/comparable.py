"""Which questions consist of nothing but what can be compared: what is left unread might say something all the same.

Guards and embedding models pass over tags, variation selectors, emoji, Braille and rows of signs; a model that writes
an answer may read them, and obey. Such an answer would be found by everybody who asks the question without them.
"""

from __future__ import annotations

import re
import unicodedata

MAX_MARKS = 3
"""Combining marks on one letter; no orthography needs more."""
MAX_BETWEEN_WORDS = 10
"""Signs and spaces in a row, as in *said: "No!" ("Why?")*."""
_JOINERS = "\u200c\u200d"
_FIRST_JOINED = "\u0600"
"""The scripts whose words are written with joiners, Arabic to the Indic ones, begin here."""
_SYMBOLS = frozenset("$+<=>^`|~°©®™")
_SIGNS = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc", "Sm", "Zs"))
_MARKS = frozenset(("Mn", "Mc"))
_LETTERS_READ_AS_SIGNS = re.compile("[\u02b9\u02bc\u0374\u0640\ua78b\ua78c\ufc5e-\ufc62\ufcf2-\ufcf4\ufe70-\ufe7f]")
"""Apostrophes, the Arabic stroke that only stretches a word, and vowel signs that stand alone."""
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is shown as nothing, whatever its category says (Unicode's Default_Ignorable_Code_Point, and the empty Braille
pattern)."""


def can_be_compared(question: str) -> bool:
    """Whether a question has letters with their marks, digits, spaces and ordinary signs, and nothing else."""
    if _UNSEEN.search(question):
        return False
    in_word, marks, between, before = False, 0, 0, ""
    for character in _LETTERS_READ_AS_SIGNS.sub("'", question):
        category = unicodedata.category(character)
        if category[0] in "LN":
            in_word, marks, between = True, 0, 0
        elif category in _MARKS and in_word and marks < MAX_MARKS:
            marks += 1
        elif character in _JOINERS and in_word and before >= _FIRST_JOINED and before not in _JOINERS:
            pass  # part of the word
        elif (category in _SIGNS or character in _SYMBOLS or character.isspace()) and between < MAX_BETWEEN_WORDS:
            in_word, between = False, between + 1
        else:
            return False
        before = character
    return True
