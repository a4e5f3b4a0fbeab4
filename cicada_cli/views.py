"""How an answer is shown as it arrives: for programs, in pipes, and live on a terminal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal, Protocol, Self

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

Listed = Literal["cited", "all", "none"]
"""Which sources are listed after the answer."""
REFRESHES_PER_S = 12
_FREE_LINES = 4
"""Lines of the screen below the live text."""
_REASON_CHARS = 80
_DOING = {
    "hybrid": "searching the corpus and earlier answers",
    "rag": "searching the corpus",
    "cag": "searching earlier answers",
    "direct": "thinking",
    "profile_agent": "reading your profiles",
    "theory_agent": "weighing the evidence",
}
"""What each strategy does first."""


class View(Protocol):
    """Shows one answer while its block runs."""

    def __enter__(self) -> Self:
        """Start."""
        ...

    def __exit__(self, *raised: object) -> None:
        """Print what stays on the screen."""
        ...

    def show(self, item: EventFrame | Status) -> None:
        """Show an event, or a change of the connection."""
        ...

    def note(self, text: str) -> None:
        """Show a remark that is not part of the answer."""
        ...


def view_for(out: Console, *, as_json: bool, sources: Listed) -> View:
    """The view for an output: JSON, live on a terminal, or plain."""
    if as_json:
        return JsonLines()
    if out.is_terminal and not out.is_dumb_terminal:
        return LiveView(out, sources=sources)
    return PlainView(out, sources=sources)


def width_of(out: Console) -> int | None:
    """The terminal's width in cells; None for a pipe."""
    return out.width if out.is_terminal else None


class JsonLines:
    """Prints each event as the server sent it, one per line."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is left to print."""

    def show(self, item: EventFrame | Status) -> None:
        """Print an event."""
        if isinstance(item, EventFrame):
            say_json(item.raw, flush=True)

    def note(self, text: str) -> None:
        """Print it on standard error."""
        complain(text)


class PeopleView:
    """Shared by the views for people: they follow the events and print the answer at the end."""

    answer: Answer | None = None  # None while the block runs, and if no event arrived

    def __init__(self, out: Console, *, sources: Listed) -> None:
        self._out = out
        self._sources = sources
        self._tail: RequestTail | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Print the answer, complete or as far as it was written."""
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
        if self._sources != "none" and (lines := [*self._source_lines(answer)]):
            self.print_lines(*lines, Text())
        self.print_lines(*ending_lines(answer))

    def _source_lines(self, answer: Answer) -> Iterator[Text]:
        return source_lines(answer, width=width_of(self._out), every=self._sources == "all")

    def show(self, item: EventFrame | Status) -> None:
        """Apply and show an event."""
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
        """Show a change of the connection."""

    @abstractmethod
    def show_withdrawn(self, text: str) -> None:
        """Show that earlier text was withdrawn; "" if the text must not be shown again."""

    @abstractmethod
    def show_fallback(self, words: str) -> None:
        """Show that another strategy continues, and why."""

    @abstractmethod
    def show_event(self, frame: EventFrame) -> None:
        """Show an event that has been applied."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a remark that is not part of the answer."""

    def print_lines(self, *lines: RenderableType) -> None:
        """Print lines that stay."""
        for line in lines:
            self._out.print(line, soft_wrap=not self._out.is_terminal)


class PlainView(PeopleView):
    """For pipes and files: prints the complete answer, without withdrawn text. Remarks go to standard error."""

    def show_status(self, status: Status) -> None:
        """Report a lost connection, once for several failures in a row."""
        if status.state == "waiting" and status.failures == 1:
            self.note(f"connection lost, reconnecting: {status.reason}")

    def show_withdrawn(self, text: str) -> None:
        """Nothing was printed yet."""

    def show_fallback(self, words: str) -> None:
        """Print it on standard error."""
        self.note(words)

    def show_event(self, frame: EventFrame) -> None:
        """Nothing is shown before the answer is complete."""

    def note(self, text: str) -> None:
        """Print it on standard error."""
        complain(text)


class LiveView(PeopleView):
    """For terminals: shows the latest lines as they are written, then the complete answer."""

    def __init__(self, out: Console, *, sources: Listed) -> None:
        super().__init__(out, sources=sources)
        self._doing = "asking"
        self._trouble = ""
        self._spinner = Spinner("dots")
        self._live = Live(console=out, get_renderable=self._picture, refresh_per_second=REFRESHES_PER_S, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Replace the live lines with the complete answer."""
        self._live.stop()
        super().__exit__(*raised)

    def show_status(self, status: Status) -> None:
        """Show the state of the connection beside the progress of the answer."""
        match status.state:
            case "waiting":
                self._trouble = f"connection lost, reconnecting: {status.reason}"
            case "connecting":
                self._trouble = "reconnecting" if status.failures else "connecting"
            case "connected" | "idle":
                self._trouble = ""

    def show_withdrawn(self, text: str) -> None:
        """Leave the text on the screen, struck out, unless the answer was blocked."""
        self.print_lines(withdrawn_text(text) if text else Text("The text above was withdrawn.", style="dim"))

    def show_fallback(self, words: str) -> None:
        """Print it below the withdrawn text."""
        self.print_lines(Text(printable(f"↺ {words}"), style="yellow"), Text())

    def show_event(self, frame: EventFrame) -> None:
        """Show the progress of the answer."""
        match frame.event:
            case Accepted():
                self._doing = "waiting"
            case Attempt(strategy=strategy):
                self._doing = _DOING.get(strategy, "working")
            case Sources() as sources:
                self._doing = _reading(sources)
            case Chunk():
                self._doing = "writing"
            case Citations():
                self._doing = "checking citations"
            case _:
                pass

    def note(self, text: str) -> None:
        """Print it above the live lines."""
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
    """What the strategy does with the sources."""
    if sources.offered:
        return "answering without sources"
    if sources.reused is not None and sources.reused.use == "answer":
        return "repeating an earlier answer"
    reading = f"reading {counted(len(sources.sources), 'source')}"
    return f"{reading} of {counted(sources.searched, 'passage')} searched" if sources.searched else reading


def _fallback_words(event: ClientEvent, *, withdrawn: bool) -> str:
    what = "Its text is withdrawn. " if withdrawn else ""
    if isinstance(event, Fallback):
        next_one = f"Trying {event.to}" if event.to != event.from_ else f"Starting {event.to} again"
        return f"{event.from_} failed: {event.reason} {what}{next_one}."
    return f"{'The text is withdrawn. ' if withdrawn else ''}The answer starts again."


def refusal_words(error: ClientError) -> str:
    """The message for a refused question."""
    if isinstance(error, RequestRefused) and error.limit is not None:
        return f"{limit_words(error.limit)} ({error.code})"
    return str(error)


def failure_words(event: ClientEvent, near: str = "") -> str:
    """The message for a request that ended with an error; ``near`` suggests names for unknown ones."""
    if isinstance(event, Failed):
        again = " Try again." if event.retryable and "again" not in event.message else ""
        return f"{event.message}{near}{again} ({event.code})"
    fields = event.fields if isinstance(event, UnknownEvent) else {}
    return f"{fields.get('message', 'The answer failed.')} ({fields.get('code', event.type)})"
