"""What happens before an agent's model is asked: the calls that are not left to it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Protocol

from cicada.agents.ports import Done
from cicada.agents.toolbox import ToolBox
from cicada.agents.tools.forms import MAX_QUERY_CHARS
from cicada.answering.strategy import Asked
from cicada.citations.sentences import sentences_of
from cicada.errors import DependencyDown, IndexFailure, ModelError
from cicada.profiles.rules import MAX_STATEMENT_CHARS, folded
from cicada.story import tell

logger = logging.getLogger(__name__)

MAX_NAMED = 3
"""Profiles that are shown because the question names them."""
MOST_PASSAGES = 4
"""Of the text, beside what is kept; the model may search for more."""
_CLAIMED = "theor(?:y|ies)|hypothes[ie]s|idea|hunch|suspicion|claim"
_JUDGED = "true|right|correct|wrong|false|plausible|likely|possible|tenable|sound"
_QUOTATION = r"[\"“«](?P<statement>[^\"”»]{10,})[\"”»]"
_AFTER = (
    rf"\b(?:{_CLAIMED})\b(?:(?!\bthat\b)[^:.?!\"“«]){{0,60}}:\s*(?P<statement>\S.{{8,}})",
    rf"\b(?:{_CLAIMED})\b(?:\s+(?:is|that))*[\s,]*{_QUOTATION}",
    rf"\b(?:{_CLAIMED}|suspect|believe|think|true|possible|likely|to\s+say|could\s+it\s+be|is\s+it)\b"
    rf"(?:\s+(?:is|{_JUDGED}))*[\s,:]+that\s+(?P<statement>\S.{{8,}})",
    rf"\b(?:my|our)\s+(?:{_CLAIMED})\s+is\s+(?!(?:{_JUDGED}|not|now|about|supported|contradicted)\b)(?P<statement>\S.{{8,}})",
    r"^\s*i\s+(?:\w+ly\s+)?(?:think|believe|suspect|claim|bet)\s+(?!(?:so|of|about)\b)(?P<statement>\S.{8,})",
    _QUOTATION,
)
_STATEMENTS = tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in _AFTER)
"""*My theory: …*, *the idea “…”*, *the idea that …*, *my theory is …*, *I think …*, any other quotation: the first that
is found counts."""
_ASKED_AT_ITS_END = re.compile(
    rf"\s+(?:{_JUDGED})$|,?\s+(?:and|or)\s+(?:what|which|who|how|where|is|does|do)\b[^.!?]*$", re.IGNORECASE
)
"""*Is it that … true?*, *…, and what contradicts it?*: the last words are the question, and none of the statement."""
_KEPT = frozenset(
    "profile profiles note notes noted entry entries record records recorded saved stored kept my our".split()
)
"""Words for what a user keeps."""
_REMOVING = frozenset("remove delete forget erase drop".split())
_KEEPING = _KEPT | frozenset(
    "show list open view see display give tell print export look check add write wrote written put save keep create "
    "make start update change changed changes edit correct set remove delete forget erase drop history version "
    "versions new field fields character characters location locations place places episode episodes theory theories "
    "all every everything anything something please what which how many much that this these those do did does has "
    "have had is are was were can could will would you i we me us the a an of for about on in to from into with at "
    "and or called named down up ever already so far now last yet still any there it its s".split()
)
"""Words by which a user asks to see or change it, beside its name."""


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
    """The profiles that the question names, else the list of all; and a search of the corpus.

    A question that only asks for what is kept (*Show me my profile of Mira*, *List my profiles*) needs no search.
    """

    def __init__(self, kept: Callable[[str], Sequence[Kept]]) -> None:
        """``kept``: a subject's profiles."""
        self._kept = kept

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """See the port. Where the corpus cannot be searched, what the user noted is there all the same."""
        named = named_in(asked.query, self._kept(asked.key.subject))
        done = [box.open("show_profile", {"id": one.id}) for one in named[:MAX_NAMED]]
        if not done:
            done.append(box.open("list_profiles", {}))
        if not asks_of_the_text(asked.query, named):
            return tuple(done)
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
    """The user's theories, and the evidence for and against the one that the question is about."""

    def __init__(self, kept: Callable[[str], Sequence[Kept]]) -> None:
        """``kept``: a subject's theories."""
        self._kept = kept

    def __call__(self, box: ToolBox, asked: Asked) -> tuple[Done, ...]:
        """See the port. Without evidence gathered there is no verdict, so a failed search fails the attempt."""
        kept = meant_in(asked.query, self._kept(asked.key.subject))
        about = {"statement": statement_in(asked.query)} if kept is None else {"id": kept.id}
        return (box.open("list_theories", {}), box.open("gather_evidence", about))


def named_in(query: str, kept: Sequence[Kept]) -> tuple[Kept, ...]:
    """Those whose name, or what they say now, stands in a question as words of its own, compared as names are; the
    longest first."""
    said = f" {_words(query)} "
    found: list[tuple[int, Kept]] = []
    for one in kept:
        names = (words for text in (one.name, one.statement or "") if (words := _words(text)))
        length = max((len(words) for words in names if f" {words} " in said), default=0)
        if length:
            found.append((length, one))
    return tuple(one for _, one in sorted(found, key=lambda named: -named[0]))


def asks_of_the_text(query: str, named: Sequence[Kept]) -> bool:
    """Whether there is something to look for in the text: not where a question speaks of what is kept, and removes of
    it or has no words beside those of keeping (in English) and the names of profiles that are shown anyway."""
    left = f" {_words(query)} "
    for one in named:
        left = left.replace(f" {_words(one.name)} ", " ")
    said = frozenset(left.split())
    return said.isdisjoint(_KEPT) or not (said <= _KEEPING or said & _REMOVING)


def meant_in(query: str, kept: Sequence[Kept]) -> Kept | None:
    """The theory that a question is about: one that it names, and not as a part of what it states anew."""
    stated = _stated(query)
    return next(
        (one for one in named_in(query, kept) if stated is None or _words(one.statement or one.name) == _words(stated)),
        None,
    )


def statement_in(query: str) -> str:
    """What a question says of a theory: its words after a colon, in quotation marks, after *that* or after *I think*,
    up to where it begins to ask; else all of it."""
    return (_stated(query) or _without_asking(query))[:MAX_STATEMENT_CHARS].strip() or query[:MAX_STATEMENT_CHARS]


def _stated(query: str) -> str | None:
    found = next((found for pattern in _STATEMENTS if (found := pattern.search(query))), None)
    if found is None:
        return None
    first, *others = [sentence.text for sentence in sentences_of(found["statement"])] or [found["statement"]]
    stated = " ".join((first, *takewhile(lambda sentence: not sentence.rstrip().endswith("?"), others)))
    return _without_asking(stated.strip(' "“”«»\n'))


def _without_asking(text: str) -> str:
    return _ASKED_AT_ITS_END.sub("", text.strip().rstrip("?!. "))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"['’]s\b", "", folded(text))))
