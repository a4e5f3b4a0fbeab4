"""What of a model's description of a passage is believed: names and codes that stand in its text, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cicada.ingest.enrichment.codes import MAX_CODE_CHARS, MAX_CODES
from cicada.ingest.enrichment.names import MAX_ENTITIES, MAX_ENTITY_CHARS
from cicada.text.letters import written_as
from cicada.text.normal import compatible, folded
from cicada.text.visible import visible

MAX_SUMMARY_CHARS = 600


def summary_of(written: str) -> str | None:
    """A summary on one line; None if there is nothing in it."""
    return " ".join(visible(written).split())[:MAX_SUMMARY_CHARS] or None


def entities_in(text: str, written: Iterable[str]) -> tuple[str, ...]:
    """The entities that stand in a text as whole words, as the text writes them, each once in the order given."""
    plain = _plain(text)
    found: dict[str, str] = {}
    for entity in written:
        name = _plain(entity)
        if not 1 < len(name) <= MAX_ENTITY_CHARS or not any(character.isalpha() for character in name):
            continue
        there = written_as(plain, name)
        if there is not None:
            found.setdefault(folded(there), there)
    return tuple(found.values())[:MAX_ENTITIES]


def codes_in(text: str, written: Iterable[str]) -> tuple[str, ...]:
    """The codes that stand in a text exactly so, each once; a code has a digit or an underscore."""
    plain = _plain(text)
    found = dict.fromkeys(
        code
        for code in map(_plain, written)
        if len(code) <= MAX_CODE_CHARS
        and re.search(r"[\d_]", code)
        and re.search(rf"(?<![A-Za-z0-9_-]){re.escape(code)}(?![A-Za-z0-9_-])", plain)
    )
    return tuple(found)[:MAX_CODES]


def _plain(text: str) -> str:
    return " ".join(compatible(visible(text)).split())
