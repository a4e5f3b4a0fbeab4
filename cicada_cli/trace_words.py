"""The steps of a request's timeline as text, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cicada.errors import CacheMiss, LimitReached, SpendingStopped
from cicada.request_trace import MOST_LINES, NOT_FAULTS
from cicada_cli.request_trace import AttemptTrace, LogLine, RequestTrace, TracedSpend, came_to_nothing
from cicada_cli.text import counted

_SUPERSEDED = {
    "gone": "the request has expired",
    "claimed": "another execution handles the request",
    "ended": "the request had ended",
}

_LIMITS = (LimitReached.code, SpendingStopped.code)

CUT = f" The request has more than {MOST_LINES:,} log lines, the limit of a query: lines before its end are missing."


def sentence(line: LogLine) -> str:
    """A line as text: that of its step, or its message."""
    words = _WORDS.get(line.step or "")
    if words is None:
        error = line.text("exception_name")
        return f"{line.message} ({error})" if error else line.message
    return words(line)


def _said(line: LogLine, name: str) -> str:
    """A field that every line of the step should have."""
    return line.text(name) or "?"


def seconds(ms: float) -> str:
    """``0.08 s``, ``12.3 s``."""
    return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def spent_words(spent: TracedSpend) -> str:
    """Calls, tokens and cost."""
    if not spent.calls:
        return "no model call"
    tokens = f"{counted(spent.input_tokens, 'token')} in, {spent.output_tokens:,} out"
    return " · ".join((counted(spent.calls, "model call"), tokens, " and ".join(_costs(spent))))


def _costs(spent: TracedSpend) -> Iterator[str]:
    if spent.cost_usd or not spent.unpriced:
        yield _dollars(spent.cost_usd)
    if spent.unpriced:
        yield f"{counted(spent.unpriced, 'call')} of unknown cost"


def _dollars(usd: float) -> str:
    return f"${usd:.5f}" if usd else "free"


def attempt_words(attempt: AttemptTrace) -> str:
    """The outcome of an attempt."""
    how = {
        "answered": "answered",
        "failed": f"failed ({attempt.code or 'no code'})",
        "superseded": "was superseded",
        "cut_off": "was cut off: its worker logged no end",
        "under_way": "is in progress",
    }[attempt.outcome]
    return f"{attempt.strategy} {how}, {seconds(attempt.took_ms)}"


def verdict(trace: RequestTrace) -> str:
    """The outcome of the request, in a line."""
    return f"{_ending(trace)}{CUT}" if trace.cut else _ending(trace)


def _ending(trace: RequestTrace) -> str:
    end = trace.end
    if end is None:
        return (
            f"The log has no end: the last line was written {seconds(trace.took_ms)} after the first. If no worker has "
            "the request, the next resume or sweep recovers it."
        )
    failed = end.texts("failed")
    after = f" after {', '.join(failed)}" if failed else ""
    if end.step == "complete":
        ground = "grounded" if end.fields.get("grounded") else "not grounded"
        return f"Answered by {_said(end, 'answered_by')}{after}, {ground}, in {seconds(trace.took_ms)}."
    return f"Ended with {_said(end, 'code')}{after}, in {seconds(trace.took_ms)}."


def sums(trace: RequestTrace) -> str:
    """The usage of the whole request, in a line."""
    return " · ".join((counted(len(trace.attempts), "attempt"), spent_words(trace.spent), *_happenings(trace)))


def saved_query(trace: RequestTrace) -> str:
    """The name of the saved query that shows whether other requests had the same problem."""
    return next(name for name, shows in SAVED_QUERIES.items() if shows(trace))


def _has_fallen_back(trace: RequestTrace) -> bool:
    failed = trace.end.texts("failed") if trace.end else ()
    return any(not one.endswith(f" {CacheMiss.code}") for one in failed)


def _has_ended_by_a_fault(trace: RequestTrace) -> bool:
    end = trace.end
    return end is not None and end.step == "ended" and end.text("code") not in NOT_FAULTS


SAVED_QUERIES: dict[str, Callable[[RequestTrace], bool]] = {
    "Refused by limits": lambda trace: any(line.text("code") in _LIMITS for line in trace.lines),
    "Lost workers": lambda trace: bool(trace.all("recovered")),
    "Guardrail interventions": lambda trace: bool(trace.all("guardrail")),
    "Requests without an answer": _has_ended_by_a_fault,
    "Functions that failed": lambda trace: any(one.outcome == "cut_off" for one in trace.attempts),
    "Why answers fell back": _has_fallen_back,
    "Faults by dependency": lambda trace: any(line.trouble for line in trace.all("fault")),
    "Story of a request": lambda _: True,
}
"""The saved queries, each with the requests that it is for; the first that fits is named."""


def _happenings(trace: RequestTrace) -> Iterator[str]:
    for step, word in (("resumed", "resume"), ("recovered", "recovery"), ("fault", "fault")):
        if many := len(trace.all(step)):  # type: ignore[arg-type]
            yield counted(many, word, "recoveries" if word == "recovery" else None)
    posts = trace.all("delivered")
    if posts:
        sent, lost = (sum(line.count(name) for line in posts) for name in ("posts", "posts_failed"))
        yield counted(sent, "post") + (f", {lost:,} failed" if lost else "")
    first_ms = trace.end.number("first_chunk_ms") if trace.end else None
    if first_ms is not None:
        yield f"first text after {seconds(first_ms)}"


# --- steps ---


def _accepted(line: LogLine) -> str:
    confidence = line.number("confidence")
    sure = f", {confidence:.0%} confidence" if confidence is not None else ""
    return f"route {_said(line, 'route')}{sure}; starts with {_said(line, 'strategy')}"


def _recovered(line: LogLine) -> str:
    done = {"restarted": "restarted", "ended": "ended"}.get(_said(line, "action"), _said(line, "action"))
    return f"{done} by the {_said(line, 'by')}: {_said(line, 'why')}"


def _attempt(line: LogLine) -> str:
    failed = line.texts("failed")
    after = f" after {', '.join(failed)}" if failed else ""
    return f"{_said(line, 'strategy')} starts{after} (worker {line.text('worker') or 'unknown'})"


def _looked_up(line: LogLine) -> str:
    found = {
        "answer": "repeats an earlier answer",
        "contexts": "uses the passages of an earlier answer",
        "miss": "no similar earlier answer",
    }.get(_said(line, "outcome"), _said(line, "outcome"))
    return _joined(
        found,
        _measure(line, "similarity", "similarity {:.2f}"),
        counted(line.count("compared"), "answer") + " compared" if line.number("compared") is not None else None,
        _took(line),
    )


def _gathered(line: LogLine) -> str:
    chosen = line.texts("intentions")
    steps = {"select_extract": "selected", "resolve": "resolved", "query": "queried", "assemble": "assembled"}
    return _joined(
        f"intentions {', '.join(chosen)}" if chosen else "no collection selected",
        f"{counted(line.count('named'), 'name')} in {counted(line.count('places'), 'section')}",
        f"{counted(line.count('chosen'), 'passage')} selected",
        *(_measure(line, f"{step}_ms", word + " in {:,.0f} ms") for step, word in steps.items()),
    )


def _retrieved(line: LogLine) -> str:
    cached = line.count("used_from_cache")
    degraded = line.texts("degraded")
    return _joined(
        f"{counted(line.count('found'), 'passage')} found, {line.count('used'):,} used",
        f"{cached:,} from earlier answers" if cached else None,
        f"{line.count('searched'):,} searched" if line.count("searched") else None,
        f"{_said(line, 'engine')}, version {_said(line, 'index_version')}",
        _measure(line, "took_ms", "search {:,.0f} ms"),
        _measure(line, "cache_ms", "cache {:,.0f} ms"),
        f"degraded: {', '.join(degraded)}" if degraded else None,
    )


def _tool_call(line: LogLine) -> str:
    by = {"code": "by code", "model": "by the model"}.get(_said(line, "by"), _said(line, "by"))
    repeated = " again, unchanged" if line.fields.get("repeated") else ""
    return _joined(
        f"{_said(line, 'tool')} called {by}{repeated}",
        f"{counted(line.count('given_chars'), 'character')} in, {line.count('reply_chars'):,} out",
        counted(line.count("sources"), "passage") + " so far",
        _took(line),
        f"ended with {line.text('fault')}" if line.text("fault") else None,
    )


def _guardrail(line: LogLine) -> str:
    kinds = ", ".join((*line.texts("blocked"), *line.texts("masked")))
    match line.text("outcome"):
        case "blocked":
            return f"blocked by the guardrail: {kinds or 'no reason given'}"
        case "masked":
            return f"masked by the guardrail: {kinds}"
        case "unchecked":
            return f"the guardrail failed, a text was used unchecked: {line.text('why')}"
        case _:
            return f"the guardrail failed: {line.text('why')}"


_PURPOSES = {
    "complete_question": " to complete the question",
    "retrieval": " for the search",
    "agent": " for a step of the agent",
}
"""The purpose of a model call, unless it writes the answer."""


def _model_call(line: LogLine) -> str:
    what = _PURPOSES.get(line.text("purpose") or "", "")
    fault, cost = line.text("fault"), line.number("cost_usd")
    tokens = f"{counted(line.count('input_tokens'), 'token')} in, {line.count('output_tokens'):,} out"
    charged = (tokens, "cost unknown" if cost is None else _dollars(cost))
    return _joined(
        _said(line, "model_id") + what,
        f"{line.count('calls')} calls" if line.count("calls") > 1 else None,
        *(() if came_to_nothing(line) else charged),
        _measure(line, "first_piece_ms", "first text {:,.0f} ms"),
        _took(line),
        f"ended with {fault}" if fault else None,
    )


def _fault(line: LogLine) -> str:
    where = f" [{line.text('dependency')}]" if line.text("dependency") else ""
    code = f" ({line.text('code')})" if line.text("code") else ""
    why = f": {line.text('why')}" if line.text("why") else ""
    return f"{line.message or 'fault'}{where}{code}{why}"


def _superseded(line: LogLine) -> str:
    why = line.text("why") or ""
    return f"{line.message}: {_SUPERSEDED.get(why, why)}"


def _delivered(line: LogLine) -> str:
    failed = line.count("posts_failed")
    return _joined(
        f"up to event {line.count('last_seq')}",
        counted(line.count("writes"), "write"),
        counted(line.count("posts"), "post") + (f", {failed:,} failed" if failed else ""),
    )


def _complete(line: LogLine) -> str:
    way = " → ".join(line.texts("attempted")) or line.text("answered_by") or "?"
    ground = "grounded" if line.fields.get("grounded") else "not grounded"
    return _joined(f"answered by {way}", line.text("model_id"), line.text("stop_reason"), ground)


def _ended(line: LogLine) -> str:
    failed = line.texts("failed")
    return f"error {_said(line, 'code')}" + (f" after {', '.join(failed)}" if failed else "")


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _measure(line: LogLine, name: str, form: str) -> str | None:
    value = line.number(name)
    return None if value is None else form.format(value)


def _took(line: LogLine) -> str | None:
    return _measure(line, "took_ms", "{:,.0f} ms")


_WORDS: dict[str, Callable[[LogLine], str]] = {
    "accepted": _accepted,
    "started": lambda line: f"workflow started with {_said(line, 'strategy')}",
    "asked_again": lambda line: f"repeated question; the log ends with event {line.count('last_seq')}",
    "resumed": lambda line: f"after event {line.count('after')} of {line.count('last_seq')}: {_said(line, 'outcome')}",
    "recovered": _recovered,
    "attempt": _attempt,
    "question_completed": lambda line: _joined(f"from the conversation, by {_said(line, 'by')}", _took(line)),
    "looked_up": _looked_up,
    "gathered": _gathered,
    "retrieved": _retrieved,
    "tool_call": _tool_call,
    "guardrail": _guardrail,
    "model_call": _model_call,
    "fault": _fault,
    "superseded": _superseded,
    "delivered": _delivered,
    "complete": _complete,
    "ended": _ended,
    "kept": lambda line: f"the answer is stored in the {line.text('where')}" if line.text("where") else line.message,
}
