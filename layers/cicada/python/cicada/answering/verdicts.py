"""Whether an answer about a theory says something that it would have to show, and shows nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from cicada.agents.tools.shown import is_change
from cicada.agents.tools.weighing import MODERATE, gathered, statement_named
from cicada.answering.verdict_words import (
    STATEMENT,
    masked,
    needs_no_evidence,
    only_judges,
    only_tells_of_keeping,
    verdicts_in,
)
from cicada.citations.quotes import QUOTED, holds
from cicada.citations.sentences import sentences_of
from cicada.corpus.passages import NoteLocator
from cicada.profiles.record import Side
from cicada.protocol.events import Citation, Source

_OF_A_NOTE = re.compile(r"^.*? · statement: ")
_LETTER = re.compile(r"[^\W\d_]")
_ON_RECORD = re.compile(r"^verdict on record: (\w+)$", re.MULTILINE)
_IN_A_CHANGE = re.compile(r"“(supported|contradicted|open)\b")
_OF_A_CHANGE = re.compile(
    r"\b(?:version|added|removed|replaced|became|chang\w+|refined|recorded|geändert|hinzugefügt|entfernt|ersetzt)\b",
    re.IGNORECASE,
)
_QUOTED_WORDS = 3
"""Of the shortest quotation of a passage whose words are not the answer's own."""


def lacks_evidence(
    text: str,
    sources: Sequence[Source],
    citations: Sequence[Citation],
    *,
    said: Sequence[str] = (),
    recorded: bool,
    changed: bool,
) -> bool:
    """Whether an answer judges a theory, or states anything at all, without showing what that rests on.

    What counts as shown are verified citations of passages; the user's own notes prove nothing. A sentence that judges
    needs one of its own, of evidence that was gathered in this run. Without it, three may stand: one after a verdict
    was recorded, in an answer that cites its evidence; one that says nothing but the verdict, on the side of evidence
    that the answer cites, more than weak, where evidence was gathered for one statement alone; and one that
    tells the verdict on record, with the number of the theory's note, or that of a change with the change's own.

    An answer that cites no passage may besides say that nothing was found, ask back, and tell of what is kept, was
    changed, was searched or could not be done. Rather too strict than too kind: what is refused here is answered by a
    search.

    Args:
        text: the whole answer.
        sources: that it was written from.
        citations: checked.
        said: what the user has said of the theory: no words of the answer's own where it repeats them.
        recorded: whether a verdict was recorded in this run.
        changed: whether a tool has changed anything for the user.
    """
    reading = _Reading(sources, citations, (*said, *_statements(sources)))
    if recorded and not reading.shown:
        return True
    listing = False
    for sentence in sentences_of(text):
        if not _LETTER.search(sentence.text):
            continue
        told, repeated = reading.told(sentence.text)
        cited = reading.cited_in(sentence.text)
        verdicts = verdicts_in(told)
        if not verdicts and not listing and told.strip(" .!") == STATEMENT and not cited & reading.shown:
            verdicts = frozenset({"for"})  # the user's statement, told as a fact
        if verdicts:
            rests = reading.rests_on_its_own(cited) or (recorded and reading.evidence)
            on_record = reading.is_on_record(cited, told) or reading.is_history(cited, told)
            if not (rests or on_record or reading.follows(verdicts, told, repeated)):
                return True
            continue
        listed = listing and (bool(cited) or bool(repeated) or needs_no_evidence(told))
        listing = only_tells_of_keeping(told) or listed
        if reading.shown or listed or needs_no_evidence(told) or reading.is_history(cited, told):
            continue
        if not changed or not told.replace(STATEMENT, "").strip(" .!-*•"):
            return True
    return False


class _Reading:
    """An answer's sources and citations, as sentences are held against them."""

    def __init__(self, sources: Sequence[Source], citations: Sequence[Citation], statements: Sequence[str]) -> None:
        self._sources = {source.n: source for source in sources}
        self._verified = [one for one in citations if one.verdict == "verified" and one.n in self._sources]
        self._statements = statements
        self.shown = {one.n for one in self._verified if not isinstance(one.locator, NoteLocator)}
        """Passages that are cited and hold."""
        self.evidence = {n: found for n in self.shown if (found := tuple(gathered(self._sources[n])))}
        """Those of them that were gathered as evidence."""

    def told(self, sentence: str) -> tuple[str, tuple[str, ...]]:
        """A sentence without words that are others', and the user's statements that it repeats."""
        without = QUOTED.sub(lambda found: STATEMENT if self._is_quoted(found.group()) else found.group(), sentence)
        return masked(without, self._statements)

    def cited_in(self, sentence: str) -> set[int]:
        """The numbers that hold in a sentence."""
        return {one.n for one in self._verified if one.sentence == sentence and one.n is not None}

    def rests_on_its_own(self, cited: set[int]) -> bool:
        """Whether a sentence cites evidence."""
        return any(n in self.evidence for n in cited)

    def is_on_record(self, cited: set[int], told: str) -> bool:
        """Whether a sentence tells a verdict that a theory's note, which it cites, has."""
        texts = [self._sources[n].text for n in cited if isinstance(self._sources[n].locator, NoteLocator)]
        found = {verdict for text in texts for verdict in _ON_RECORD.findall(text)}
        return any(not verdicts_in(re.sub(rf"\b{verdict}\b", " ", told)) for verdict in found)

    def is_history(self, cited: set[int], told: str) -> bool:
        """Whether a sentence tells what was changed, with no verdict but those of the changes that it cites."""
        texts = [self._sources[n].text for n in cited if is_change(self._sources[n])]
        if not texts or not _OF_A_CHANGE.search(told):
            return False
        found = {verdict for text in texts for verdict in _IN_A_CHANGE.findall(text)}
        return not verdicts_in(re.sub(rf"\b(?:{'|'.join(sorted(found))})\b", " ", told) if found else told)

    def follows(self, verdicts: frozenset[Side], told: str, repeated: Sequence[str]) -> bool:
        """Whether a sentence says nothing but a verdict, and the answer cites what that follows from."""
        about = {named for found in map(gathered, self._sources.values()) for named, _ in found}
        if len(about) != 1 or not {statement_named(statement) for statement in repeated} <= about:
            return False
        sides = {
            one.side for found in self.evidence.values() for _, one in found if one.strength >= MODERATE and one.side
        }
        return verdicts <= sides and only_judges(told)

    def _is_quoted(self, quotation: str) -> bool:
        inside = quotation[1:-1]
        return len(inside.split()) >= _QUOTED_WORDS and any(holds(one.text, inside) for one in self._sources.values())


def _statements(sources: Sequence[Source]) -> Iterator[str]:
    """The statements of the theories whose notes are among the sources."""
    for source in sources:
        if isinstance(source.locator, NoteLocator) and source.locator.field == "statement":
            yield _OF_A_NOTE.sub("", source.text.partition("\n")[0])
