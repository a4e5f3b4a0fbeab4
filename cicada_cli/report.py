"""The parts of an answer as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from rich.text import Text

from cicada.protocol.events import (
    ChangedField,
    Citation,
    Confirm,
    Metrics,
    ProfileChanged,
    Reason,
    Reused,
    Source,
    Verdict,
    VerdictPassage,
)
from cicada.protocol.markers import markers_in
from cicada_cli.limit_words import left_lines
from cicada_cli.text import clipped, counted, one_line, printable
from cicada_client import Answer

EXCERPT_CHARS = 160
QUESTION_CHARS = 200


def answer_text(text: str, citations: Iterable[Citation] = ()) -> Text:
    """The answer with coloured markers; markers that failed a check have another colour."""
    doubtful = {citation.n for citation in citations if citation.verdict == "unverified"}
    shown = Text(printable(text))
    for marker in markers_in(shown.plain):
        numbers = {reference.n for reference in marker.references}
        shown.stylize("yellow" if numbers & doubtful else "cyan", marker.start, marker.end)
    return shown


def withdrawn_text(text: str) -> Text:
    """The text of a failed attempt, struck out."""
    return Text(printable(text.strip()), style="dim strike")


def query_line(query: str) -> Text:
    """The question as it was completed from the conversation."""
    return Text(printable(f"understood as: {clipped(query, QUESTION_CHARS)}"), style="dim")


def reused_line(reused: Reused) -> Text:
    """The earlier answer that this one uses."""
    question, when = clipped(reused.question, QUESTION_CHARS), _minute(reused.answered_at_ms)
    alike = f"{reused.similarity:.0%} similar, {when}"
    what = "Repeats the answer to" if reused.use == "answer" else "Uses the sources of an earlier question:"
    return Text(printable(f"{what} “{question}” ({alike})"), style="cyan")


def _minute(epoch_ms: int) -> str:
    """A time to the minute; the number itself if it is out of range."""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return str(epoch_ms)


def source_lines(answer: Answer, *, width: int | None = None, every: bool = False) -> Iterator[Text]:
    """The sources: a heading, then each with its place, its beginning and the result of its checks.

    Args:
        answer: the complete answer.
        width: the terminal's width in cells, which a beginning fits into; None for a pipe.
        every: list all sources, not only the cited ones.
    """
    yield from (Text(printable(f"! {one.message}"), style="yellow") for one in answer.degraded)
    known = {source.n for source in answer.sources}
    used = {citation.n for citation in answer.citations} & known
    if known:
        yield Text(_heading(answer, len(known), len(used), every=every), style="bold" if used or every else "dim")
    for source in answer.sources:
        if not (every or source.n in used):
            continue
        uses = [citation for citation in answer.citations if citation.n == source.n]
        yield source_heading(source, uses)
        yield _beginning(source, "     ", width)
        if len(uses) > 1 or any(use.verdict != "verified" for use in uses):
            yield from map(_use, uses)
    for citation in answer.citations:
        if citation.n not in known:
            yield Text.assemble(f"{f'[{citation.n}]':>4}", " ✗ cited  ", _use(citation).plain.strip(), style="yellow")


def _heading(answer: Answer, found: int, cited: int, *, every: bool) -> str:
    more = "" if every else " (--all-sources lists them)"
    if answer.offered:
        return f"The search found {counted(found, 'passage')} before it failed; the answer does not use them{more}"
    if answer.not_attributed:
        return f"Sources: {counted(found, 'passage')} found, 0 cited{more}"
    if not cited:
        return f"The corpus does not answer this: {counted(found, 'passage')} found, 0 used{more}"
    if every or cited == found:
        return f"Sources: {cited} cited" + (f", {counted(found - cited, 'other')} found" if cited < found else "")
    return f"Sources: {cited} cited; {counted(found - cited, 'other')} found{more}"


def _beginning(source: Source, indent: str, width: int | None) -> Text:
    text = Text(f"{indent}{clipped(printable(source.text), EXCERPT_CHARS)}", style="dim")
    if width is not None:
        text.truncate(width, overflow="ellipsis")
    return text


def source_heading(source: Source, uses: Iterable[Citation] = ()) -> Text:
    """A source's number, the result of its checks, its place and its score."""
    line = Text(f"{f'[{source.n}]':>4} ", style="cyan")
    verdicts = {citation.verdict for citation in uses}
    if verdicts == {"verified"}:
        line.append("✓ cited  ", style="green")
    elif "unverified" in verdicts:
        line.append("✗ cited  ", style="yellow")
    elif verdicts:
        line.append("· cited  ")
    else:
        line.append("         ")
    line.append(printable(source.locator.label()), style="default")
    line.append(f"  {source.score:.2f}", style="dim")
    if source.origin == "cache":
        line.append("  from an earlier answer", style="dim")
    if reasons := list(dict.fromkeys(filter(None, map(_reason, source.why)))):
        line.append(printable(f"  {', '.join(reasons)}"), style="dim")
    return line


def _reason(why: Reason) -> str | None:
    """Why a passage was found, in a phrase; None for similarity, the usual reason."""
    match why.kind:
        case "entity":
            return f"names {why.name}"
        case "intention":
            return f"for {why.name}"
        case "tool":
            return f"by {why.name}"
        case _:
            return None


def _use(citation: Citation) -> Text:
    """The result of checking one use of a source."""
    sentence = clipped(printable(citation.sentence), EXCERPT_CHARS)
    why = citation.reason or "no reason given"
    match citation.verdict:
        case "verified":
            return Text(f"     ✓ verified for: “{sentence}”", style="green")
        case "unverified":
            return Text(printable(f"     ✗ not verified: {why}: “{sentence}”"), style="yellow")
        case "unchecked":
            return Text(printable(f"     · not checked: {why}: “{sentence}”"), style="dim")


def verdict_lines(verdict: Verdict, sources: Iterable[Source], *, width: int | None = None) -> Iterator[Text]:
    """The verdict on a theory, with the passages for and against it.

    ``width`` is the terminal's width in cells, which a beginning fits into.
    """
    known = {source.n: source for source in sources}
    yield Text(f"Verdict: {verdict.verdict}", style="bold")
    if not verdict.given:
        yield Text("The agent gave no verdict. It collected these passages:", style="yellow")
    for heading, passages in (("For", verdict.for_), ("Against", verdict.against)):
        yield Text(f"  {heading}{'' if passages else ': nothing'}")
        for passage in passages:
            yield from _verdict_passage(passage, known.get(passage.n), width)


def _verdict_passage(passage: VerdictPassage, source: Source | None, width: int | None) -> Iterator[Text]:
    line = Text(f"{f'[{passage.n}]':>6} ", style="cyan")
    line.append(f"{passage.strength}  ", style="default")
    if source is not None:
        line.append(printable(source.locator.label()), style="default")
    yield line
    if source is not None:
        yield _beginning(source, "       ", width)


def change_lines(answer: Answer) -> Iterator[Text]:
    """The changes that the answer made to the user's profiles, and how to undo each."""
    for change in answer.receipts:
        yield Text(printable(f"✎ {_profile(change)} {_DONE.get(change.operation, change.operation)}"), style="green")
        yield from (Text(f"  {line}") for line in map(field_words, change.fields))
        if change.undoable:
            how = f"cicada profile undo {change.id} --version {change.version}"
            yield Text(f"  undo: {how}", style="dim")
    if answer.changes == 0:
        yield Text("No profile was changed.", style="yellow")


def confirm_lines(confirm: Confirm) -> Iterator[Text]:
    """The deletion to confirm."""
    what = "Delete with its history" if confirm.operation == "delete" else "Remove from"
    yield Text(printable(f"{what}: {_profile(confirm)}"), style="yellow")
    for field in confirm.fields:
        yield Text(f"  {one_line(field.field)}: “{one_line(field.before or '')}”")


def field_words(field: ChangedField) -> str:
    """A field before and after a change."""
    name, before, after = (one_line(text or "") for text in (field.field, field.before, field.after))
    if field.before is None:
        return f"{name}: “{after}”"
    return f"{name}: “{before}”, removed" if field.after is None else f"{name}: “{before}” → “{after}”"


def _profile(change: ProfileChanged | Confirm) -> str:
    return f"{one_line(change.name)} ({change.kind.replace('_', ' ')})"


_DONE = {"created": "created", "updated": "changed", "undone": "restored", "deleted": "deleted"}


def ending_lines(answer: Answer) -> Iterator[Text]:
    """Who answered, whether the answer is grounded, and what it took."""
    for failure in answer.failed:
        yield Text(printable(f"{failure.strategy} failed: {failure.reason} ({failure.code})"), style="yellow")
    if answer.reused is not None:
        yield reused_line(answer.reused)
    who = (answer.strategy and _way(answer), answer.model, _ground(answer))
    yield Text(printable(" · ".join(part for part in who if part)), style="dim")
    if answer.metrics is not None:
        yield Text(" · ".join(_measures(answer.metrics)), style="dim")
    yield from (Text(line, style="yellow") for line in left_lines(answer.limits))


def _ground(answer: Answer) -> str:
    """Whether the answer is grounded; empty for small talk, which has nothing to rest on."""
    if answer.grounded is None or (answer.route == "direct" and answer.strategy == "direct"):
        return ""
    return "grounded in the sources" if answer.grounded else "not grounded in sources"


def _way(answer: Answer) -> str:
    """The strategy that answered, and those that failed before it. After a lost worker, both can be the same."""
    failed = list(dict.fromkeys(failure.strategy for failure in answer.failed))
    others = [strategy for strategy in failed if strategy != answer.strategy]
    again = " (started again)" if len(others) < len(failed) else ""
    return f"answered by {answer.strategy}{again}" + (f" after {_listed(others)} failed" if others else "")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _measures(metrics: Metrics) -> Iterator[str]:
    yield f"{metrics.latency_ms / 1000:.1f} s"
    if metrics.first_chunk_ms is not None:
        yield f"first text after {metrics.first_chunk_ms / 1000:.1f} s"
    if metrics.retrieval_latency_ms is not None:
        yield f"search {metrics.retrieval_latency_ms} ms"
    if metrics.cache_latency_ms is not None:
        yield f"cache {metrics.cache_latency_ms} ms"
    if not metrics.model_calls:
        yield "no model call"
        return
    calls = f" in {metrics.model_calls} model calls" if metrics.model_calls > 1 else ""
    yield f"{counted(metrics.input_tokens, 'token')} in, {metrics.output_tokens:,} out{calls}"
    if metrics.cost_usd is not None:
        at = f" at prices of {metrics.price_date}" if metrics.price_date else ""
        yield f"${metrics.cost_usd:.5f}{at}" if metrics.cost_usd else "free"
    else:
        yield "cost unknown"
