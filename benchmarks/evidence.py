"""How well the weighing of evidence tells on which side of a statement a passage stands, beside a simpler one.

Labelled pairs of a statement and a passage: *for* it, *against* it, or *neither*. Beside the weighing of production,
once with weak evidence and once without, on which alone a verdict can rest: the cosine of MiniLM from the strength on
that evidence is called moderate, against the statement if one of the two has a word of negation and the other has none.
The score of the search is 0.8 throughout: it is not what is compared.

Both parts are by the hand that wrote the rules. The rules were fitted to the first. The second was measured once they
stood (21 of 26 right; for: precision 7/8, recall 7/10; against: 6/6, 6/7), and then worked with, too: three of its
pairs led to corrections.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.agents.tools.wording import PLAIN_NEGATIONS

from benchmarks.citations import share
from cicada.agents.tools.weighing import MODERATE, Found, weigh
from cicada.corpus.passages import ScriptLocator
from cicada.protocol.events import Source
from cicada.text.tokens import normalised, tokens
from local.bedrock.minilm import MiniLM

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "evidence_labelled.jsonl"
PARTS = ("fitted", "held aside")
SIDES = ("for", "against")
NEITHER = "neither"
SCORE = 0.8
"""Of the search, for either side."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement and a passage, labelled by hand."""

    part: str
    """``fitted`` or ``held aside``."""
    kind: str
    """What the pair is about."""
    label: str
    """``for``, ``against`` or ``neither``."""
    statement: str
    speaker: str
    passage: str

    @property
    def source(self) -> Source:
        """The passage as a search finds it."""
        locator = ScriptLocator(
            episode_id="ep1", episode_name="The First", chapter_id="c1", message_id="m1", speaker=self.speaker
        )
        return Source(n=1, passage_id="p1", collection="c", locator=locator, score=SCORE, text=self.passage)


def read_pairs(part: str) -> tuple[Pair, ...]:
    """The labelled pairs of a part."""
    with DATA.open(encoding="utf-8") as file:
        return tuple(pair for pair in (Pair(**json.loads(line)) for line in file) if pair.part == part)


def by_deeds(pair: Pair) -> str:
    """The weighing of production."""
    return weigh(pair.statement, Found(pair.source, {"for": SCORE, "against": SCORE})).side or NEITHER


def by_deeds_not_weak(pair: Pair) -> str:
    """The same, of evidence that a verdict can rest on."""
    weighed = weigh(pair.statement, Found(pair.source, {"for": SCORE, "against": SCORE}))
    return weighed.side if weighed.side and weighed.strength >= MODERATE else NEITHER


def by_similarity(embed: Callable[[str, str], float]) -> Callable[[Pair], str]:
    """Plain similarity, with the side from words of negation."""

    def told(pair: Pair) -> str:
        if embed(pair.statement, pair.passage) < MODERATE:
            return NEITHER
        return "for" if _denies(pair.statement) == _denies(pair.passage) else "against"

    return told


def _denies(text: str) -> bool:
    return not PLAIN_NEGATIONS.isdisjoint(tokens(normalised(text)))


def table(pairs: Sequence[Pair], weighers: dict[str, Callable[[Pair], str]]) -> list[str]:
    """Precision and recall of each side, and how many pairs are right, for each way to weigh."""
    out = [f"{'':<17}" + "".join(f"{f'{side}: precision':<28}{'recall':<28}" for side in SIDES) + "right"]
    for name, weigher in weighers.items():
        told = [weigher(pair) for pair in pairs]
        line = f"{name:<17}"
        for side in SIDES:
            hits = sum(one == side == pair.label for one, pair in zip(told, pairs, strict=True))
            line += share(hits, told.count(side)) + share(hits, sum(pair.label == side for pair in pairs))
        right = sum(one == pair.label for one, pair in zip(told, pairs, strict=True))
        out.append(f"{line}{right}/{len(pairs)}")
    return out


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--wrong", action="store_true", help="also the pairs that production gets wrong")
    args = parser.parse_args()
    model = MiniLM.load()

    def cosine(one: str, other: str) -> float:
        first, second = model.embed([one, other])
        return float(first @ second)

    for part in PARTS:
        if args.part not in (part, "all"):
            continue
        pairs = read_pairs(part)
        print(f"\n{part}: {len(pairs)} pairs")
        weighers = {"deeds": by_deeds, "deeds, not weak": by_deeds_not_weak, "similarity": by_similarity(cosine)}
        print("\n".join(table(pairs, weighers)))
        if args.wrong:
            for pair in pairs:
                if (told := by_deeds(pair)) != pair.label:
                    print(f"  {told} for {pair.label}: {pair.statement} | {pair.passage}")


if __name__ == "__main__":
    main()
