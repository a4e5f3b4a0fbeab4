"""Resolve references to sources, and check a claim exactly against the passages that it cites.

The checks: quotations word by word, numbers with their units, names, and who is quoted. A judge decides on paraphrases,
which stay unchecked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from cicada.corpus.passages import DocumentLocator, NoteLocator
from cicada.protocol.events import Source
from cicada.protocol.markers import Reference
from cicada.text.characters import normalised
from cicada.text.names import capitalised_in
from cicada.text.numbers import Quantity, quantities
from cicada.text.sentences import (
    QUOTED,
    comparable_quotation,
    contains_quotation,
    quotations,
    sentences,
    without_item_sign,
    without_quotations,
)
from cicada.text.word_lists import word_lists
from cicada.text.words import content_words, is_among, ways_of_asking, words_of

ReasonCode = Literal[
    "no_such_passage",
    "wrong_place",
    "quote_not_found",
    "number_missing",
    "name_missing",
    "contradicted",
    "unsupported",
]
"""Stable. What each means: docs/citations.md."""
REASON_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)


@dataclass(frozen=True)
class Objection:
    """Why a citation is unverified."""

    code: ReasonCode
    reason: str  # a sentence for people, without its period


@dataclass(frozen=True)
class CheckedSource:
    """A source, with what is derived from it for checks."""

    source: Source

    @cached_property
    def voice(self) -> str:
        """The speaker, in normal form, or empty."""
        return normalised(self.source.locator.voice() or "")

    @cached_property
    def label(self) -> str:
        """The names in its locator."""
        names = self.source.locator.names()
        return " ".join(f"page {name}" if kind == "page" else name for kind, name in names.items())

    @cached_property
    def statements(self) -> list[str]:
        """Its sentences; of a note those of each line of its value."""
        text, locator = self.source.text, self.source.locator
        if not isinstance(locator, NoteLocator):
            return sentences(text)
        lines = text.removeprefix(locator.lead()).splitlines(keepends=True)
        return [sentence for line in lines for sentence in sentences(line)]

    @cached_property
    def whole(self) -> str:
        """Its text, context and label."""
        return f"{self.source.text}\n{self.source.context or ''}\n{self.label}"

    @cached_property
    def words(self) -> frozenset[str]:
        """All words of it, in normal form."""
        return frozenset(words_of(self.whole))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """All numbers of it."""
        return quantities(self.whole, doubtful=True)


Verdict = Literal["verified", "unverified", "unchecked"]

_LISTS = word_lists("cicada.citations", "introducing_words.json")
_INTRODUCING = frozenset(map(normalised, _LISTS["introducing"])) | _LISTS["unspaced"]
"""Words that only introduce a quotation, besides the speaker's name and the place."""
_EDGES = " .,;:!?…。、"
_SENTENCE_EDGES = f"{_EDGES}'*_"
_UNLIKE = 16  # characters: a sentence and its quotation may differ by punctuation and a list item's sign
_WORDS_BEFORE_QUOTE = 4
_NO_UNITS = frozenset({"", "count"})


@dataclass(frozen=True)
class Finding:
    """The verdict on one claim and one of its passages."""

    verdict: Verdict
    objection: Objection | None = None  # why it is unverified

    def fields(self) -> dict[str, Any]:
        """Of a citation."""
        found = self.objection
        return {"verdict": self.verdict, "code": found and found.code, "reason": found and found.reason}


class Checker:
    """Checks claims against numbered sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        """Take the sources, which are read when they are first cited."""
        self._passages = {source.n: CheckedSource(source) for source in sources}

    def check(self, claim: str, source: Source, cited: Sequence[Source]) -> Finding:
        """Check a claim against one passage; ``cited``: all passages that it cites there, which it may combine."""
        mine = self._passages[source.n]
        others = [self._passages[other.n] for other in cited]
        quotes = [
            quote
            for quote in quotations(claim)
            if comparable_quotation(quote).strip(_EDGES) not in comparable_quotation(mine.label)
        ]
        told = without_quotations(claim) if quotes else claim
        if objection := self._objection(claim, told, quotes, mine, others):
            return Finding("unverified", objection)
        if quotes and not _introduces(told, others):
            return Finding("unchecked")
        whole = all(any(_has_whole(other.statements, part) for other in others) for part in quotes or [told])
        return Finding("verified" if whole else "unchecked")

    def _objection(
        self, claim: str, told: str, quotes: Sequence[str], mine: CheckedSource, cited: Sequence[CheckedSource]
    ) -> Objection | None:
        return (
            _of_quotations(quotes, mine, cited)
            or _missing_number(told, cited)
            or _missing_name(told, cited)
            or (self._other_voice(claim, mine, cited) if quotes and mine.voice else None)
        )

    def _other_voice(self, claim: str, mine: CheckedSource, cited: Sequence[CheckedSource]) -> Objection | None:
        """Another speaker's name right before a quotation that is this speaker's."""
        shown = {one.voice: one.source.locator.voice() for one in reversed(self._passages.values())}
        others = sorted(shown.keys() - {"", *(passage.voice for passage in cited)})
        for match in QUOTED.finditer(claim):
            before = words_of(claim[: match.start()])[-_WORDS_BEFORE_QUOTE:]
            for voice in others:
                named = words_of(voice)
                if any(before[at : at + len(named)] == named for at in range(len(before))):
                    reason = f"the passage is by {mine.source.locator.voice()}, not by {shown[voice]}"
                    return Objection("contradicted", reason)
        return None


def _introduces(told: str, cited: Sequence[CheckedSource]) -> bool:
    """Whether the words around quotations only say who said them, and where."""
    places = frozenset(word for passage in cited for word in words_of(passage.label))
    return not ways_of_asking(told) and not any(
        word not in _INTRODUCING and not is_among(word, places) for word in content_words(told)
    )


def _has_whole(found: Sequence[str], part: str) -> bool:
    """Whether a part is one or more whole sentences: *may enter* is not one of *few may enter*."""
    wanted = _bare(part)
    for start in range(len(found)):
        slice_ = ""
        for sentence in found[start:]:
            slice_ += sentence
            if len(slice_) > len(part) + _UNLIKE:
                break
            if len(slice_) >= len(part) - _UNLIKE and _is_same(_bare(slice_), wanted):
                return True
    return False


def _is_same(one: str, other: str) -> bool:
    """Whether two texts are equal, apart from a list item's sign of one of them."""
    return one == other or without_item_sign(one) == other or one == without_item_sign(other)


def _bare(text: str) -> str:
    """A text to compare, without punctuation at its edges, apart from a question mark."""
    words = comparable_quotation(text)
    asks = words.rstrip(" '*_.!…").endswith(("?", "؟"))
    return words.strip(_SENTENCE_EDGES) + ("?" if asks else "")


def _of_quotations(quotes: Sequence[str], mine: CheckedSource, cited: Sequence[CheckedSource]) -> Objection | None:
    for quote in quotes:
        if not any(contains_quotation(other.source.text, quote) for other in cited):
            return Objection("quote_not_found", "a quotation is not in the passage")
    if quotes and not any(contains_quotation(mine.source.text, quote) for quote in quotes):
        return Objection("quote_not_found", "no quotation of the sentence is in this passage")
    return None


def _missing_number(told: str, cited: Sequence[CheckedSource]) -> Objection | None:
    """A number that no passage has, or has with another unit of the same dimension."""
    there = [quantity for passage in cited for quantity in passage.quantities]
    for quantity in quantities(told):
        same = [one for one in there if _value(one) == _value(quantity)]
        if _is_told(quantity, there, same):
            continue
        reason = f"the passage does not mention {quantity.shown}"
        units = sorted({one.shown for one in same})
        return Objection("number_missing", f"{reason}: it has {', '.join(units)}" if units else reason)
    return None


def _is_told(quantity: Quantity, there: Sequence[Quantity], same: Sequence[Quantity]) -> bool:
    """Whether a number is in the passages (``there``; ``same``: of equal value), or cannot be checked against them."""
    if not quantity.unit and not any(map(str.isdecimal, quantity.shown)):
        return True  # *two of them*, *at six*: often counted by the answer, or an idiom
    if any(one.measure == quantity.measure for one in there):
        return True
    if any(one.unit == quantity.unit or {one.unit, quantity.unit} & _NO_UNITS for one in same):
        return True
    # A measure of a dimension that the passages lack may follow from what they say.
    return bool(quantity.unit) and all(one.measure[0] != quantity.measure[0] for one in there)


def _value(quantity: Quantity) -> str:
    """Its value; a time of day as a decimal, as some write it: 7:10 is 7.10."""
    value = quantity.value.replace(":", ".")
    return value.rstrip("0").rstrip(".") if "." in value else value


def _missing_name(told: str, cited: Sequence[CheckedSource]) -> Objection | None:
    """A capitalised word inside the sentence that no passage has, if capitals tell names."""
    for shown in capitalised_in(told):
        if any(not any(is_among(part, passage.words) for passage in cited) for part in content_words(shown)):
            return Objection("name_missing", f"the passage neither is by {shown} nor speaks of them")
    return None


NO_NUMBER = 0  # stands for the number of a marker that has none and names no passage

_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{1,5}$")
_UNSIGNED = re.compile(r"[\s_\-]+")


@dataclass(frozen=True)
class Resolved:
    """A marker's number, its source, and an objection, if any."""

    n: int
    source: Source | None
    objection: Objection | None = None


def resolve(reference: Reference, sources: Sequence[Source]) -> Resolved:
    """The source with the reference's number; without one, or if no source has it, the only one at its place.

    An objection says if the number's source is elsewhere: then the marker may mean either of two passages.
    """
    numbered = next((source for source in sources if source.n == reference.n), None)
    if numbered is not None:
        return Resolved(numbered.n, numbered, _misplaced(reference, numbered))
    there = [] if reference.file is None else [one for one in sources if _misplaced(reference, one) is None]
    if len(there) == 1:
        return Resolved(there[0].n, there[0])
    return Resolved(reference.n or NO_NUMBER, None, Objection("no_such_passage", _why_none(reference, len(there))))


def _why_none(reference: Reference, count: int) -> str:
    if count:
        return f"{count} passages are from {reference.file}: the marker does not tell which it means"
    return f"there is no passage {'with this number' if reference.n is not None else f'from {reference.file}'}"


def _misplaced(reference: Reference, source: Source) -> Objection | None:
    """A place in the reference that contradicts the source's; an unknown place cannot."""
    locator = source.locator
    if reference.file is not None and not _is_of(reference.file, source):
        known = locator.source if isinstance(locator, DocumentLocator) else locator.label()
        return Objection("wrong_place", f"the passage is from {known}, not from {reference.file}")
    page = locator.page if isinstance(locator, DocumentLocator) else None
    if reference.pages and page is not None and not any(first <= page <= last for first, last in reference.pages):
        named = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in reference.pages)
        return Objection("wrong_place", f"the passage is on page {page}, not on page {named}")
    return None


def _is_of(file: str, source: Source) -> bool:
    named = _plain(file)
    locator = source.locator
    if isinstance(locator, DocumentLocator):
        path = locator.source.replace("\\", "/")
        known = {path, path.rpartition("/")[2], locator.title}
    else:
        known = set(locator.names().values())
    names = {_plain(name) for name in known if name}
    return named in names or _EXTENSION.sub("", named) in {_EXTENSION.sub("", name) for name in names}


def _plain(name: str) -> str:
    return _UNSIGNED.sub(" ", normalised(name)).strip()
