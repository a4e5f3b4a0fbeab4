"""``cicada ask``: one question, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.text import Text

from cicada_cli.exits import Exit, exit_of
from cicada_cli.output import complain
from cicada_cli.report import confirm_lines
from cicada_cli.session import ClientSession, PendingAnswer
from cicada_cli.views import PeopleView, View, failure_words, refusal_words
from cicada_client import Answer, ClientError, EventFrame
from cicada_client.frames import withholds


@dataclass(frozen=True)
class QuestionScope:
    """What a question is limited to."""

    collections: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    top_k: int | None = None


def ask(
    session: ClientSession,
    question: str,
    scope: QuestionScope,
    view: View,
    *,
    session_id: str | None = None,
    read: Callable[[str], str] | None = None,
) -> Exit:
    """Ask, show the answer, and return how it ended. Ctrl-C cancels it; a second Ctrl-C does not wait for that.

    ``read`` shows a prompt and returns a line: deletions that the answer asks for are confirmed by it. Without, nothing
    is deleted.
    """
    last: EventFrame | None = None
    interrupted = False
    try:
        with view:
            pending = session.ask(
                question,
                collections=scope.collections,
                episodes=scope.episodes,
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
        complain(failure_words(last.event))
    if interrupted:
        return Exit.INTERRUPTED
    if isinstance(view, PeopleView) and view.answer is not None:
        _confirm(session, view.answer, view, read)
    if complete:
        return Exit.DONE
    return Exit.BLOCKED if last is not None and withholds(last.raw) else Exit.FAILED


def _confirm(session: ClientSession, answer: Answer, view: PeopleView, read: Callable[[str], str] | None) -> None:
    """Have the user confirm what the answer would delete, one by one; whatever is no *y* declines."""
    for asked in answer.confirmations:
        view.print_lines(*confirm_lines(asked))
        if read is None:
            complain("nothing was deleted: a deletion is confirmed on a terminal")
            continue
        try:
            accept = read("Do it? [y/N] ").strip().lower() in ("y", "yes")
            reply = session.confirm(answer.request_id, asked.confirmation_id, accept=accept)
        except EOFError:
            complain("nothing was deleted")
            return
        except ClientError as error:
            complain(str(error))
            continue
        view.print_lines(Text("Done." if reply.outcome == "done" else "Nothing was deleted.", style="dim"))


def _follow(pending: PendingAnswer, view: View) -> EventFrame | None:
    """Show what comes, and return the terminal event if it came."""
    last = None
    for item in pending:
        view.show(item)
        if isinstance(item, EventFrame) and item.terminal:
            last = item
    return last
