"""Profiles as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from cicada.profiles.record import Change, Edit, Evidence, PassageProof, Proof
from cicada.protocol.profiles import ProfileHead, ProfileShown
from cicada_cli.output import say, say_json, show_list, show_rows
from cicada_cli.text import clipped, counted, one_line, printable
from cicada_client import History

QUOTE_CHARS = 160


def show_profiles(heads: Sequence[ProfileHead], out: Console, *, as_json: bool) -> None:
    """List the profiles."""
    show_list(
        ("kind", "name", "version", "size", "changed"),
        heads,
        row=lambda head: (head.kind, _named(head), str(head.version), _size(head), moment(head.changed_at_ms)),
        data=_plain,
        as_json=as_json,
        out=out,
        empty="You have no profiles.",
    )


def show_profile(profile: ProfileShown, out: Console, *, as_json: bool) -> None:
    """Show a profile with the evidence of each fact."""
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
        show_rows(("field", "value", "evidence", "changed"), rows, out)
    if profile.evidence:
        show_rows(("side", "strength", "passage", "text"), map(_evidence_row, profile.evidence), out)


def show_history(history: History, out: Console, *, as_json: bool) -> None:
    """Show the changes of a profile, newest first."""
    changes = list(reversed(history.changes))
    if as_json:
        for change in changes:
            say_json(_plain(change), readable=True)
        return
    rows = (row for change in changes for row in _change_rows(change))
    show_rows(("version", "time", "change", "before", "after"), rows, out)


def told(text: str) -> str:
    """A name in a sentence."""
    return f"“{one_line(text)}”"


def proof_words(proof: Proof, value: str) -> str:
    """The evidence of a fact; a note that equals the value is not repeated."""
    if isinstance(proof, PassageProof):
        return printable(f"{proof.locator.label()}: “{clipped(proof.quote, QUOTE_CHARS)}”")
    said = "" if proof.words == value else f": “{clipped(proof.words, QUOTE_CHARS)}”"
    return printable(f"you, {moment(proof.said_at_ms)}{said}")


def moment(at_ms: int) -> str:
    """A time to the minute, UTC; the number itself if it is out of range."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return str(at_ms)


def _head_lines(profile: ProfileShown) -> Iterator[str]:
    yield f"{told(profile.name)}, {profile.kind.replace('_', ' ')}, version {profile.version}, id {profile.id}"
    theory = profile.theory
    if theory is None:
        return
    yield f"Statement: {one_line(theory.statement)}"
    if theory.episodes:
        yield f"Episodes: {one_line(', '.join(theory.episodes))}"
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


def _plain(model: BaseModel, *without: str) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(without))
