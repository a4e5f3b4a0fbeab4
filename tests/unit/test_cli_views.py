"""What the command line shows of an answer, for machines, in a pipe and on a terminal."""

from __future__ import annotations

import io
import json

import pytest
from rich.cells import cell_len
from rich.console import Console

from cicada import errors as codes
from cicada.corpus.passages import ScriptLocator
from cicada.protocol.events import (
    Accepted,
    Attempt,
    Chunk,
    Citation,
    Citations,
    Complete,
    Failed,
    Fallback,
    LogEvent,
    Metrics,
    Source,
    Sources,
    StrategyFailure,
    dump_event,
    event_frame,
)
from clients.cli.text import clipped, counted, printable
from clients.cli.views import JsonLines, LiveView, PlainView, View, failure_words, view_for
from clients.python import EventFrame, Status, UnknownEvent
from clients.python.frames import parse_frame

REQUEST = "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
ACCEPTED = Accepted(route="rag", confidence=0.93, reasoning="asks about the script", strategy="rag")
FALLBACK = Fallback.model_validate(
    {"from": "rag", "to": "direct", "code": "stream_broken", "reason": "The answer broke off."}
)


def source(n: int, text: str = "The bell rang twice.") -> Source:
    locator = ScriptLocator(
        episode_id="ep1", episode_name="The Boathouse", chapter_id="c1", message_id=f"m{n}", speaker="Ada"
    )
    return Source(n=n, passage_id=f"p{n}", collection="script", locator=locator, score=0.75, text=text)


def citation(n: int, reason: str | None = None) -> Citation:
    verdict = "unverified" if reason else "verified"
    return Citation.model_validate({"n": n, "verdict": verdict, "sentence": f"Sentence {n}.", "reason": reason})


def complete(**changes: object) -> Complete:
    metrics = Metrics(
        latency_ms=2345,
        attempt_ms=2000,
        first_chunk_ms=812,
        retrieval_ms=12,
        input_tokens=1834,
        output_tokens=120,
        cost_usd=0.00042,
        price_date="2026-11-01",
    )
    told = {"attempt": 1, "strategy": "rag", "model": "m-1", "grounded": True, "stopReason": "end_turn"}
    return Complete.model_validate({**told, "metrics": metrics, **changes})


ANSWER: list[LogEvent] = [
    ACCEPTED,
    Attempt(attempt=1, strategy="rag"),
    Sources(attempt=1, index_version="v1", searched=812, sources=(source(1), source(2), source(3))),
    Chunk(attempt=1, content="The bell [1] "),
    Chunk(attempt=1, content="rang [2]."),
    Citations(attempt=1, citations=(citation(1), citation(2, "the words differ"), citation(7, "no such passage"))),
    complete(),
]
FALLEN: list[LogEvent] = [
    ACCEPTED,
    Attempt(attempt=1, strategy="rag"),
    Chunk(attempt=1, content="Withdrawn words."),
    FALLBACK,
    Attempt(attempt=2, strategy="direct"),
    Chunk(attempt=2, content="Lasting words."),
    complete(
        attempt=2,
        strategy="direct",
        grounded=False,
        failed=(StrategyFailure(strategy="rag", code="stream_broken", reason="The answer broke off."),),
    ),
]


def frames(events: list[LogEvent]) -> list[EventFrame]:
    parsed = [parse_frame(event_frame(REQUEST, seq, dump_event(event))) for seq, event in enumerate(events, start=1)]
    return [frame for frame in parsed if isinstance(frame, EventFrame)]


def shown(view: View, *items: EventFrame | Status) -> None:
    with view:
        for item in items:
            view.show(item)


def piped(*items: EventFrame | Status, sources: bool = True) -> str:
    out = io.StringIO()
    shown(PlainView(Console(file=out, highlight=False), sources=sources), *items)
    return out.getvalue()


def on_terminal(*items: EventFrame | Status, colours: bool = False) -> str:
    out = io.StringIO()
    colour_system = "standard" if colours else None
    console = Console(file=out, force_terminal=True, color_system=colour_system, width=100, height=30, highlight=False)  # type: ignore[arg-type]
    shown(LiveView(console, sources=True), *items)
    return out.getvalue()


def test_machines_get_each_event_as_the_server_sent_it_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = JsonLines()
    shown(view, Status("connecting"), *frames(FALLEN), Status("idle"))
    view.note("something else")
    told = capsys.readouterr()
    assert [json.loads(line) for line in told.out.splitlines()] == [frame.raw for frame in frames(FALLEN)]
    assert "something else" in told.err


def test_a_pipe_gets_the_answer_its_sources_with_what_was_cited_and_what_it_took() -> None:
    text = piped(*frames(ANSWER))
    assert text.startswith("The bell [1] rang [2].\n")
    lines = text.splitlines()
    assert "Sources: 3 found, 2 cited" in lines
    assert " [1] ✓ cited  The Boathouse · c1 · m1 · Ada  0.75" in lines
    assert any(line.startswith(" [2] ✗ cited") for line in lines)
    assert any(line.startswith(" [3]          The Boathouse") for line in lines)
    assert "     not verified: the words differ: “Sentence 2.”" in lines
    assert " [7] ✗ cited  not verified: no such passage: “Sentence 7.”" in lines
    assert "answered by rag · m-1 · grounded in the sources" in lines
    assert lines[-1] == (
        "2.3 s · first words after 0.8 s · search 12 ms · 1,834 tokens in, 120 out · $0.00042 at prices of 2026-11-01"
    )


def test_sources_are_left_out_on_request() -> None:
    assert "Sources" not in piped(*frames(ANSWER), sources=False)


def test_a_pipe_never_carries_withdrawn_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = piped(*frames(FALLEN))
    assert text.startswith("Lasting words.\n")
    assert "Withdrawn" not in text
    assert "rag failed: The answer broke off. (stream_broken)" in text
    assert "not grounded in sources" in text
    assert "direct answers now" in capsys.readouterr().err


def test_a_long_line_is_not_broken_in_a_pipe() -> None:
    long = "word " * 100
    assert long.strip() in piped(*frames([ACCEPTED, Chunk(attempt=1, content=long), complete()]))


def test_a_terminal_shows_withdrawn_text_struck_out_and_says_why() -> None:
    text = on_terminal(*frames(FALLEN), colours=True)
    withdrawn = text.index("Withdrawn words.\x1b[0m\n")
    assert text[withdrawn - 6 : withdrawn].endswith("9m")  # SGR 9: crossed out
    assert "rag failed: The answer broke off. What it wrote is withdrawn; direct answers now." in text
    assert text.index("withdrawn; direct") < text.rindex("Lasting words.")


def test_a_source_begins_on_one_line_of_the_terminal() -> None:
    events = [
        ACCEPTED,
        Sources(attempt=1, index_version="v", searched=1, sources=(source(1, "日本語 " * 40),)),
        complete(),
    ]
    lines = on_terminal(*frames(events)).splitlines()
    begun = next(line for line in lines if "日本語" in line)
    assert begun.rstrip().endswith("…")
    assert 95 <= cell_len(begun.rstrip()) <= 100
    assert sum("日本語" in line for line in lines) == 1


def test_where_nothing_had_been_written_nothing_is_said_to_be_withdrawn() -> None:
    text = on_terminal(*frames([ACCEPTED, Attempt(attempt=1, strategy="rag"), *FALLEN[3:]]))
    assert "rag failed: The answer broke off. direct answers now." in text


def test_a_newer_servers_fallback_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    newer = EventFrame(REQUEST, 3, UnknownEvent("fallback", {"to": "graph"}), {})
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content="Withdrawn words.")]), newer)
    assert "Withdrawn" not in text
    assert capsys.readouterr().err == "cicada: What it wrote is withdrawn; the answer begins anew.\n"


def test_a_terminal_shows_the_route_before_the_answer() -> None:
    text = on_terminal(*frames(ANSWER))
    assert text.index("rag · 93% sure: asks about the script") < text.rindex("The bell [1]")


def test_trouble_with_the_connection_is_visible_and_goes_with_it() -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=100, height=30), sources=True)

    def picture() -> str:
        rendered = io.StringIO()
        Console(file=rendered, width=100).print(view._picture())
        return rendered.getvalue()

    view.show(Status("waiting", 2, "no route to host"))
    assert "connection lost, trying again: no route to host" in picture()
    view.show(Status("connecting", 2))
    assert "reconnecting" in picture()
    view.show(Status("connected"))
    assert "connect" not in picture()


def test_in_a_pipe_a_row_of_failures_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    piped(*(Status("waiting", n, "no route to host") for n in range(1, 5)))
    assert capsys.readouterr().err.count("no route to host") == 1


def test_live_text_keeps_to_the_screen() -> None:
    view = LiveView(Console(file=io.StringIO(), force_terminal=True, width=40, height=10), sources=True)
    for frame in frames([ACCEPTED, Chunk(attempt=1, content="\n".join(f"line {n}" for n in range(50)))]):
        view.show(frame)
    rendered = io.StringIO()
    Console(file=rendered, width=40).print(view._picture())
    lines = rendered.getvalue().rstrip("\n").split("\n")
    assert len(lines) <= 10
    assert "line 49" in lines
    assert "line 0" not in lines


def test_an_answer_that_was_not_completed_is_shown_as_far_as_it_came() -> None:
    cancelled = frames([ACCEPTED, Chunk(attempt=1, content="Half of"), Failed.of(codes.Cancelled())])
    assert piped(*cancelled) == "Half of\n\n"


def test_an_answer_that_never_began_shows_nothing() -> None:
    assert piped() == ""


def test_what_a_model_writes_cannot_drive_the_terminal() -> None:
    evil = "red \x1b[31m\x1b]0;title\x07 \x9b2J back\rward \u202eesrever\U000e0041"
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content=evil), complete()]))
    assert not {"\x1b", "\x07", "\x9b", "\r", "\u202e", "\U000e0041"} & set(text)
    assert printable("tab\tand\nline, é, 日本語, 🦗") == "tab\tand\nline, é, 日本語, 🦗"


def test_brackets_in_an_answer_are_text_and_no_markup() -> None:
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content="[bold]x[/bold] [/] :cricket:"), complete()]))
    assert text.startswith("[bold]x[/bold] [/] :cricket:\n")


@pytest.mark.parametrize(
    ("console", "as_json", "kind"),
    [
        (Console(file=io.StringIO(), force_terminal=True), True, JsonLines),
        (Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"}), False, LiveView),
        (Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"}), False, PlainView),
        (Console(file=io.StringIO()), False, PlainView),
    ],
)
def test_the_view_fits_where_the_output_goes(console: Console, as_json: bool, kind: type) -> None:
    assert isinstance(view_for(console, as_json=as_json, sources=True), kind)


def test_a_failure_is_told_in_the_servers_words_with_its_code() -> None:
    assert failure_words(Failed.of(codes.Cancelled())) == "The answer was cancelled. (cancelled)"
    busy = failure_words(Failed.of(codes.ModelUnavailable()))
    assert busy == "The model could not be reached. Asking again can help. (model_unavailable)"
    assert failure_words(UnknownEvent("error", {"code": "new", "message": "Newer."})) == "Newer. (new)"


def test_a_newer_servers_answer_is_shown_as_far_as_it_is_understood() -> None:
    newer = EventFrame(REQUEST, 3, UnknownEvent("complete", {"strategy": "graph", "model": "m-9"}), {})
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content="Words.")]), newer)
    assert text == "Words.\n\nanswered by graph · m-9\n"


def test_text_is_clipped_to_one_line() -> None:
    assert clipped("a  b\nc", 10) == "a b c"
    assert clipped("word " * 10, 12) == "word word w…"


def test_counts_have_their_plural() -> None:
    assert [counted(n, "hit") for n in (0, 1, 1234)] == ["0 hits", "1 hit", "1,234 hits"]
