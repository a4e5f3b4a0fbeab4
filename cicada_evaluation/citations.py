"""How well a judge tells what passages support: ``cicada eval --citations``.

A file has a labelled pair a line: ``sentence``, ``passage``, ``supported``, ``kind``, ``language``, and where it
stands: ``speaker``, or ``source`` and ``page``. Each sentence is checked as an answer of one sentence that
cites its passage.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.answering.judge import CitationJudge
from cicada.attempts.budgets import AttemptBudget, RequestBudget
from cicada.citations import check_citations
from cicada.corpus.passages import DocumentLocator, Locator, ScriptLocator
from cicada.protocol.events import Source
from cicada_evaluation.errors import EvaluationRefused

UNBOUNDED = RequestBudget(tokens=10**9, cost_usd=1e9)


@dataclass(frozen=True)
class Pair:
    """A sentence of an answer and the passage that it cites, labelled by hand."""

    sentence: str
    passage: str
    supported: bool
    kind: str  # how the sentence says it, or what is wrong with it
    language: str
    speaker: str | None = None
    source: str | None = None
    page: int | None = None

    @property
    def cited(self) -> Source:
        """The passage as source 1."""
        return Source(n=1, passage_id="p1", collection="c", locator=self._locator, score=0.8, text=self.passage)

    @property
    def _locator(self) -> Locator:
        if self.speaker is None:
            name = self.source or "document.txt"
            return DocumentLocator(source=name, title=name, page=self.page)
        return ScriptLocator(
            episode_id="ep1", episode_name="The First", chapter_id="c1", message_id="m1", speaker=self.speaker
        )


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """The labelled pairs of a file.

    Raises:
        EvaluationRefused: it is none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return tuple(Pair(**json.loads(line)) for line in lines if line.strip())
    except (OSError, ValueError, TypeError) as error:
        raise EvaluationRefused(f"{path}: {error}") from error


def verdict_of(pair: Pair, judge: CitationJudge | None) -> str:
    """What an answer's citation of the passage is found to be: ``verified``, ``unverified`` or ``unchecked``."""
    attempt_budget = AttemptBudget("rag", calls=1, deadline=float("inf"), budget=UNBOUNDED)
    answer = f"{pair.sentence.strip()} [1]"
    found = check_citations(answer, [pair.cited], judge.within(attempt_budget) if judge else None)
    verdicts = {citation.verdict for citation in found}
    return next((one for one in ("unverified", "unchecked", "verified") if one in verdicts), "unchecked")


def table(pairs: Sequence[Pair], verdicts: Sequence[str]) -> Iterator[str]:
    """A line for all and for each language: how often a verdict is right, and how many it finds."""
    yield f"{'':<6}{'pairs':>6}  {'verified: right':<18}{'found':<16}{'unverified: right':<20}{'found':<16}unchecked"
    for language in ("", *sorted({pair.language for pair in pairs})):
        rows = [
            (pair.supported, verdict)
            for pair, verdict in zip(pairs, verdicts, strict=True)
            if language in ("", pair.language)
        ]
        counted = Counter(rows)
        supported = sum(is_so for is_so, _ in rows)
        verified = counted[True, "verified"] + counted[False, "verified"]
        unverified = counted[True, "unverified"] + counted[False, "unverified"]
        unchecked = len(rows) - verified - unverified
        yield (
            f"{language or 'all':<6}{len(rows):>6}  {_of(counted[True, 'verified'], verified):<18}"
            f"{_of(counted[True, 'verified'], supported):<16}{_of(counted[False, 'unverified'], unverified):<20}"
            f"{_of(counted[False, 'unverified'], len(rows) - supported):<16}{_of(unchecked, len(rows))}"
        )


def _of(count: int, of: int) -> str:
    return f"{count}/{of} {count / of:.2f}" if of else "-"
