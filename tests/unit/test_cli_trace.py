"""The story of a request, from the lines that the functions log: attempts, sums, words and the verdict."""

from __future__ import annotations

import io
import json
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from rich.console import Console

from cicada.request_trace import Step, insights_query
from cicada_cli.argument_types import duration
from cicada_cli.exits import UsageError
from cicada_cli.request_trace import LogLine, RequestTrace, TracedSpend, askers
from cicada_cli.trace import canonical, ends_query, plain, show
from cicada_cli.trace_words import saved_query, sentence, sums, verdict

REQUEST = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
BEGAN_MS = 1_795_228_800_000


def line(
    after_ms: int, step: str | None = None, *, at: str = "processor", level: str = "INFO", **fields: Any
) -> LogLine:
    """A line of a function's log; ``at`` names the invocation that wrote it."""
    told = {"level": level, "request_id": REQUEST, "function_request_id": at, "message": "…", **fields}
    return LogLine(BEGAN_MS + after_ms, "Cicada-Answer-Logs", {**told, "step": step} if step else told)


def accepted(strategy: str = "rag") -> list[LogLine]:
    return [
        line(0, "accepted", route=strategy, confidence=0.93, strategy=strategy),
        line(8, "started", strategy=strategy),
    ]


def attempt(after_ms: int, number: int, strategy: str, worker: str) -> LogLine:
    return line(after_ms, "attempt", at=worker, attempt=number, strategy=strategy, worker=worker, reserved_calls=number)


def model_call(after_ms: int, worker: str, **changes: Any) -> LogLine:
    told = {"purpose": "answer", "model_id": "m-1", "calls": 1, "input_tokens": 1800, "output_tokens": 120}
    took = {"cost_usd": 0.0004, "took_ms": 900, "first_piece_ms": 300}
    return line(after_ms, "model_call", at=worker, **{**told, **took, **changes})


def delivered(after_ms: int, worker: str, **changes: Any) -> LogLine:
    return line(
        after_ms, "delivered", at=worker, **{"last_seq": 9, "writes": 4, "posts": 5, "posts_failed": 0, **changes}
    )


def complete(after_ms: int, number: int, attempted: Sequence[str], worker: str, *failed: str) -> LogLine:
    return line(
        after_ms,
        "complete",
        at=worker,
        attempt=number,
        answered_by=attempted[-1],
        attempted=list(attempted),
        failed=list(failed),
        model_id="m-1",
        grounded=True,
        stop_reason="end_turn",
        first_chunk_ms=640,
    )


RAG = [
    *accepted(),
    attempt(120, 1, "rag", "w-1"),
    line(
        180,
        "retrieved",
        at="w-1",
        found=8,
        used=6,
        used_from_cache=0,
        searched=712,
        engine="shards",
        index_version="v7",
        took_ms=14,
        degraded=[],
    ),
    model_call(1_900, "w-1"),
    delivered(1_990, "w-1"),
    complete(2_000, 1, ["rag"], "w-1"),
    line(2_040, "kept", at="w-1", where="cache"),
]
FALLEN = [
    *accepted("hybrid"),
    attempt(120, 1, "hybrid", "w-1"),
    line(150, "looked_up", at="w-1", outcome="miss", similarity=0.62, compared=40, took_ms=9),
    model_call(900, "w-1", output_tokens=30, fault="stream_broken", level="WARNING"),
    line(905, "fault", at="w-1", level="WARNING", attempt=1, code="stream_broken", why="no messageStop"),
    delivered(910, "w-1", posts_failed=1),
    attempt(960, 2, "rag", "w-2"),
    line(970, "fault", at="w-2", dependency="cache", code="cache_unavailable", why="timeout", level="WARNING"),
    model_call(2_000, "w-2", cost_usd=None),
    complete(2_100, 2, ["hybrid", "rag"], "w-2", "hybrid: stream_broken"),
]
KILLED = [
    *accepted(),
    attempt(120, 1, "rag", "w-1"),
    line(20_000, "resumed", after=3, last_seq=4, outcome="live", at="processor-2"),
    line(20_010, "recovered", why="lease_out", action="restarted", by="resume", at="processor-2"),
    attempt(20_100, 2, "rag", "w-2"),
    complete(21_000, 2, ["rag", "rag"], "w-2", "rag: worker_lost"),
]


def asked_by(asker: str, lines: Sequence[LogLine]) -> list[LogLine]:
    return [LogLine(one.at_ms, one.group, {**one.fields, "asker": asker}) for one in lines]


def story(lines: Sequence[LogLine]) -> RequestTrace:
    return RequestTrace.of(REQUEST, lines)


def test_lines_are_told_in_order_whatever_order_they_come_in() -> None:
    assert [one.step for one in story(RAG[::-1]).lines] == [one.step for one in RAG]


def test_lines_of_one_millisecond_stand_in_the_order_in_which_such_things_happen() -> None:
    at_once = [complete(5, 1, ["rag"], "w"), attempt(5, 1, "rag", "w"), line(5, "started"), line(5, "accepted")]
    assert [one.step for one in story(at_once).lines] == ["accepted", "started", "attempt", "complete"]


def test_an_attempt_has_the_lines_of_its_worker() -> None:
    told = story(FALLEN)
    assert [(one.number, one.strategy, one.outcome, one.code) for one in told.attempts] == [
        (1, "hybrid", "failed", "stream_broken"),
        (2, "rag", "answered", None),
    ]
    assert [one.step for one in told.attempts[0].lines] == ["attempt", "looked_up", "model_call", "fault", "delivered"]
    assert told.attempts[0].took_ms == 790
    assert told.attempt_of(FALLEN[0]) is None


def test_what_a_strategy_can_do_without_does_not_fail_its_attempt() -> None:
    lines = [*accepted(), attempt(10, 1, "rag", "w-1"), FALLEN[8]]
    assert story([*lines[:-1], line(20, "fault", at="w-1", dependency="cache", code="c")]).attempts[0].outcome == (
        "under_way"
    )


def test_an_attempt_that_tells_of_no_end_was_cut_off_once_the_request_went_on() -> None:
    told = story(KILLED)
    assert [one.outcome for one in told.attempts] == ["cut_off", "answered"]
    assert [one.outcome for one in story(KILLED[:3]).attempts] == ["under_way"]


@pytest.mark.parametrize(
    ("last", "outcome", "code"),
    [
        (line(30, "superseded", at="w-1", why="a later attempt"), "superseded", None),
        (line(30, at="w-1", level="ERROR", message="attempt failed", exception_name="KeyError"), "failed", "internal"),
        (line(30, "ended", at="w-1", code="answer_too_long"), "failed", "answer_too_long"),
    ],
)
def test_how_an_attempt_can_end(last: LogLine, outcome: str, code: str | None) -> None:
    (one,) = story([*accepted(), attempt(20, 1, "rag", "w-1"), last]).attempts
    assert (one.outcome, one.code) == (outcome, code)


def test_lines_without_an_invocation_are_told_apart_by_the_attempts_number() -> None:
    bare = [LogLine(one.at_ms, one.group, {**one.fields, "function_request_id": None}) for one in FALLEN]
    assert [len(one.lines) for one in story(bare).attempts] == [2, 2]


def test_requests_of_several_users_under_one_id_are_told_apart() -> None:
    swept = line(30_000, "recovered", why="lease_out", action="ended", by="sweep", at="sweep-1")
    mixed = [*asked_by("2b", FALLEN), *asked_by("1a", RAG), swept]
    assert askers(mixed) == ("2b", "1a")
    one, other = (RequestTrace.of(REQUEST, mixed, asker=asker) for asker in ("1a", "2b"))
    assert [attempt.strategy for attempt in one.attempts] == ["rag"]
    assert [attempt.outcome for attempt in other.attempts] == ["failed", "answered"]
    assert swept in one.lines
    assert swept in other.lines
    assert one.spent == story(RAG).spent
    assert askers(RAG) == ()
    assert plain(one)["asker"] == "1a"


def test_an_attempts_lines_may_be_equal() -> None:
    twice = [*accepted(), attempt(20, 1, "rag", "w-1"), model_call(30, "w-1"), model_call(30, "w-1")]
    told = story(twice)
    assert told.attempt_of(twice[3]) is told.attempt_of(twice[4]) is told.attempts[0]


def test_what_is_missing_is_said_and_cuts_no_attempt_off() -> None:
    whole, cut = story(KILLED), RequestTrace.of(REQUEST, KILLED, cut=True)
    assert [one.outcome for one in cut.attempts] == ["under_way", "answered"]
    assert verdict(cut).startswith(verdict(whole))
    assert "more than 10,000 log lines" in verdict(cut)
    assert (plain(cut)["cut"], plain(whole)["cut"]) == (True, False)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400, True, "3", None])
def test_a_number_that_is_none_counts_nothing(value: Any) -> None:
    assert line(0, "resumed", last_seq=value).count("last_seq") == 0
    assert line(0, "model_call", took_ms=value).number("took_ms") is None
    assert "after event 0 of 0" in sentence(line(0, "resumed", after=value))


def test_calls_of_all_attempts_are_summed() -> None:
    assert story(RAG).spent == TracedSpend(1, 1800, 120, 0.0004)
    assert story(FALLEN).spent == TracedSpend(2, 3600, 150, 0.0004, unpriced=1)
    assert story(FALLEN).attempts[0].spent == TracedSpend(1, 1800, 30, 0.0004)
    assert story(accepted()).spent == TracedSpend()


def test_a_call_that_failed_before_its_first_piece_is_not_charged() -> None:
    throttled = model_call(9, "w", calls=2, cost_usd=None, first_piece_ms=None, fault="model_busy", output_tokens=0)
    assert TracedSpend.of([throttled]).unpriced == 0
    assert TracedSpend.of([model_call(9, "w", cost_usd=None, fault="stream_broken")]).unpriced == 1


def test_the_traceback_of_a_failure_that_a_step_tells_of_is_left_out_in_brief() -> None:
    traceback = line(906, at="w-1", level="ERROR", message="attempt failed", exception_name="StreamBroken")
    elsewhere = line(907, at="w-9", level="ERROR", message="every strategy failed")
    slow = line(908, at="w-1", level="WARNING", message="subscriber busy")
    told = story([*FALLEN, traceback, elsewhere, slow])
    brief = list(told.in_brief())
    assert traceback not in brief
    assert {elsewhere.message, slow.message} <= {one.message for one in brief}
    assert told.attempts[0].code == "stream_broken"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (RAG, "Answered by rag, grounded, in 2.00 s."),
        (FALLEN, "Answered by rag after hybrid: stream_broken, grounded, in 2.10 s."),
        (KILLED, "Answered by rag after rag: worker_lost, grounded, in 21.0 s."),
        (
            [*accepted(), line(5_000, "ended", code="all_strategies_failed", failed=["rag: model_busy", "direct: x"])],
            "Ended with all_strategies_failed after rag: model_busy, direct: x, in 5.00 s.",
        ),
        ([*accepted(), line(40, "ended", code="cancelled")], "Ended with cancelled, in 0.04 s."),
    ],
)
def test_the_verdict(lines: Sequence[LogLine], told: str) -> None:
    assert verdict(story(lines)) == told


@pytest.mark.parametrize(
    ("lines", "query"),
    [
        (RAG, "Story of a request"),
        (FALLEN, "Why answers fell back"),
        (KILLED, "Lost workers"),
        ([*KILLED[:3], complete(900, 2, ["rag", "direct"], "w-2", "rag: worker_died")], "Functions that failed"),
        ([*accepted(), complete(900, 2, ["cag", "rag"], "w-2", "cag: cache_miss")], "Story of a request"),
        ([*RAG, FALLEN[8]], "Faults by dependency"),
        ([*accepted(), line(40, "ended", code="all_strategies_failed")], "Requests without an answer"),
        ([*accepted(), line(40, "ended", code="cancelled")], "Story of a request"),
        (
            [*RAG[:3], line(40, "guardrail", outcome="blocked"), line(41, "ended", code="answer_blocked")],
            "Guardrail interventions",
        ),
        ([line(0, message="question refused by a limit", level="WARNING", code="limit_reached")], "Refused by limits"),
    ],
)
def test_the_saved_query_that_shows_more(lines: Sequence[LogLine], query: str) -> None:
    assert saved_query(story(lines)) == query


def test_a_request_without_an_end_is_said_to_have_none() -> None:
    assert verdict(story(KILLED[:3])).startswith("The log has no end: the last line was written 0.12 s after")


def test_the_sums() -> None:
    assert sums(story(RAG)) == (
        "1 attempt · 1 model call · 1,800 tokens in, 120 out · $0.00040 · 5 posts · first text after 0.64 s"
    )
    assert sums(story(FALLEN)) == (
        "2 attempts · 2 model calls · 3,600 tokens in, 150 out · $0.00040 and 1 call of unknown cost · 2 faults · "
        "5 posts, 1 failed · "
        "first text after 0.64 s"
    )
    assert sums(story(KILLED[:5])) == "1 attempt · no model call · 1 resume · 1 recovery"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (RAG[0], "route rag, 93% confidence; starts with rag"),
        (RAG[1], "workflow started with rag"),
        (line(0, "asked_again", last_seq=3), "repeated question; the log ends with event 3"),
        (KILLED[3], "after event 3 of 4: live"),
        (KILLED[4], "restarted by the resume: lease_out"),
        (RAG[2], "rag starts (worker w-1)"),
        (
            line(0, "attempt", strategy="rag", failed=["rag: worker_timeout"]),
            "rag starts after rag: worker_timeout (worker unknown)",
        ),
        (line(0, "question_completed", took_ms=210, by="model"), "from the conversation, by model, 210 ms"),
        (
            FALLEN[3],
            "no similar earlier answer, similarity 0.62, 40 answers compared, 9 ms",
        ),
        (
            line(0, "gathered", intentions=["notes.npc_history"], named=1, places=3, chosen=7, query_ms=21.4),
            "intentions notes.npc_history, 1 name in 3 sections, 7 passages selected, queried in 21 ms",
        ),
        (line(0, "gathered", chosen=1), "no collection selected, 0 names in 0 sections, 1 passage selected"),
        (RAG[3], "8 passages found, 6 used, 712 searched, shards, version v7, search 14 ms"),
        (
            line(
                0,
                "retrieved",
                found=3,
                used=3,
                used_from_cache=2,
                engine="shards",
                index_version="v",
                cache_ms=8,
                degraded=["words_only"],
            ),
            "3 passages found, 3 used, 2 from earlier answers, shards, version v, cache 8 ms, degraded: words_only",
        ),
        (RAG[4], "m-1, 1,800 tokens in, 120 out, $0.00040, first text 300 ms, 900 ms"),
        (
            line(0, "model_call", purpose="complete_question", model_id="m", calls=2, fault="model_busy"),
            "m to complete the question, 2 calls, ended with model_busy",
        ),
        (
            line(0, "fault", message="dependency skipped", dependency="index", code="dependency_down", why="it fails"),
            "dependency skipped [index] (dependency_down): it fails",
        ),
        (line(0, "fault", message="attempt failed"), "attempt failed"),
        (
            line(0, "superseded", message="attempt not begun", why="claimed"),
            "attempt not begun: another execution handles the request",
        ),
        (line(0, "superseded", message="m", why="attempt 3 stands"), "m: attempt 3 stands"),
        (FALLEN[6], "up to event 9, 4 writes, 5 posts, 1 failed"),
        (RAG[6], "answered by rag, m-1, end_turn, grounded"),
        (line(0, "ended", code="cancelled"), "error cancelled"),
        (line(0, "ended", code="c", failed=["rag: x"]), "error c after rag: x"),
        (RAG[7], "the answer is stored in the cache"),
        (line(0, message="attempt failed", exception_name="KeyError"), "attempt failed (KeyError)"),
        (line(0, "of_a_newer_version", message="something new"), "something new"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else value.step,
)
def test_a_line_in_words(told: LogLine, words: str) -> None:
    assert sentence(told) == words


@pytest.mark.parametrize("step", get_args(Step))
def test_every_step_has_words_even_where_its_fields_are_missing(step: str) -> None:
    assert sentence(LogLine(0, "g", {"step": step, "message": "a newer version's words"})) != ""


def shown(lines: Sequence[LogLine], *, every_line: bool = False, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, color_system=None, width=140, highlight=False)
    show(story(lines), console, every_line=every_line)
    return out.getvalue()


def test_a_pipe_gets_a_line_a_step_then_the_attempts_the_verdict_and_the_sums(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ending = shown(FALLEN).splitlines()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "+0.000 s\t\taccepted\troute hybrid, 93% confidence; starts with hybrid"
    assert lines[2] == "+0.120 s\t1\tattempt\thybrid starts (worker w-1)"
    assert len(lines) == len(FALLEN)
    assert ending[0].startswith("attempt 1: hybrid failed (stream_broken), 0.79 s · 1 model call · 1,800 tokens in")
    assert ending[1].startswith("attempt 2: rag answered, 1.14 s")
    assert ending[2] == verdict(story(FALLEN))
    assert ending[3] == sums(story(FALLEN))


def test_a_terminal_gets_a_table() -> None:
    text = shown(KILLED, terminal=True)
    assert f"request {REQUEST}, 2026-11-21T02:40:00.000+00:00" in text
    assert "attempt 1: rag was cut off: its worker logged no end, 0.00 s · no model call" in text
    row = next(row for row in text.splitlines() if "recovered" in row)
    assert row.split() == ["+20.010", "s", "recovered", "restarted", "by", "the", "resume:", "lease_out"]


def test_lines_beside_the_story_are_shown_where_they_tell_of_trouble_or_where_all_are_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    beside = [line(10, message="a detail"), line(20, message="subscriber busy", level="WARNING")]
    shown([*accepted(), *beside])
    brief = capsys.readouterr().out
    assert "+0.020 s\t\twarning\tsubscriber busy" in brief
    assert "a detail" not in brief
    shown([*accepted(), *beside], every_line=True)
    assert "+0.010 s\t\tinfo\ta detail" in capsys.readouterr().out


def test_what_stands_in_a_line_cannot_drive_the_terminal() -> None:
    evil = line(0, "accepted", route="\x1b[31m\x1b]0;title\x07", strategy="rag")
    assert "\x1b]" not in shown([evil], terminal=True)
    assert "\x07" not in shown([evil], terminal=True)


FORGED = "x\nattempt 9: forged answered\t+9.9 s\u2028\x85\u200b\u061c\u202e\u2066\U000e0041\ufeff"


def test_what_stands_in_a_line_begins_no_row_and_no_field_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        line(0, "accepted", route=FORGED, strategy=FORGED),
        line(10, "attempt", at="w", attempt=1, strategy=FORGED, worker=FORGED),
        line(20, "fault", at="w", attempt=1, code=FORGED, why=FORGED, message=FORGED),
        line(30, FORGED, level="WARNING", message=FORGED),
        line(40, at="w", level=FORGED, message=FORGED, exception_name=FORGED),
        line(50, "ended", code=FORGED, failed=[FORGED]),
    ]
    ending = shown(lines, every_line=True)
    rows = capsys.readouterr().out
    assert len(rows.splitlines()) == len(lines)
    assert all(row.count("\t") == 3 for row in rows.splitlines())
    assert len(ending.splitlines()) == 3
    assert not set(ending + rows) & set("\u2028\x85\u200b\u061c\u202e\u2066\U000e0041\ufeff")


def test_a_field_of_a_line_cannot_stand_for_where_and_when_it_was_logged() -> None:
    (told,) = plain(story([line(0, "started", at="processor", logGroup="forged", afterMs=9)]))["lines"]
    assert (told["logGroup"], told["afterMs"]) == ("Cicada-Answer-Logs", 0)


def test_the_query_for_the_end_reads_from_the_end() -> None:
    assert ends_query(REQUEST, ("@message",)).splitlines()[1:] == [
        f'| filter request_id = "{REQUEST}"',
        '| filter step = "complete" or step = "ended"',
        "| sort @timestamp desc",
        "| limit 100",
    ]


def test_machines_get_everything() -> None:
    told = json.loads(json.dumps(plain(story(FALLEN))))
    assert (told["requestId"], told["outcome"], told["answeredBy"], told["code"]) == (REQUEST, "complete", "rag", None)
    assert (told["beganAt"], told["tookMs"]) == ("2026-11-21T02:40:00.000+00:00", 2100)
    assert told["spent"] == {
        "modelCalls": 2,
        "inputTokens": 3600,
        "outputTokens": 150,
        "costUsd": 0.0004,
        "unpricedCalls": 1,
    }
    assert [(one["attempt"], one["outcome"], one["afterMs"]) for one in told["attempts"]] == [
        (1, "failed", 120),
        (2, "answered", 960),
    ]
    assert len(told["lines"]) == len(FALLEN)
    assert told["lines"][2]["worker"] == "w-1"
    assert plain(story(KILLED[:3]))["outcome"] == "open"


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("24h", 86_400), ("7d", 604_800)])
def test_durations(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0h", "24", "h", "-1h", "1.5h", "1w", "100000h", "٣h"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a duration"):
        duration(text)


def test_a_request_id_is_a_uuid_in_lower_case() -> None:
    assert canonical(REQUEST.upper()) == REQUEST
    with pytest.raises(UsageError, match="must be a UUID"):
        canonical('x" or 1=1')


def test_the_query_asks_for_the_lines_of_one_request_oldest_first() -> None:
    assert insights_query(REQUEST, ("step", "@message")) == (
        f'fields @timestamp, step, @message\n| filter request_id = "{REQUEST}"\n| sort @timestamp asc\n| limit 10000'
    )
