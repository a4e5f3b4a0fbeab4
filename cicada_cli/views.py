"""How an answer is shown while it arrives: for machines, for pipes, and live on a terminal."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from cicada.protocol.events import Accepted, Attempt, Chunk, Citations, Failed, Fallback, Sources
from cicada_cli.limit_words import limit_words
from cicada_cli.output import complain, say_json
from cicada_cli.report import (
    answer_text,
    change_lines,
    ending_lines,
    query_line,
    route_line,
    source_lines,
    verdict_lines,
    withdrawn_text,
)
from cicada_cli.text import clipped, counted, printable
from cicada_client import (
    Answer,
    ClientError,
    ClientEvent,
    EventFrame,
    RequestRefused,
    RequestTail,
    Status,
    UnknownEvent,
)

REFRESHES_PER_S = 12
_FREE_LINES = 4
"""Lines of the screen that live text leaves free."""
_REASON_CHARS = 80
_DOING = {
    "hybrid": "searching, in earlier answers too",
    "cag": "looking in earlier answers",
    "direct": "thinking",
    "profile_agent": "reading the profile",
    "theory_agent": "weighing the evidence",
}
"""What each strategy does first; the others search."""


class View(Protocol):
    """Shows one answer as long as its block lasts."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(self, *raised: object) -> None:
        """Leave everything as it should stay."""
        ...

    def show(self, item: EventFrame | Status) -> None:
        """Show what has come."""
        ...

    def note(self, text: str) -> None:
        """Say something that is not of the answer."""
        ...


def view_for(out: Console, *, as_json: bool, sources: bool) -> View:
    """Choose by what is wanted and where it goes."""
    if as_json:
        return JsonLines()
    if out.is_terminal and not out.is_dumb_terminal:
        return LiveView(out, sources=sources)
    return PlainView(out, sources=sources)


def width_of(out: Console) -> int | None:
    """The terminal's width in cells; None for a pipe, which has none."""
    return out.width if out.is_terminal else None


class JsonLines:
    """One event a line, as the server sent it; nothing else on standard output."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is left to say."""

    def show(self, item: EventFrame | Status) -> None:
        """Print an event."""
        if isinstance(item, EventFrame):
            say_json(item.raw, flush=True)

    def note(self, text: str) -> None:
        """Say it on standard error."""
        complain(text)


class PeopleView:
    """What the views for people share: they follow the events, and print what stays at the end."""

    answer: Answer | None = None  # what came of it; None while the block lasts, and where no event came

    def __init__(self, out: Console, *, sources: bool) -> None:
        self._out = out
        self._sources = sources
        self._tail: RequestTail | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Print the answer, whole or as far as it came."""
        if self._tail is None:
            return
        answer = self.answer = self._tail.answer()
        if answer.text:
            self.print_lines(answer_text(answer.text.strip(), answer.citations), Text())
        if answer.verdict is not None:
            width = width_of(self._out)
            self.print_lines(*verdict_lines(answer.verdict, answer.sources, width=width), Text())
        if answer.receipts or answer.changes == 0:
            self.print_lines(*change_lines(answer), Text())
        if not answer.complete:
            return
        if answer.query:
            self.print_lines(query_line(answer.query), Text())
        if self._sources and answer.sources:
            self.print_lines(*source_lines(answer, width=width_of(self._out)), Text())
        self.print_lines(*ending_lines(answer))

    def show(self, item: EventFrame | Status) -> None:
        """Follow what comes."""
        if isinstance(item, Status):
            self.show_status(item)
            return
        if self._tail is None:
            self._tail = RequestTail(item.request_id)
        text = self._tail.text
        if item.seq:
            self._tail.feed(item)
        else:
            self._tail.conclude(item)
        withdrawn = bool(text) and not self._tail.text
        if withdrawn:
            self.show_withdrawn("" if item.terminal else text)
        if item.event.type == "fallback":
            self.show_fallback(_fallback_words(item.event, withdrawn=withdrawn))
        self.show_event(item)

    @abstractmethod
    def show_status(self, status: Status) -> None:
        """Show what the connection does."""

    @abstractmethod
    def show_withdrawn(self, text: str) -> None:
        """Show that this text, shown before, is not of the answer; "" where it may not be shown again either."""

    @abstractmethod
    def show_fallback(self, words: str) -> None:
        """Show that another strategy answers now, and why."""

    @abstractmethod
    def show_event(self, frame: EventFrame) -> None:
        """Show an event that has been applied."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Say something that is not of the answer."""

    def print_lines(self, *lines: RenderableType) -> None:
        """Print lines that stay."""
        for line in lines:
            self._out.print(line, soft_wrap=not self._out.is_terminal)


class PlainView(PeopleView):
    """For pipes and files: the answer once it is whole, so that no withdrawn text is in it; the rest on stderr."""

    def show_status(self, status: Status) -> None:
        """Say that the connection is lost, once for several failures in a row."""
        if status.state == "waiting" and status.failures == 1:
            self.note(f"connection lost, trying again: {status.reason}")

    def show_withdrawn(self, text: str) -> None:
        """Nothing was printed that could be withdrawn."""

    def show_fallback(self, words: str) -> None:
        """Say it on standard error."""
        self.note(words)

    def show_event(self, frame: EventFrame) -> None:
        """Nothing is shown before the answer is whole."""

    def note(self, text: str) -> None:
        """Say it on standard error."""
        complain(text)


class LiveView(PeopleView):
    """For a terminal: the answer's latest lines as they are written, then the whole of it."""

    def __init__(self, out: Console, *, sources: bool) -> None:
        super().__init__(out, sources=sources)
        self._doing = "asking"
        self._trouble = ""
        self._spinner = Spinner("dots")
        self._live = Live(console=out, get_renderable=self._picture, refresh_per_second=REFRESHES_PER_S, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Put the whole answer in the place of its live lines."""
        self._live.stop()
        super().__exit__(*raised)

    def show_status(self, status: Status) -> None:
        """Show what the connection does beside what the answer does."""
        match status.state:
            case "waiting":
                self._trouble = f"connection lost, trying again: {status.reason}"
            case "connecting":
                self._trouble = "reconnecting" if status.failures else "connecting"
            case "connected" | "idle":
                self._trouble = ""

    def show_withdrawn(self, text: str) -> None:
        """Leave the text on the screen, struck out; of a blocked answer nothing."""
        self.print_lines(withdrawn_text(text) if text else Text("What was written is withdrawn.", style="dim"))

    def show_fallback(self, words: str) -> None:
        """Say it below what was withdrawn."""
        self.print_lines(Text(printable(f"↺ {words}"), style="yellow"), Text())

    def show_event(self, frame: EventFrame) -> None:
        """Show the phase that the answer is in."""
        match frame.event:
            case Accepted() as accepted:
                self.print_lines(route_line(accepted), Text())
                self._doing = "waiting for an answer"
            case Attempt(strategy=strategy):
                self._doing = _DOING.get(strategy, "searching")
            case Sources() as sources:
                self._doing = _reading(sources)
            case Chunk():
                self._doing = "writing"
            case Citations():
                self._doing = "checking citations"
            case _:
                pass

    def note(self, text: str) -> None:
        """Say it above the live lines."""
        self.print_lines(Text(printable(text), style="yellow"))

    def _picture(self) -> RenderableType:
        doing = f"{self._doing} · {clipped(printable(self._trouble), _REASON_CHARS)}" if self._trouble else self._doing
        self._spinner.update(text=Text(doing, style="yellow" if self._trouble else "dim"))
        text = self._tail.text if self._tail else ""
        if not text:
            return self._spinner
        room = max(1, self._out.height - _FREE_LINES)
        lines = answer_text(text).wrap(self._out, self._out.width)
        return Group(*lines[-room:], Text(), self._spinner)


def _reading(sources: Sources) -> str:
    """What is done with what was found."""
    if sources.offered:
        return "answering without sources"
    if sources.reused is not None and sources.reused.use == "answer":
        return "giving an earlier answer again"
    reading = f"reading {counted(len(sources.sources), 'source')}"
    return f"{reading}, the best of {counted(sources.searched, 'passage')}" if sources.searched else reading


def _fallback_words(event: ClientEvent, *, withdrawn: bool) -> str:
    what = "What it wrote is withdrawn; " if withdrawn else ""
    if isinstance(event, Fallback):
        next_one = f"{event.to} answers now" if event.to != event.from_ else f"{event.to} begins anew"
        return f"{event.from_} failed: {event.reason} {what}{next_one}."
    return f"{what}the answer begins anew.".capitalize()


def refusal_words(error: ClientError) -> str:
    """What to tell of a question that was not answered."""
    if isinstance(error, RequestRefused) and error.limit is not None:
        return f"{limit_words(error.limit)} ({error.code})"
    return str(error)


def failure_words(event: ClientEvent) -> str:
    """What to tell of a terminal event that is no answer."""
    if isinstance(event, Failed):
        again = " Asking again can help." if event.retryable and "again" not in event.message else ""
        return f"{event.message}{again} ({event.code})"
    fields = event.fields if isinstance(event, UnknownEvent) else {}
    return f"{fields.get('message', 'The answer failed.')} ({fields.get('code', event.type)})"
