"""An answer's parts as the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from rich.text import Text

from cicada.protocol.events import (
    Accepted,
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


def route_line(accepted: Accepted) -> Text:
    """What the classifier decided."""
    words = f"{accepted.route} · {accepted.confidence:.0%} sure: {accepted.reasoning}"
    return Text(printable(words), style="dim")


def answer_text(text: str, citations: Iterable[Citation] = ()) -> Text:
    """The answer with its markers in colour, those that did not hold in another."""
    doubtful = {citation.n for citation in citations if citation.verdict == "unverified"}
    shown = Text(printable(text))
    for marker in markers_in(shown.plain):
        numbers = {reference.n for reference in marker.references}
        shown.stylize("yellow" if numbers & doubtful else "cyan", marker.start, marker.end)
    return shown


def withdrawn_text(text: str) -> Text:
    """The text of an attempt that was given up."""
    return Text(printable(text.strip()), style="dim strike")


def query_line(query: str) -> Text:
    """What a question that leans on the conversation was understood as."""
    return Text(printable(f"understood as: {clipped(query, QUESTION_CHARS)}"), style="dim")


def reused_line(reused: Reused) -> Text:
    """Which earlier answer this one makes use of."""
    question, when = clipped(reused.question, QUESTION_CHARS), _minute(reused.answered_at_ms)
    alike = f"{reused.similarity:.0%} alike, {when}"
    what = "Answered before, for" if reused.use == "answer" else "Written from what was found for an earlier question"
    return Text(printable(f"{what}: “{question}” ({alike})"), style="cyan")


def _minute(epoch_ms: int) -> str:
    """A moment, to the minute; the number itself where no calendar has it."""
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return str(epoch_ms)


def source_lines(answer: Answer, *, width: int | None = None) -> Iterator[Text]:
    """The sources: a heading, and for each its place and its beginning, with what the answer made of it.

    ``width`` is the terminal's, in cells, which the beginnings are to fit into.
    """
    yield from (Text(printable(f"! {one.message}"), style="yellow") for one in answer.degraded)
    if not answer.sources:
        return
    known = {source.n for source in answer.sources}
    used = {citation.n for citation in answer.citations} & known
    if answer.offered:
        told = f"{counted(len(known), 'passage')} found before the answer failed: it does not rest on them"
        yield Text(told, style="bold")
    elif answer.not_attributed:
        yield Text(
            f"Sources: {len(known)} found, not attributed: the answer does not say which it rests on", style="bold"
        )
    else:
        yield Text(f"Sources: {len(known)} found, {len(used)} cited", style="bold")
    for source in answer.sources:
        uses = [citation for citation in answer.citations if citation.n == source.n]
        yield source_heading(source, uses)
        beginning = Text(f"     {clipped(printable(source.text), EXCERPT_CHARS)}", style="dim")
        if width is not None:
            beginning.truncate(width, overflow="ellipsis")
        yield beginning
        if len(uses) > 1 or any(use.verdict != "verified" for use in uses):
            yield from map(_use, uses)
    for citation in answer.citations:
        if citation.n not in known:
            yield Text.assemble(f"{f'[{citation.n}]':>4}", " ✗ cited  ", _use(citation).plain.strip(), style="yellow")


def source_heading(source: Source, uses: Iterable[Citation] = ()) -> Text:
    """A source's number, what became of its citations, where it stands, and its score."""
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
        line.append("  of an earlier answer", style="dim")
    if reasons := list(dict.fromkeys(filter(None, map(_reason, source.why)))):
        line.append(printable(f"  {', '.join(reasons)}"), style="dim")
    return line


def _reason(why: Reason) -> str | None:
    """Why a passage is there, in a phrase; that it is near to the question goes without saying."""
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
    """What became of one use of a source."""
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
    """The verdict on a theory, and the passages for and against it, each with its place and beginning.

    ``width`` is the terminal's, in cells, which the beginnings are to fit into.
    """
    known = {source.n: source for source in sources}
    yield Text(f"Verdict: {verdict.verdict}", style="bold")
    if not verdict.given:
        yield Text("The agent gave none: these are the passages that were gathered.", style="yellow")
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
        beginning = Text(f"       {clipped(printable(source.text), EXCERPT_CHARS)}", style="dim")
        if width is not None:
            beginning.truncate(width, overflow="ellipsis")
        yield beginning


def change_lines(answer: Answer) -> Iterator[Text]:
    """What the answer has changed of the user's profiles, and how each change is taken back."""
    for change in answer.receipts:
        yield Text(printable(f"✎ {_profile(change)} {_DONE.get(change.operation, change.operation)}"), style="green")
        yield from (Text(f"  {line}") for line in map(field_words, change.fields))
        if change.undoable:
            how = f"cicada profile undo {change.id} --version {change.version}"
            yield Text(f"  take it back: {how}", style="dim")
    if answer.changes == 0:
        yield Text("Nothing was changed.", style="yellow")


def confirm_lines(confirm: Confirm) -> Iterator[Text]:
    """What would be deleted."""
    what = "Delete with its history" if confirm.operation == "delete" else "Remove from"
    yield Text(printable(f"{what}: {_profile(confirm)}"), style="yellow")
    for field in confirm.fields:
        yield Text(f"  {one_line(field.field)}: “{one_line(field.before or '')}”")


def field_words(field: ChangedField) -> str:
    """A field before and after."""
    name, before, after = (one_line(text or "") for text in (field.field, field.before, field.after))
    if field.before is None:
        return f"{name}: “{after}”"
    return f"{name}: “{before}”, removed" if field.after is None else f"{name}: “{before}” → “{after}”"


def _profile(change: ProfileChanged | Confirm) -> str:
    return f"{one_line(change.name)} ({change.kind.replace('_', ' ')})"


_DONE = {"created": "created", "updated": "changed", "undone": "restored", "deleted": "deleted"}


def ending_lines(answer: Answer) -> Iterator[Text]:
    """Which way the answer came, on what ground, and what it took."""
    for failure in answer.failed:
        yield Text(printable(f"{failure.strategy} failed: {failure.reason} ({failure.code})"), style="yellow")
    if answer.reused is not None:
        yield reused_line(answer.reused)
    ground = {True: "grounded in the sources", False: "not grounded in sources", None: ""}[answer.grounded]
    who = (answer.strategy and _way(answer), answer.model, ground)
    yield Text(printable(" · ".join(part for part in who if part)), style="dim")
    if answer.metrics is not None:
        yield Text(" · ".join(_measures(answer.metrics)), style="dim")
    yield from (Text(line, style="yellow") for line in left_lines(answer.limits))


def _way(answer: Answer) -> str:
    """The strategy that answered, and those that failed before it; it may be among them, when its worker was lost."""
    failed = list(dict.fromkeys(failure.strategy for failure in answer.failed))
    others = [strategy for strategy in failed if strategy != answer.strategy]
    anew = ", begun anew" if len(others) < len(failed) else ""
    return f"answered by {answer.strategy}{anew}" + (f" after {_listed(others)} failed" if others else "")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _measures(metrics: Metrics) -> Iterator[str]:
    yield f"{metrics.latency_ms / 1000:.1f} s"
    if metrics.first_chunk_ms is not None:
        yield f"first words after {metrics.first_chunk_ms / 1000:.1f} s"
    if metrics.retrieval_latency_ms is not None:
        yield f"search {metrics.retrieval_latency_ms} ms"
    if metrics.cache_latency_ms is not None:
        yield f"earlier answers {metrics.cache_latency_ms} ms"
    if not metrics.model_calls:
        yield "no model call"
        return
    calls = f" in {metrics.model_calls} model calls" if metrics.model_calls > 1 else ""
    yield f"{counted(metrics.input_tokens, 'token')} in, {metrics.output_tokens:,} out{calls}"
    if metrics.cost_usd is not None:
        at = f" at prices of {metrics.price_date}" if metrics.price_date else ""
        yield f"${metrics.cost_usd:.5f}{at}" if metrics.cost_usd else "free"
    else:
        yield "cost not known"
