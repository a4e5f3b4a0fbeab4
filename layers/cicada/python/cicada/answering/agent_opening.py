"""What happens before an agent's model is asked: the calls that are not left to it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from cicada.agents.ports import Done
from cicada.agents.toolbox import ToolBox
from cicada.agents.tools.forms import MAX_QUERY_CHARS
from cicada.answering.strategy import Asked
from cicada.errors import DependencyDown, IndexFailure, ModelError
from cicada.profiles.rules import MAX_STATEMENT_CHARS
from cicada.story import tell

logger = logging.getLogger(__name__)

MAX_NAMED = 3
"""Profiles that are shown because the question names them."""
_STATEMENT = re.compile(
    r"\b(?:theor(?:y|ies)|hypothes[ie]s|idea|hunch|suspicion|suspect|believe|think|claim|true|possible|likely)\b"
    r"(?:\s+is)?[\s,:]+that\s+(?P<statement>\S.{8,})",
    re.IGNORECASE | re.DOTALL,
)
_ASKED_AT_ITS_END = re.compile(
    r"\s+(?:true|right|correct|wrong|false|plausible|likely|possible|tenable|sound)$", re.IGNORECASE
)
"""*Is it that … true?*: the last word is the question, and none of the statement."""
_QUOTED = re.compile(r"[\"“«](?P<statement>[^\"”»]{10,})[\"”»]")


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
            done.append(box.open("search_script", {"query": asked.query[:MAX_QUERY_CHARS]}))
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
    """The user's theories, and the evidence for and against the one that the question is about."""

    def __init__(self, kept: Callable[[str], Sequence[Kept]]) -> None:
        """``kept``: a subject's theories."""
        self._kept = kept

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """See the port. Without evidence gathered there is no verdict, so a failed search fails the attempt."""
        named = named_in(asked.query, self._kept(asked.key.subject))
        about = {"id": named[0].id} if named else {"statement": statement_in(asked.query)}
        return (box.open("list_theories", {}), box.open("gather_evidence", about))


def named_in(query: str, kept: Sequence[Kept]) -> tuple[Kept, ...]:
    """Those whose name stands in a question as words of its own, whatever their case; the longest name first."""
    said = f" {_words(query)} "
    found = [one for one in kept if (words := _words(one.name)) and f" {words} " in said]
    return tuple(sorted(found, key=lambda one: -len(one.name)))


def statement_in(query: str) -> str:
    """What a question says of a theory: its words in quotation marks, or after *that*, else all of it."""
    found = _QUOTED.search(query) or _STATEMENT.search(query)
    statement = (found["statement"] if found else query).strip().rstrip("?!. ")
    return _ASKED_AT_ITS_END.sub("", statement)[:MAX_STATEMENT_CHARS].strip() or query[:MAX_STATEMENT_CHARS]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold().removesuffix("'s").replace("'s ", " ").replace("’s ", " ")))
