"""What the rules' model writes: quotations with their numbers, and plain reports of what was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from cicada_local.agents.brain_memory import Field, Found, Memory, Record
from cicada_local.bedrock.extractive.prose import NOTHING_FOUND, write
from cicada_local.bedrock.extractive.relevance import shared_words
from cicada_local.bedrock.extractive.selection import Quoted
from cicada_local.bedrock.extractive.text import content_stems

Verdict = Literal["supported", "contradicted", "open"]
KeptWord = Literal["profiles", "theories"]

MAX_QUOTES = 3
"""Of an answer, and of each side of a theory."""
LEAST_SHARE = 0.2
"""Of a question's words, what a passage that answers it holds at least."""
OUTWEIGHS = 2.0
"""How much more one side's evidence must be for a verdict; else the question is open."""
_STRONG, _MODERATE = 0.7, 0.5
"""Strengths; a verdict needs more than weak evidence."""


def quotations(question: str, passages: Sequence[Found]) -> str:
    """The passages that have most to do with a question; empty if none has anything."""
    shares = shared_words(question, [found.passage.text for found in passages])
    ranked = sorted(zip(shares, passages, strict=True), key=lambda scored: -scored[0])
    close = [found for share, found in ranked if share >= LEAST_SHARE and share >= ranked[0][0] / 2][:MAX_QUOTES]
    return "\n\n".join(_quotation(found, question) for found in close)


def _quotation(found: Found, about: str) -> str:
    text = write([Quoted(found.passage)], content_stems(about))
    return "" if text == NOTHING_FOUND else text


def nothing_on(question: str, *, noted: bool) -> str:
    """That nothing was found; of the user's notes only where there are none."""
    where = "in the text" if noted else "in the text or in your notes"
    return f"I found nothing {where} on this: {question}" if question else NOTHING_FOUND


def profile_told(record: Record) -> str:
    """A profile's fields, each with its numbers."""
    if not record.fields:
        return f"Your profile of {record.name} has no notes yet."
    return "\n".join(f"{_capitalised(field.name or 'note')}: {_cited(field)}" for field in record.fields)


def fields_told(fields: Iterable[Field]) -> str:
    """Fields, in a sentence."""
    return "; ".join(f"{field.name}: {_cited(field)}" for field in fields)


def records_told(records: Sequence[Record], what: KeptWord) -> str:
    """What is kept, by name."""
    if not records:
        return f"You keep no {what} yet."
    named = [f"{record.name}{f' ({record.kind})' if record.kind and what == 'profiles' else ''}" for record in records]
    counted = f"{len(named)} {what}" if len(named) > 1 else {"profiles": "one profile", "theories": "one theory"}[what]
    return f"You keep {counted}: {'; '.join(named)}."


def history_told(name: str, value: Any) -> str:
    """The changes that a history lists, in its own words and order, each with its number."""
    changes = value.get("changes") if isinstance(value, Mapping) else None
    lines = [
        f"- {change['text']}{f' [{n}]' if (n := change.get('citation')) else ''}"
        for change in (changes if isinstance(changes, list) else ())
        if isinstance(change, Mapping) and isinstance(change.get("text"), str)
    ]
    return "\n".join([f"The history of your {name}:", *lines]) if lines else f"Nothing changed in your {name}."


def evidence_told(statement: str, passages: Sequence[Found]) -> str:
    """What speaks for a theory, and what against it."""
    sides = {side: strongest(passages, side) for side in ("for", "against")}
    if not any(sides.values()):
        return f"I found no evidence for or against this in the text: {statement}"
    paragraphs = []
    for side, found in sides.items():
        if found:
            quoted = [f"{_strength(one)} evidence {side} it.\n{_quotation(one, statement)}" for one in found]
            paragraphs += quoted
        else:
            paragraphs.append(f"I found no evidence {side} it.")
    return "\n\n".join(paragraphs)


def strongest(passages: Sequence[Found], side: str) -> list[Found]:
    """The best evidence of a side, of which there is something to quote."""
    found = [one for one in passages if one.side == side and _quotation(one, "")]
    return sorted(found, key=lambda one: -_weight(one))[:MAX_QUOTES]


def verdict_of(passages: Sequence[Found]) -> Verdict:
    """What the evidence comes to: the side that outweighs the other by far, else it is open."""
    weights = {side: [_weight(one) for one in strongest(passages, side)] for side in ("for", "against")}
    if _outweighs(weights["for"], weights["against"]):
        return "supported"
    return "contradicted" if _outweighs(weights["against"], weights["for"]) else "open"


def verdict_given(passages: Sequence[Found]) -> dict[str, Any]:
    """The verdict as a tool takes it, with the passages that it rests on."""
    numbers = {side: [one.passage.number for one in strongest(passages, side)] for side in ("for", "against")}
    return {"verdict": verdict_of(passages), "passages_for": numbers["for"], "passages_against": numbers["against"]}


def _outweighs(one: Sequence[float], other: Sequence[float]) -> bool:
    strongest_other = max(other, default=0.0)
    return sum(one) > OUTWEIGHS * sum(other) and max(one) >= _MODERATE and strongest_other < _STRONG


def _weight(found: Found) -> float:
    try:
        return float(found.strength)
    except ValueError:
        return {"strong": 1.0, "moderate": 0.6, "fair": 0.6, "weak": 0.3}.get(found.strength.lower(), 0.5)


def _strength(found: Found) -> str:
    weight = _weight(found)
    return "Strong" if weight >= _STRONG else "Moderate" if weight >= _MODERATE else "Weak"


def failure_told(memory: Memory, what: str) -> str:
    """That something could not be done, with the reason that the tool gave."""
    failed = [made.result for made in memory.made if made.result.failed]
    why = failed[-1].value if failed else None
    reason = str(why["why"]) if isinstance(why, Mapping) and why.get("why") else ""
    return f"I could not {what}{f': {reason}' if reason else ''}."


def _cited(field: Field) -> str:
    return f"“{field.value}”{''.join(f' [{number}]' for number in field.numbers[:2])}"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
