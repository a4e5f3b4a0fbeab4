"""Follow-up questions: how many that lean on the conversation are completed, and how many whole ones are changed.

Each question is put after a turn: a follow-up after the one that its author wrote before it, a question that was
written to be routed after one drawn at random. The stand-in of the local cloud completes them, as for ``make up``.

- ``called``: the share for which a model is asked, which costs a call.
- ``changed``: the share that is searched for in other words than the asker's. For whole questions each is a fault.
- ``completed``: of those that lean, the share whose new words tell something that its author's completion tells.

    python -m benchmarks.followups
    python -m benchmarks.followups --authors dufay
    python -m benchmarks.followups --queries DIRECTORY/queries.jsonl

With ``--queries``, whole questions of judged sets are put after turns drawn from the authors in their place.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cicada.conversation.completion import UNCHANGED, completing_prompt, refusal
from cicada.conversation.leaning import is_whole
from cicada.conversation.turns import ConversationTurn
from cicada.text.sentences import unquoted
from cicada.text.words import content_words
from cicada_local.bedrock.extractive.completing import complete_from
from training.models import DATA

AUTHORS = ("corelli", "dufay", "holst", "stanford")
"""Who tunes; the authors who train the classifier say nothing about it, those held aside are run once."""
_Z = 1.96


@dataclass(frozen=True)
class Case:
    """A question after a turn."""

    query: str
    turn: ConversationTurn
    leans: bool
    complete: str
    language: str
    author: str


@dataclass(frozen=True)
class Outcome:
    """What becomes of it."""

    case: Case
    called: bool
    changed: bool
    completed: bool


def cases_of(author: str) -> Iterator[Case]:
    """The questions of an author."""
    draw = random.Random(author)
    follow_ups = _lines("followups", author)
    turns = [ConversationTurn("r", 1, one["previous"], one["previous"], one["answer"]) for one in follow_ups]
    for one, turn in zip(follow_ups, turns, strict=True):
        yield Case(one["query"], turn, bool(one["needs"]), one["complete"], one["language"], author)
    for one in _lines("routing", author):
        yield Case(one["query"], draw.choice(turns), False, "", one["language"], author)


def cases_in(queries: Path, authors: Sequence[str]) -> Iterator[Case]:
    """The queries of a judged set (``text`` of each line), each a whole question after a turn of the authors."""
    draw = random.Random(queries.parent.name)
    turns = [case.turn for author in authors for case in cases_of(author)]
    for line in queries.read_text(encoding="utf-8").splitlines():
        yield Case(json.loads(line)["text"], draw.choice(turns), False, "", "", queries.parent.name)


def outcome_of(case: Case) -> Outcome:
    """Ask, complete and check as an answer does."""
    if is_whole(case.query):
        return Outcome(case, called=False, changed=False, completed=False)
    written = unquoted(complete_from(completing_prompt(case.query, [case.turn]).user).strip())
    taken = written != UNCHANGED and refusal(written, case.query, [case.turn]) is None
    changed = taken and written != case.query
    own = set(content_words(case.query))
    told = (set(content_words(case.complete)) - own) & (set(content_words(written)) - own)
    return Outcome(case, called=True, changed=changed, completed=changed and bool(told))


def share(outcomes: Sequence[Outcome], field: str) -> str:
    """A share with its 95 % interval (Wilson)."""
    n = len(outcomes)
    if not n:
        return "-"
    p = sum(getattr(one, field) for one in outcomes) / n
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return f"{p:6.1%} [{middle - half:.1%}, {middle + half:.1%}]"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for all, for each author, and for each language."""
    yield f"{'':<10}{'lean':>6} {'called':<24}{'completed':<24}{'whole':>6} {'called':<24}{'changed':<24}"
    groups = {"all": list(outcomes)}
    for one in outcomes:
        for name in filter(None, (one.case.author, one.case.language)):
            groups.setdefault(name, []).append(one)
    for name, group in groups.items():
        leaning = [one for one in group if one.case.leans]
        whole = [one for one in group if not one.case.leans]
        yield (
            f"{name:<10}{len(leaning):>6} {share(leaning, 'called'):<24}{share(leaning, 'completed'):<24}"
            f"{len(whole):>6} {share(whole, 'called'):<24}{share(whole, 'changed'):<24}"
        )


def _lines(kind: str, author: str) -> list[dict[str, str]]:
    path = DATA / kind / f"{author}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--authors", nargs="+", default=AUTHORS, help="whose questions (default: who tunes)")
    parser.add_argument("--queries", nargs="+", type=Path, default=(), help="queries.jsonl of judged sets")
    parser.add_argument("--most", type=int, help="of each author, at most so many")
    parser.add_argument("--faults", action="store_true", help="print the whole questions that are changed")
    args = parser.parse_args(argv)
    sources = [cases_in(path, args.authors) for path in args.queries] if args.queries else map(cases_of, args.authors)
    outcomes = [outcome_of(case) for cases in sources for case in islice(cases, args.most)]
    print("\n".join(table(outcomes)))
    if args.faults:
        print("\n".join(one.case.query for one in outcomes if one.changed and not one.case.leans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
