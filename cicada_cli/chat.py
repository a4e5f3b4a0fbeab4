"""``cicada chat``: one question after another."""

from __future__ import annotations

import argparse
import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cicada_cli.ask import QuestionScope, ask
from cicada_cli.context import session_of
from cicada_cli.exits import Exit
from cicada_cli.grammar import Commands
from cicada_cli.near_names import unknown_name
from cicada_cli.output import complain, console
from cicada_cli.report import source_heading, source_lines
from cicada_cli.session import ClientSession
from cicada_cli.shared_options import add_connection, add_scope
from cicada_cli.text import printable
from cicada_cli.views import PeopleView, view_for, width_of
from cicada_client import Answer

PROMPT = "> "
HISTORY_LENGTH = 1_000
HELP = (
    ("/episodes [EPISODE ...]", "search these episodes only; without a name, all episodes"),
    ("/sources [N]", "list all sources of the last answer, or show the text of one"),
    ("/help", "list the commands"),
    ("/quit", "leave, like Ctrl-D; Ctrl-C stops the current answer"),
)
COMMANDS = tuple(usage.split()[0] for usage, _ in HELP)


def add_chat(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "chat",
        help="ask one question after another",
        description="Ask one question after another, as one conversation.",
        examples=("cicada chat", "cicada chat --collection script --episode ep1"),
    )
    add_scope(parser)
    add_connection(parser)
    parser.set_defaults(run=_chat)


def _chat(args: argparse.Namespace) -> Exit:
    with session_of(args) as session, remembered_lines(history_file(os.environ)):
        return Chat(session, console(), QuestionScope.of(args)).run(input)


@dataclass
class Chat:
    """A conversation on a terminal."""

    session: ClientSession
    out: Console
    scope: QuestionScope
    session_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    read: Callable[[str], str] | None = None
    """Shows a prompt and returns a line, or raises EOFError; set by :meth:`run`."""
    answer: Answer | None = None  # the last one
    left: bool = False

    def run(self, read: Callable[[str], str]) -> Exit:
        """Read questions and commands until the end of input.

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
                self._say("\n(leave with Ctrl-D or /quit)")
                continue
            if line.startswith("/"):
                self._command(*line.split())
            elif line:
                self._ask(line)
        return Exit.DONE

    def _ask(self, question: str) -> None:
        view = view_for(self.out, as_json=False, sources="cited")
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
                self._say(f"searching {', '.join(episodes) if episodes else 'all episodes'}")
            case "/sources", ():
                self._list_sources()
            case "/sources", (number,):
                self._show_source(number)
            case _ if name in COMMANDS:
                complain(f"invalid use of {name}. /help shows how to use it.")
            case _:
                complain(f"{unknown_name('command', name, COMMANDS)} /help lists the commands.")

    def _list_sources(self) -> None:
        if self.answer is None or not self.answer.sources:
            complain("the last answer has no sources")
            return
        self._print(*source_lines(self.answer, width=width_of(self.out), every=True))

    def _show_source(self, number: str) -> None:
        for source in self.answer.sources if self.answer else ():
            if str(source.n) == number:
                self._print(source_heading(source), Text(printable(source.text)))
                if source.clipped:
                    self._print(Text("(shortened)", style="dim"))
                return
        complain(f"the last answer has no source {number}")

    def _say(self, text: str) -> None:
        self._print(Text(printable(text)))

    def _print(self, *lines: Text) -> None:
        for line in lines:
            self.out.print(line, soft_wrap=not self.out.is_terminal)


def history_file(environ: Mapping[str, str]) -> Path:
    """The file of earlier questions, by the XDG Base Directory Specification."""
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".local" / "state")
    return Path(state) / "cicada" / "history"


@contextlib.contextmanager
def remembered_lines(path: Path) -> Iterator[None]:
    """Let the arrow keys recall earlier lines, also of earlier chats if the file can be used."""
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
