"""What happens before an agent's model is asked: the calls that are not left to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from cicada.agents.ports import Done
from cicada.agents.toolbox import ToolBox
from cicada.agents.tools.forms import MAX_QUERY_CHARS
from cicada.answering.strategy import Asked
from cicada.errors import DependencyDown, IndexFailure, ModelError
from cicada.profiles.rules import MAX_STATEMENT_CHARS, clipped
from cicada.story import tell
from cicada.text.words import quotes

logger = logging.getLogger(__name__)

MAX_NAMED = 3
"""Profiles that are shown because the question names them."""
MOST_PASSAGES = 4
"""Of the text, beside what is kept; the model may search for more."""


class Kept(Protocol):
    """A profile that a user keeps, as far as a question can name it."""

    @property
    def id(self) -> str:
        """Of the profile."""
        ...

    @property
    def name(self) -> str:
        """As the user calls it."""
        ...

    @property
    def statement(self) -> str | None:
        """What a theory says now."""
        ...


class Opening(Protocol):
    """Makes the calls."""

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """Make them. Raises CicadaError if one fails without which there is no answer."""
        ...


class ProfileOpening:
    """The profiles that the question names, else the list of all; and a search of the corpus."""

    def __init__(self, kept: Callable[[str], Sequence[Kept]]) -> None:
        """``kept``: a subject's profiles."""
        self._kept = kept

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """See the port. Where the corpus cannot be searched, what the user noted is there all the same."""
        named = named_in(asked.query, self._kept(asked.key.subject))
        done = [box.open("show_profile", {"id": one.id}) for one in named[:MAX_NAMED]]
        if not done:
            done.append(box.open("list_profiles", {}))
        try:
            done.append(box.open("search_script", {"query": asked.query[:MAX_QUERY_CHARS], "limit": MOST_PASSAGES}))
        except (IndexFailure, ModelError, DependencyDown) as error:
            tell(
                logger,
                "fault",
                "answered without a search",
                level=logging.WARNING,
                code=error.code,
                why=str(error),
            )
        return tuple(done)


class TheoryOpening:
    """The user's theories, and the evidence on the one that the question names, else on what it says itself."""

    def __init__(self, kept: Callable[[str], Sequence[Kept]]) -> None:
        """``kept``: a subject's theories."""
        self._kept = kept

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """See the port. Without evidence gathered there is no verdict, so a failed search fails the attempt."""
        kept = next(iter(named_in(asked.query, self._kept(asked.key.subject))), None)
        about = {"statement": clipped(asked.query, MAX_STATEMENT_CHARS)} if kept is None else {"id": kept.id}
        return (box.open("list_theories", {}), box.open("gather_evidence", about))


def named_in(query: str, kept: Sequence[Kept]) -> tuple[Kept, ...]:
    """Those whose name, or what they say now, stands in a question word by word; the longest first."""
    found: list[tuple[int, Kept]] = []
    for one in kept:
        length = max((len(text) for text in (one.name, one.statement or "") if quotes(query, text)), default=0)
        if length:
            found.append((length, one))
    return tuple(one for _, one in sorted(found, key=lambda named: -named[0]))
