"""Clauses in the making, and those that lean on the one before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cicada.citations.clauses import ANY, Clause, Word


@dataclass
class Draft:
    """What was read of a clause so far."""

    words: list[Word] = field(default_factory=list)
    negations: list[str] = field(default_factory=list)
    waiting: int = 0
    levels: set[str] = field(default_factory=set)
    modes: set[str] = field(default_factory=set)
    participle_at: int | None = None
    agent_at: int | None = None
    been: bool = False
    doubtful: set[str] = field(default_factory=set)
    first_person: bool = False

    def clause(self) -> Clause | None:
        """The clause; None where nothing was read."""
        if not (self.words or self.waiting):
            return None
        return Clause(
            tuple(self.words),
            (*self.negations, *[""] * self.waiting),
            frozenset(self.levels),
            frozenset(self.modes),
            self.agent_at,
            self.first_person,
            self.participle_at,
            frozenset(self.doubtful),
        )


def with_ellipses(clauses: Sequence[Clause]) -> Iterator[Clause]:
    """The clauses, and for each that leans on the one before it (*I did not*, *but not labour*) both together."""
    before: Clause | None = None
    for clause in clauses:
        content = [word for word in clause.words if not (word.turning or word.name)]
        leans = before is not None and bool(clause.negations) and len(content) <= 1
        if clause.words:
            yield clause
        if before is not None and leans:
            heads = tuple(head for head in clause.negations if head) or (ANY,)
            yield replace(clause, words=(*before.words, *clause.words), negations=(*before.negations, *heads))
        elif clause.words:
            before = clause
