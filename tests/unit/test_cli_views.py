"""What the command line shows of an answer, for machines, in a pipe and on a terminal."""

from __future__ import annotations

import io
import json
import time
from datetime import datetime
from typing import Any, Literal

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
    Reason,
    Reused,
    Source,
    Sources,
    StrategyFailure,
    Verdict,
    VerdictPassage,
    dump_event,
    event_frame,
)
from cicada.usage.limits import LimitState
from cicada_cli.limit_words import left_lines, limit_words
from cicada_cli.report import verdict_lines
from cicada_cli.text import clipped, counted, printable
from cicada_cli.views import JsonLines, Listed, LiveView, PlainView, View, failure_words, view_for
from cicada_client import EventFrame, Status, UnknownEvent
from cicada_client.frames import parse_frame

REQUEST = "6f1ed002-ab5a-4c2b-b52d-6f2c9a3a7d10"
ACCEPTED = Accepted(route="rag", confidence=0.93, reasoning="asks about the script", strategy="rag")
FALLBACK = Fallback.model_validate(
    {"from": "rag", "to": "direct", "code": "stream_broken", "reason": "The answer was interrupted."}
)


def source(n: int, text: str = "The bell rang twice.", origin: Literal["search", "cache"] = "search") -> Source:
    locator = ScriptLocator(
        episode_id="ep1", episode_name="The Boathouse", chapter_id="c1", message_id=f"m{n}", speaker="Ada"
    )
    told: dict[str, Any] = {"n": n, "passage_id": f"p{n}", "collection": "script", "locator": locator, "score": 0.75}
    return Source(**told, text=text, origin=origin)


def citation(n: int, reason: str | None = None) -> Citation:
    verdict = "unverified" if reason else "verified"
    return Citation.model_validate({"n": n, "verdict": verdict, "sentence": f"Sentence {n}.", "reason": reason})


def complete(**changes: object) -> Complete:
    metrics = Metrics(
        latency_ms=2345,
        attempt_ms=2000,
        first_chunk_ms=812,
        retrieval_latency_ms=12,
        model_calls=1,
        input_tokens=1834,
        output_tokens=120,
        cost_usd=0.00042,
        price_date="2026-11-01",
    )
    told = {
        "attempt": 1,
        "answeredBy": "rag",
        "attempted": ("rag",),
        "model": "m-1",
        "grounded": True,
        "stopReason": "end_turn",
    }
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
        answeredBy="direct",
        attempted=("rag", "direct"),
        grounded=False,
        failed=(StrategyFailure(strategy="rag", code="stream_broken", reason="The answer was interrupted."),),
    ),
]


def frames(events: list[LogEvent]) -> list[EventFrame]:
    parsed = [parse_frame(event_frame(REQUEST, seq, dump_event(event))) for seq, event in enumerate(events, start=1)]
    return [frame for frame in parsed if isinstance(frame, EventFrame)]


def shown(view: View, *items: EventFrame | Status) -> None:
    with view:
        for item in items:
            view.show(item)


def piped(*items: EventFrame | Status, sources: Listed = "cited") -> str:
    out = io.StringIO()
    shown(PlainView(Console(file=out, highlight=False), sources=sources), *items)
    return out.getvalue()


def on_terminal(*items: EventFrame | Status, colours: bool = False) -> str:
    out = io.StringIO()
    colour_system = "standard" if colours else None
    console = Console(file=out, force_terminal=True, color_system=colour_system, width=100, height=30, highlight=False)  # type: ignore[arg-type]
    shown(LiveView(console, sources="cited"), *items)
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
    assert "Sources: 2 cited; 1 other found (--all-sources lists them)" in lines
    assert " [1] ✓ cited  The Boathouse · c1 · m1 · Ada  0.75" in lines
    assert any(line.startswith(" [2] ✗ cited") for line in lines)
    assert not any(line.startswith(" [3]") for line in lines)
    assert "     ✗ not verified: the words differ: “Sentence 2.”" in lines
    assert " [7] ✗ cited  ✗ not verified: no such passage: “Sentence 7.”" in lines
    assert "answered by rag · m-1 · grounded in the sources" in lines
    assert lines[-1] == (
        "2.3 s · first text after 0.8 s · search 12 ms · 1,834 tokens in, 120 out · $0.00042 at prices of 2026-11-01"
    )


def test_all_sources_are_listed_on_request() -> None:
    lines = piped(*frames(ANSWER), sources="all").splitlines()
    assert "Sources: 2 cited, 1 other found" in lines
    assert any(line.startswith(" [3]          The Boathouse") for line in lines)


def test_an_answer_that_uses_no_passage_says_that_the_corpus_does_not_answer() -> None:
    declined = [
        *ANSWER[:3],
        Chunk(attempt=1, content="The passages do not say."),
        Citations(attempt=1, citations=()),
        complete(),
    ]
    lines = piped(*frames(declined)).splitlines()
    told = "The corpus does not answer this: 3 passages found, 0 used (--all-sources lists them)"
    assert lines[2:4] == [told, ""]


def test_small_talk_carries_no_warning() -> None:
    talk = Accepted(route="direct", confidence=0.9, reasoning="a greeting", strategy="direct")
    done = complete(answeredBy="direct", attempted=("direct",), grounded=False)
    assert "answered by direct · m-1" in piped(*frames([talk, Chunk(attempt=1, content="Hello."), done])).splitlines()


def test_the_sources_of_an_answer_without_markers_are_not_attributed() -> None:
    events: list[LogEvent] = [event for event in ANSWER if not isinstance(event, Citations)]
    at = next(at for at, event in enumerate(events) if event.type == "complete")
    events.insert(at, Citations(attempt=1, citations=(), not_attributed=(1, 2, 3)))
    told = "Sources: 3 passages found, 0 cited (--all-sources lists them)"
    assert told in piped(*frames(events)).splitlines()


def failures(*strategies: str) -> tuple[StrategyFailure, ...]:
    return tuple(
        StrategyFailure.model_validate({"strategy": strategy, "code": "model_busy", "reason": "The model is busy."})
        for strategy in strategies
    )


@pytest.mark.parametrize(
    ("failed", "answered_by", "way"),
    [
        (("hybrid", "rag", "cag"), "direct", "answered by direct after hybrid, rag and cag failed"),
        (("rag",), "rag", "answered by rag (started again)"),
        (("cag", "rag"), "rag", "answered by rag (started again) after cag failed"),
    ],
)
def test_the_whole_way_of_an_answer_is_told(failed: tuple[str, ...], answered_by: str, way: str) -> None:
    done = complete(answeredBy=answered_by, attempted=(*failed, answered_by), failed=failures(*failed))
    lines = piped(*frames([ACCEPTED, Chunk(attempt=1, content="So."), done])).splitlines()
    assert f"{way} · m-1 · grounded in the sources" in lines
    assert [line for line in lines if "(model_busy)" in line] == [
        f"{strategy} failed: The model is busy. (model_busy)" for strategy in failed
    ]


def test_a_strategy_that_is_taken_over_is_said_to_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    lost = {"from": "rag", "to": "rag", "code": "worker_lost", "reason": "The answer's worker was lost."}
    piped(*frames([ACCEPTED, Attempt(attempt=1, strategy="rag"), Fallback.model_validate(lost)]))
    assert capsys.readouterr().err == "cicada: rag failed: The answer's worker was lost. Starting rag again.\n"


def reused(use: str, question: str = "Who rang the bell?") -> Reused:
    told = {"use": use, "question": question, "answeredAtMs": 1_795_000_000_000, "similarity": 0.973}
    return Reused.model_validate(told)


def with_sources(**changes: object) -> list[LogEvent]:
    found = Sources(attempt=1, index_version="v1", searched=0, sources=(source(1),)).model_copy(update=changes)
    return [ACCEPTED, Attempt(attempt=1, strategy="cag"), found, Chunk(attempt=1, content="It rang [1].")]


def test_an_answer_that_was_given_before_says_for_which_question_and_when() -> None:
    free = Metrics(latency_ms=90, attempt_ms=40, first_chunk_ms=85, cache_latency_ms=9, sources_used=1)
    done = complete(answeredBy="cag", attempted=("cag",), metrics=free)
    lines = piped(*frames([*with_sources(reused=reused("answer")), done])).splitlines()
    assert "Repeats the answer to “Who rang the bell?” (97% similar, 2026-11-18 11:06 UTC)" in lines
    assert lines[-1] == "0.1 s · first text after 0.1 s · cache 9 ms · no model call"


def test_an_answer_written_from_an_earlier_ones_passages_says_so() -> None:
    events = [*with_sources(reused=reused("contexts"), sources=(source(1, origin="cache"),)), complete()]
    lines = piped(*frames(events), sources="all").splitlines()
    assert any(line.startswith("Uses the sources of an earlier question: “Who rang") for line in lines)
    assert any(line.endswith("Ada  0.75  from an earlier answer") for line in lines)


def test_passages_that_are_only_offered_are_no_sources_of_the_answer() -> None:
    text = piped(*frames([*with_sources(offered=True), complete(answeredBy="direct", grounded=False)]))
    assert "The search found 1 passage before it failed; the answer does not use them" in text
    assert "Sources:" not in text


def test_a_source_says_why_it_is_there_but_for_being_near() -> None:
    why = (
        Reason(kind="entity", name="Ada", section="people", matched="Ada's", confidence=0.9),
        Reason(kind="intention", name="npc_history", section="people", confidence=0.8),
        Reason(kind="intention", name="npc_history", section="events", confidence=0.8),
        Reason(kind="similarity"),
    )
    told = source(1).model_copy(update={"why": why})
    lines = piped(*frames([*with_sources(sources=(told,)), complete()]), sources="all").splitlines()
    assert any(line.endswith("Ada  0.75  names Ada, for npc_history") for line in lines)


def test_a_question_that_was_completed_is_shown_as_it_was_understood() -> None:
    text = piped(*frames([*with_sources(query="What did Ada say after the bell rang?"), complete()]))
    assert "understood as: What did Ada say after the bell rang?\n" in text
    assert "understood as" not in piped(*frames(ANSWER))


@pytest.mark.parametrize(
    ("changes", "doing"),
    [
        ({"searched": 12}, "reading 1 source of 12 passages searched"),
        ({}, "reading 1 source"),
        ({"reused": reused("answer")}, "repeating an earlier answer"),
        ({"offered": True}, "answering without sources"),
    ],
)
def test_a_terminal_says_what_is_done_with_what_was_found(changes: dict[str, object], doing: str) -> None:
    view = LiveView(Console(file=io.StringIO(), force_terminal=True, width=100, height=30), sources="cited")
    for frame in frames(with_sources(**changes)[:3]):
        view.show(frame)
    rendered = io.StringIO()
    Console(file=rendered, width=100).print(view._picture())
    assert rendered.getvalue().rstrip().endswith(f" {doing}")


def test_an_earlier_question_cannot_drive_the_terminal_either() -> None:
    events = with_sources(reused=reused("answer", "Who \x1b[31m rang?"), query="red \x1b]0;title\x07")
    assert not {"\x1b", "\x07"} & set(piped(*frames([*events, complete()])))


def test_sources_are_left_out_on_request() -> None:
    assert "Sources" not in piped(*frames(ANSWER), sources="none")


def test_a_pipe_never_carries_withdrawn_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = piped(*frames(FALLEN))
    assert text.startswith("Lasting words.\n")
    assert "Withdrawn" not in text
    assert "rag failed: The answer was interrupted. (stream_broken)" in text
    assert "answered by direct after rag failed · m-1 · not grounded in sources" in text
    assert "Trying direct." in capsys.readouterr().err


def test_a_long_line_is_not_broken_in_a_pipe() -> None:
    long = "word " * 100
    assert long.strip() in piped(*frames([ACCEPTED, Chunk(attempt=1, content=long), complete()]))


def test_a_terminal_shows_withdrawn_text_struck_out_and_says_why() -> None:
    text = on_terminal(*frames(FALLEN), colours=True)
    withdrawn = text.index("Withdrawn words.\x1b[0m\n")
    assert text[withdrawn - 6 : withdrawn].endswith("9m")  # SGR 9: crossed out
    assert "rag failed: The answer was interrupted. Its text is withdrawn. Trying direct." in text
    assert text.index("withdrawn. Trying") < text.rindex("Lasting words.")


def test_a_terminal_shows_no_word_of_a_blocked_answer_again() -> None:
    blocked = Failed(code="answer_blocked", message="No.", retryable=False)
    text = on_terminal(*frames([*FALLEN[:3], blocked]), colours=True)
    assert "Withdrawn words." not in text[text.index("The text above was withdrawn.") :]
    assert "9m" not in text  # SGR 9: crossed out


def test_a_source_begins_on_one_line_of_the_terminal() -> None:
    events: list[LogEvent] = [
        ACCEPTED,
        Sources(attempt=1, index_version="v", searched=1, sources=(source(1, "日本語 " * 40),)),
        Chunk(attempt=1, content="So [1]."),
        Citations(attempt=1, citations=(citation(1),)),
        complete(),
    ]
    lines = on_terminal(*frames(events)).splitlines()
    begun = next(line for line in lines if "日本語" in line)
    assert begun.rstrip().endswith("…")
    assert 95 <= cell_len(begun.rstrip()) <= 100
    assert sum("日本語" in line for line in lines) == 1


def test_where_nothing_had_been_written_nothing_is_said_to_be_withdrawn() -> None:
    text = on_terminal(*frames([ACCEPTED, Attempt(attempt=1, strategy="rag"), *FALLEN[3:]]))
    assert "rag failed: The answer was interrupted. Trying direct." in text


def test_a_newer_servers_fallback_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    newer = EventFrame(REQUEST, 3, UnknownEvent("fallback", {"to": "graph"}), {})
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content="Withdrawn words.")]), newer)
    assert "Withdrawn" not in text
    assert capsys.readouterr().err == "cicada: The text is withdrawn. The answer starts again.\n"


def test_a_terminal_shows_the_strategy_that_answered_and_no_guess() -> None:
    text = on_terminal(*frames(FALLEN))
    assert "answered by direct after rag failed" in text
    assert "asks about the script" not in text


def test_trouble_with_the_connection_is_visible_and_goes_with_it() -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, force_terminal=True, width=100, height=30), sources="cited")

    def picture() -> str:
        rendered = io.StringIO()
        Console(file=rendered, width=100).print(view._picture())
        return rendered.getvalue()

    view.show(Status("waiting", 2, "no route to host"))
    assert "connection lost, reconnecting: no route to host" in picture()
    view.show(Status("connecting", 2))
    assert "reconnecting" in picture()
    view.show(Status("connected"))
    assert "connect" not in picture()


def test_in_a_pipe_a_row_of_failures_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    piped(*(Status("waiting", n, "no route to host") for n in range(1, 5)))
    assert capsys.readouterr().err.count("no route to host") == 1


def test_live_text_keeps_to_the_screen() -> None:
    view = LiveView(Console(file=io.StringIO(), force_terminal=True, width=40, height=10), sources="cited")
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
    assert isinstance(view_for(console, as_json=as_json, sources="cited"), kind)


def test_a_failure_is_told_in_the_servers_words_with_its_code() -> None:
    assert failure_words(Failed.of(codes.Cancelled())) == "The answer was cancelled. (cancelled)"
    busy = failure_words(Failed.of(codes.ModelUnavailable()))
    assert busy == "The model is unavailable. Try again. (model_unavailable)"
    assert failure_words(UnknownEvent("error", {"code": "new", "message": "Newer."})) == "Newer. (new)"


def limit(**changes: object) -> LimitState:
    told = {"account": "user", "limit": "tokensDay", "most": 200_000, "left": 0}
    return LimitState.model_validate(told | changes)


NOON = datetime(2026, 11, 20, 12, 0)


def ms(month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return int(datetime(2026, month, day, hour, minute).timestamp() * 1000)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            {"limit": "requestsMinute", "most": 10, "resetsAtMs": ms(11, 20, 12, 1) - 1},
            "You have reached your limit of 10 questions a minute. You can ask again at 12:01.",
        ),
        (
            {"left": 12_000, "resetsAtMs": ms(11, 21, 1)},
            "You have reached your limit of 200,000 tokens a day. 12,000 left, which is too little for a question. "
            "You can ask again tomorrow at 01:00.",
        ),
        (
            {"account": "group", "group": "wri\x1bters", "limit": "usdMonth", "most": 25, "left": 0.299}
            | {"resetsAtMs": ms(12, 1, 1)},
            "Group writers has reached its limit of $25.00 a month. $0.29 left, which is too little for a question. "
            "You can ask again on 1 December at 01:00.",
        ),
        (
            {"account": "deployment", "limit": "usdDay", "most": None, "left": None, "resetsAtMs": ms(11, 20, 23)},
            "All users together have reached the limit of cost a day. You can ask again at 23:00.",
        ),
        (
            {"limit": "requestsOpen", "most": 2},
            "You have reached your limit of 2 questions at a time. Ask again when an answer is complete.",
        ),
        (
            {"limit": "requestsOpen", "most": 1},
            "You have reached your limit of 1 question at a time. Ask again when an answer is complete.",
        ),
        ({"limit": "requestsOpen", "most": 0}, "You have reached your limit of 0 questions at a time."),
        ({"most": 0, "resetsAtMs": ms(11, 21)}, "You have reached your limit of 0 tokens a day."),
        (
            {"account": "deployment", "limit": "stopped", "most": None, "left": None},
            "Questions are stopped: an administrator has switched off answers.",
        ),
    ],
)
def test_a_refused_limit_is_told_by_the_clock_of_who_asks(told: dict[str, object], said: str) -> None:
    assert limit_words(limit(**told), NOON) == said


def test_what_is_left_is_told_near_a_limits_end() -> None:
    limits = [
        limit(left=39_999, resetsAtMs=ms(11, 21, 1)),
        limit(left=40_000, resetsAtMs=ms(11, 21, 1)),
        limit(account="group", group="writers", limit="usdDay", most=5, left=0.5, resetsAtMs=ms(11, 20, 23)),
        limit(limit="requestsMinute", most=10, resetsAtMs=ms(11, 20, 12)),
        limit(limit="requestsOpen", most=2),
    ]
    said = [
        "39,999 of 200,000 tokens a day left until tomorrow at 01:00.",
        "$0.50 of $5.00 a day left for group writers until 23:00.",
    ]
    assert list(left_lines(limits, NOON)) == said


def test_an_answer_ends_with_what_is_left() -> None:
    soon = int(time.time() * 1000) + 3_600_000
    ending = complete(limits=(limit(left=100, resetsAtMs=soon),))
    assert "100 of 200,000 tokens a day left until " in piped(*frames([*ANSWER[:-1], ending])).splitlines()[-1]


def test_a_newer_servers_answer_is_shown_as_far_as_it_is_understood() -> None:
    newer = EventFrame(REQUEST, 3, UnknownEvent("complete", {"answeredBy": "graph", "model": "m-9"}), {})
    text = piped(*frames([ACCEPTED, Chunk(attempt=1, content="Words.")]), newer)
    assert text == "Words.\n\nanswered by graph · m-9\n"


def test_text_is_clipped_to_one_line() -> None:
    assert clipped("a  b\nc", 10) == "a b c"
    assert clipped("word " * 10, 12) == "word word w…"


def test_counts_have_their_plural() -> None:
    assert [counted(n, "hit") for n in (0, 1, 1234)] == ["0 hits", "1 hit", "1,234 hits"]


def test_a_verdict_is_shown_for_and_against() -> None:
    out = Console(file=io.StringIO(), width=80)
    verdict = Verdict(attempt=1, verdict="contradicted", given=True, against=(VerdictPassage(n=1, strength="strong"),))
    for line in verdict_lines(verdict, [source(1, "Nobody rang \x1b[2J it.")]):
        out.print(line)
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    assert shown.splitlines()[:3] == ["Verdict: contradicted", "  For: nothing", "  Against"]
    assert "[1] strong  The Boathouse" in shown
    assert "\x1b" not in shown


def test_a_verdict_that_was_not_given_says_so() -> None:
    lines = [line.plain for line in verdict_lines(Verdict(attempt=1, verdict="open", given=False), [])]
    assert lines[:2] == ["Verdict: open", "The agent gave no verdict. It collected these passages:"]


def test_a_source_that_several_sentences_cite_shows_what_became_of_each() -> None:
    told = [
        {"n": 1, "verdict": "verified", "sentence": "Sentence 1."},
        {"n": 1, "verdict": "unchecked", "sentence": "Sentence 2.", "reason": "only a judge can tell"},
    ]
    citations = Citations.model_validate({"attempt": 1, "citations": told})
    lines = piped(*frames([*ANSWER[:5], citations, ANSWER[6]])).splitlines()
    at = lines.index(" [1] · cited  The Boathouse · c1 · m1 · Ada  0.75")
    assert lines[at + 2 : at + 4] == [
        "     ✓ verified for: “Sentence 1.”",
        "     · not checked: only a judge can tell: “Sentence 2.”",
    ]
