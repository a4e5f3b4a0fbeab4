"""``cicada chat``: questions one after another."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cicada_cli.ask import QuestionScope, ask
from cicada_cli.exits import Exit
from cicada_cli.output import complain
from cicada_cli.report import source_heading, source_lines
from cicada_cli.session import ClientSession
from cicada_cli.text import printable
from cicada_cli.views import PeopleView, view_for, width_of
from cicada_client import Answer

PROMPT = "> "
HISTORY_LENGTH = 1_000
HELP = (
    ("/episodes [EPISODE ...]", "ask about these episodes only; about all without any"),
    ("/sources [N]", "the last answer's sources, or the whole text of one"),
    ("/help", "this list"),
    ("/quit", "leave, as Ctrl-D does; Ctrl-C stops the running answer"),
)


@dataclass
class Chat:
    """A conversation at the terminal."""

    session: ClientSession
    out: Console
    scope: QuestionScope
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    read: Callable[[str], str] | None = None
    """Shows a prompt and returns a line, or raises EOFError; what :meth:`run` reads by."""
    answer: Answer | None = None  # the last one
    left: bool = False

    def run(self, read: Callable[[str], str]) -> Exit:
        """Read lines and do what they say until the end.

        Args:
            read: shows a prompt and returns a line, or raises EOFError.
        """
        self.read = read
        while not self.left:
            try:
                line = read(PROMPT).strip()
            except EOFError:
                self._say("")
                break
            except KeyboardInterrupt:
                self._say("\n(Ctrl-D or /quit leaves)")
                continue
            if line.startswith("/"):
                self._command(*line.split())
            elif line:
                self._ask(line)
        return Exit.DONE

    def _ask(self, question: str) -> None:
        view = view_for(self.out, as_json=False, sources=True)
        assert isinstance(view, PeopleView)
        ask(self.session, question, self.scope, view, session_id=self.session_id, read=self.read)
        self.answer = view.answer
        self._say("")

    def _command(self, name: str, *arguments: str) -> None:
        match name, arguments:
            case "/quit", ():
                self.left = True
            case "/help", ():
                for command, meaning in HELP:
                    self._say(f"{command:<25}{meaning}")
            case "/episodes", episodes:
                self.scope = replace(self.scope, episodes=episodes)
                self._say(f"asking about {', '.join(episodes) if episodes else 'all episodes'}")
            case "/sources", ():
                self._list_sources()
            case "/sources", (number,):
                self._show_source(number)
            case _:
                complain(f"{' '.join((name, *arguments))}: no such command; /help lists them")

    def _list_sources(self) -> None:
        if self.answer is None or not self.answer.sources:
            complain("the last answer has no sources")
            return
        self._print(*source_lines(self.answer, width=width_of(self.out)))

    def _show_source(self, number: str) -> None:
        for source in self.answer.sources if self.answer else ():
            if str(source.n) == number:
                self._print(source_heading(source), Text(printable(source.text)))
                if source.clipped:
                    self._print(Text("(the passage goes on)", style="dim"))
                return
        complain(f"the last answer has no source {number}")

    def _say(self, text: str) -> None:
        self._print(Text(printable(text)))

    def _print(self, *lines: Text) -> None:
        for line in lines:
            self.out.print(line, soft_wrap=not self.out.is_terminal)


def history_file(environ: Mapping[str, str]) -> Path:
    """Where questions are remembered, see the XDG Base Directory Specification."""
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".local" / "state")
    return Path(state) / "cicada" / "history"


@contextlib.contextmanager
def remembered_lines(path: Path) -> Iterator[None]:
    """Let the arrow keys bring back earlier lines, of earlier chats too. Where the file cannot be used, of this one."""
    try:
        import readline
    except ImportError:  # a Python built without it
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LENGTH)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            readline.write_history_file(path)
