"""Whether an English question is of the past, the future, a condition or a possibility."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.guards.english_forms import PARTICIPLES, PAST, has_ed

_ANNOUNCE = {
    "did": "past", "was": "past", "were": "past", "had": "past", "used": "past", "will": "future", "shall": "future",
    "would": "conditional", "might": "possible", "perhaps": "possible", "maybe": "possible", "possibly": "possible",
}  # fmt: skip
_BE = frozenset("is are am was were be been being".split())
_HAVE = frozenset("have has had having".split())
_CLAUSE = frozenset("who whom whose what which when where why how that if because while until before after ,".split())
_ADJECTIVE_AFTER = frozenset("the a an my your his her its our their this these those of with very to no".split())
_ALWAYS_PAST = PAST - PARTICIPLES
_ASKING = frozenset("i we you one".split())


def tense(words: Sequence[str]) -> frozenset[str]:
    """Classes of tense and mood that a question shows; none of them is the present.

    Args:
        words: of the question, normalised, its contractions in full.
    """
    found = set()
    be = have = False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in _CLAUSE:
            be = have = False
        if word in _ANNOUNCE:
            found.add(_ANNOUNCE[word])
        if word == "could" and following not in _ASKING:
            found.add("possible")
        if word in _BE:
            be, have = True, False if word != "been" else have
        elif word in _HAVE:
            have = True
            if "may" in words[max(0, place - 3) : place]:
                found.add("possible")
        elif word in PAST or word in PARTICIPLES or has_ed(word):
            adjective = before in _ADJECTIVE_AFTER
            told = not be and (word in PAST or has_ed(word))
            if word in _ALWAYS_PAST or (not adjective and (have or told)):
                found.add("past")
    return frozenset(found)
