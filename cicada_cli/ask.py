"""``cicada ask``: one question, and its answer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from cicada.protocol.events import Failed
from cicada_cli.context import session_of
from cicada_cli.exits import Exit, exit_of
from cicada_cli.grammar import Commands
from cicada_cli.near_names import suggestion
from cicada_cli.output import complain, console
from cicada_cli.report import confirm_lines
from cicada_cli.session import ClientSession, PendingAnswer
from cicada_cli.shared_options import add_connection, add_json, add_scope
from cicada_cli.views import Listed, PeopleView, View, failure_words, refusal_words, view_for
from cicada_client import Answer, ClientError, EventFrame
from cicada_client.frames import withholds

UNKNOWN_NAMES = {
    "collection_unknown": "collections",
    "episode_unknown": "episodes",
    "document_unknown": "documents",
    "section_unknown": "sections",
}
"""Codes of errors about names that do not exist, with the part of the scope that has them."""


@dataclass(frozen=True)
class QuestionScope:
    """The part of the corpus that a question searches."""

    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    top_k: int | None = None

    def asked(self, code: str) -> tuple[str, ...]:
        """The names that an error with this code is about."""
        names: tuple[str, ...] = getattr(self, UNKNOWN_NAMES[code]) if code in UNKNOWN_NAMES else ()
        return names

    @classmethod
    def of(cls, args: argparse.Namespace) -> QuestionScope:
        """The scope that :func:`~cicada_cli.shared_options.add_scope` has parsed."""
        return cls(tuple(args.collection), tuple(args.episode), tuple(args.document), tuple(args.section), args.top_k)


def add_ask(commands: Commands) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "ask",
        help="ask one question",
        description="Ask one question and show the answer with its sources.",
        examples=(
            'cicada ask "Who rings the fog bell?"',
            'cicada ask "How does Tamsin get to the station?" --episode ep1',
            "cicada ask - < question.txt",
        ),
    )
    parser.add_argument("question", metavar="QUESTION", help="the question, or - to read it from standard input")
    add_scope(parser)
    parser.add_argument("--all-sources", action="store_true", help="list all sources, not only the cited ones")
    parser.add_argument("--no-sources", action="store_true", help="list no sources")
    add_json(parser, "print the events only, one JSON object per line")
    add_connection(parser)
    parser.set_defaults(run=_ask)


def _ask(args: argparse.Namespace) -> Exit:
    question = sys.stdin.read().strip() if args.question == "-" else args.question
    sources: Listed = "none" if args.no_sources else "all" if args.all_sources else "cited"
    view = view_for(console(), as_json=args.json, sources=sources)
    with session_of(args) as session:
        read = input if sys.stdin.isatty() and args.question != "-" else None
        return ask(session, question, QuestionScope.of(args), view, read=read)


def ask(
    session: ClientSession,
    question: str,
    scope: QuestionScope,
    view: View,
    *,
    session_id: str | None = None,
    read: Callable[[str], str] | None = None,
) -> Exit:
    """Ask, show the answer, and return the exit status. Ctrl-C cancels; a second Ctrl-C does not wait for that.

    ``read`` shows a prompt and returns a line. It confirms deletions that the answer proposes; without it, nothing is
    deleted.
    """
    last: EventFrame | None = None
    interrupted = False
    try:
        with view:
            pending = session.ask(
                question,
                collections=scope.collections,
                episodes=scope.episodes,
                documents=scope.documents,
                sections=scope.sections,
                top_k=scope.top_k,
                session_id=session_id,
            )
            try:
                last = _follow(pending, view)
            except KeyboardInterrupt:
                interrupted = True
                view.note("cancelling")
                pending.cancel()
                last = _follow(pending, view)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except ClientError as error:
        complain(refusal_words(error))
        return Exit.INTERRUPTED if interrupted else exit_of(error)
    complete = last is not None and last.event.type == "complete"
    if last is not None and not complete:
        event = last.event
        near = ""
        if isinstance(event, Failed) and event.known:
            near = suggestion(scope.asked(event.code), event.known)
        complain(failure_words(event, near))
    if interrupted:
        return Exit.INTERRUPTED
    if isinstance(view, PeopleView) and view.answer is not None:
        _confirm(session, view.answer, view, read)
    return _status(last)


def _status(last: EventFrame | None) -> Exit:
    """The exit status for a request's terminal event; None if there was none."""
    if last is None:
        return Exit.FAILED
    if last.event.type == "complete":
        return Exit.DONE
    if isinstance(last.event, Failed) and last.event.code in UNKNOWN_NAMES:
        return Exit.USAGE
    return Exit.BLOCKED if withholds(last.raw) else Exit.FAILED


def _confirm(session: ClientSession, answer: Answer, view: PeopleView, read: Callable[[str], str] | None) -> None:
    """Ask the user to confirm each deletion. Any answer but *y* declines."""
    for asked in answer.confirmations:
        view.print_lines(*confirm_lines(asked))
        if read is None:
            complain("nothing was deleted: confirm the deletion on a terminal")
            continue
        try:
            accept = read("Delete? [y/N] ").strip().lower() in ("y", "yes")
            reply = session.confirm(answer.request_id, asked.confirmation_id, accept=accept)
        except EOFError:
            complain("nothing was deleted")
            return
        except ClientError as error:
            complain(str(error))
            continue
        view.print_lines(Text("Deleted." if reply.outcome == "done" else "Nothing was deleted.", style="dim"))


def _follow(pending: PendingAnswer, view: View) -> EventFrame | None:
    """Show the events, and return the terminal one if it arrived."""
    last = None
    for item in pending:
        view.show(item)
        if isinstance(item, EventFrame) and item.terminal:
            last = item
    return last
