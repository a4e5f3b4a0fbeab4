"""Profiles as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cicada.profiles.record import Change, Edit, Evidence, PassageProof, Proof
from cicada.protocol.profiles import ProfileHead, ProfileShown
from cicada_cli.output import say, say_json
from cicada_cli.text import clipped, counted, one_line, printable
from cicada_client import History

QUOTE_CHARS = 160


def show_list(heads: Sequence[ProfileHead], out: Console, *, as_json: bool) -> None:
    """All profiles: on a terminal a table, else a line each, between tabs."""
    if as_json:
        say_json([_plain(head) for head in heads], readable=True, indent=2)
        return
    rows = [(head.kind, _named(head), str(head.version), _size(head), moment(head.changed_at_ms)) for head in heads]
    _show(("kind", "name", "version", "holds", "changed"), rows, out)
    if not heads and out.is_terminal:
        out.print(Text("You have no profiles yet.", style="dim"))


def show_profile(profile: ProfileShown, out: Console, *, as_json: bool) -> None:
    """One profile: each fact, and what supports it."""
    if as_json:
        say_json(_plain(profile, "request_id", "seq", "type", "next"), readable=True, indent=2)
        return
    for line in _head_lines(profile):
        out.print(Text(line)) if out.is_terminal else say(line)
    rows = [
        (field.name, printable(field.value), proof_words(field.proof, field.value), moment(field.changed_at_ms))
        for field in profile.fields
    ]
    if rows:
        _show(("field", "value", "because of", "changed"), rows, out)
    if profile.evidence:
        _show(("side", "strength", "passage", "it says"), [_evidence_row(one) for one in profile.evidence], out)


def show_history(history: History, out: Console, *, as_json: bool) -> None:
    """What has changed, the newest first."""
    if as_json:
        say_json([_plain(change) for change in history.changes], readable=True, indent=2)
        return
    rows = [row for change in reversed(history.changes) for row in _change_rows(change)]
    _show(("version", "when", "what", "before", "after"), rows, out)


def told(text: str) -> str:
    """A name as it stands in a sentence."""
    return f"“{one_line(text)}”"


def proof_words(proof: Proof, value: str) -> str:
    """What supports a fact, in words; a note that says nothing but the value is not repeated."""
    if isinstance(proof, PassageProof):
        return printable(f"{proof.locator.label()}: “{clipped(proof.quote, QUOTE_CHARS)}”")
    said = "" if proof.words == value else f": “{clipped(proof.words, QUOTE_CHARS)}”"
    return printable(f"you, {moment(proof.said_at_ms)}{said}")


def moment(at_ms: int) -> str:
    """A time to the minute, UTC; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return str(at_ms)


def _head_lines(profile: ProfileShown) -> Iterator[str]:
    yield f"{told(profile.name)}, {profile.kind.replace('_', ' ')}, version {profile.version}, id {profile.id}"
    theory = profile.theory
    if theory is None:
        return
    yield f"States: {one_line(theory.statement)}"
    if theory.episodes:
        yield f"About: {one_line(', '.join(theory.episodes))}"
    if theory.judgement is None:
        yield "No verdict yet."
    else:
        cited = sum(one.cited for one in profile.evidence)
        yield f"Verdict: {theory.judgement.verdict}, by {counted(cited, 'passage')}, {moment(theory.judgement.at_ms)}"


def _evidence_row(one: Evidence) -> tuple[str, ...]:
    side = f"{one.side} ✓" if one.cited else one.side
    where = printable(one.proof.locator.label())
    return (side, f"{one.strength:.2f}", where, printable(clipped(one.proof.quote, QUOTE_CHARS)))


def _change_rows(change: Change) -> Iterator[tuple[str, ...]]:
    first = (str(change.version), moment(change.at_ms))
    if not change.edits:
        yield (*first, change.operation, "", "")
    for edit in change.edits:
        yield (
            *first,
            f"{_verb(edit)} {printable(edit.field)}",
            printable(edit.before or ""),
            printable(edit.after or ""),
        )
        first = ("", "")


def _verb(edit: Edit) -> str:
    if edit.before is None:
        return "set"
    return "removed" if edit.after is None else "changed"


def _named(head: ProfileHead) -> str:
    return printable(head.statement or head.name)


def _size(head: ProfileHead) -> str:
    facts = counted(head.facts, "fact")
    return facts if head.verdict is None else f"{facts}, {head.verdict}"


def _show(columns: Sequence[str], rows: Sequence[tuple[str, ...]], out: Console) -> None:
    if not out.is_terminal:
        for row in rows:
            say("\t".join(map(one_line, row)))
        return
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    out.print(table)


def _plain(model: BaseModel, *without: str) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(without))
