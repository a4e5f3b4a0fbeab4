"""How well the check of citations tells what a passage supports, beside three simpler checks on the same pairs.

Labelled pairs of a sentence and a passage; the passage stands as ``[1]`` among up to four others of its language, as in
an answer. Beside the checker: the cosine of MiniLM, the share of the sentence's words that the passage has (a recall of
words, like ROUGE-1), and the share with quotations and numbers compared, which is how citations were checked before.
The thresholds of the first two are those with the best mean of both labels' shares of right verdicts on the tuning
pairs: by right verdicts alone they would call nothing supported.

The blind part was written by somebody who had seen neither the checker nor the other two parts. All three have been
worked with since: on two thirds of each, by a hash of the passage; ``--third`` measures the last third alone. The part
``blind again`` is a third author's, written while the checker was worked on, and has not been worked with.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.classifier import wilson_interval
from cicada.citations import check_citations
from cicada.corpus.passages import DocumentLocator, Locator, ScriptLocator
from cicada.protocol.events import Source
from local.bedrock.minilm import MiniLM

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
PARTS = {
    "tuning": DATA / "citations_tuning.jsonl",
    "held-aside": DATA / "citations_held_aside.jsonl",
    "blind": DATA / "citations_blind.jsonl",
    "blind again": DATA / "citations_blind_2.jsonl",
}
DISTRACTORS = 4
THIRDS = 3
WARM_UP = 50
_WORD = re.compile(r"\w+")
_QUOTE = re.compile(r"\"([^\"]{2,}?)\"|“([^”]{2,}?)”|«([^»]{2,}?)»|「([^」]+?)」")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_STOP = frozenset(
    "a about after all also am an and any are as at be because been before being but by can could did do does for "
    "from had "
    "has have he her hers him his how i if in into is it its me my no nor not of on only or our out over own said "
    "say says "
    "she so some such tells than that the their them then there these they this those through to told too under "
    "until up "
    "was we were what when where which while who whom why will with would you your".split()
)
_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence of an answer and the passage that it cites, labelled by hand."""

    sentence: str
    passage: str
    supported: bool
    kind: str
    """How the sentence says it, or what is wrong with it."""
    language: str
    speaker: str | None = None
    source: str | None = None
    page: int | None = None

    @property
    def locator(self) -> Locator:
        """Where the passage stands."""
        if self.speaker is not None:
            return ScriptLocator(
                episode_id="ep1", episode_name="The First", chapter_id="c1", message_id="m1", speaker=self.speaker
            )
        name = self.source or "document.txt"
        return DocumentLocator(source=name, title=name.rpartition(".")[0], page=self.page)


@dataclass(frozen=True)
class Case:
    """A pair among the other passages of its prompt."""

    pair: Pair
    sources: tuple[Source, ...]


Check = Callable[[Case], bool]
"""Whether the sentence is held for supported."""


def read_part(path: Path) -> tuple[Pair, ...]:
    """The labelled pairs of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        return tuple(Pair(**json.loads(line)) for line in file)


def cases_of(pairs: Sequence[Pair]) -> list[Case]:
    """Each pair with the passages that follow its own among those of its language."""
    passages: defaultdict[str, dict[str, Pair]] = defaultdict(dict)
    for pair in pairs:
        passages[pair.language].setdefault(pair.passage, pair)
    cases = []
    for pair in pairs:
        of_language = list(passages[pair.language].values())
        at = next(at for at, one in enumerate(of_language) if one.passage == pair.passage)
        others = [*of_language[at + 1 :], *of_language[:at]][:DISTRACTORS]
        sources = (
            Source(n=n, passage_id=f"p{n}", collection="c", locator=one.locator, score=0.5, text=one.passage)
            for n, one in enumerate((pair, *others), 1)
        )
        cases.append(Case(pair, tuple(sources)))
    return cases


def in_last_third(case: Case) -> bool:
    """Whether a case belongs to the third that was seldom looked at."""
    return int(hashlib.sha256(case.pair.passage.encode()).hexdigest(), 16) % THIRDS == 0


def by_checker(case: Case) -> bool:
    """The check of production."""
    citations = check_citations(f"{case.pair.sentence} [1]", case.sources)
    return all(citation.verdict == "verified" for citation in citations)


def words_of(text: str) -> list[str]:
    """Words in lower case; pairs of characters where a script has no spaces."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if len(word) > 1 and ord(max(word)) > 0x3000:
            found += (word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.append(word)
    return found


def overlap(case: Case) -> float:
    """The share of the sentence's words that its passage has, the speaker's name among them."""
    sentence = words_of(case.pair.sentence)
    passage = {*words_of(case.pair.passage), *words_of(case.pair.speaker or "")}
    return sum(word in passage for word in sentence) / max(1, len(sentence))


def by_share(case: Case) -> bool:
    """The check of before: quotations and numbers to the letter, and half of the content words cut to six letters."""
    passage = unicodedata.normalize("NFKC", case.pair.passage).casefold()
    sentence = unicodedata.normalize("NFKC", case.pair.sentence).casefold()
    quotes = ["".join(groups).strip(" .,;:!?…。、") for groups in _QUOTE.findall(sentence)]
    if any(quote not in passage for quote in quotes):
        return False
    told = _QUOTE.sub(" ", sentence)
    known = f"{passage} {case.pair.speaker or ''} {case.pair.source or ''} {case.pair.page or ''}".casefold()
    if set(_NUMBER.findall(told)) - set(_NUMBER.findall(known)):
        return False
    words = {word[:6] for word in words_of(told) if word not in _STOP and not word.isdigit()}
    there = {word[:6] for word in words_of(known)}
    return bool(quotes) if not words else len(words & there) / len(words) >= _SHARE


def best_threshold(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The threshold with the best mean of the shares of right verdicts on supported pairs, and on the others."""

    def balanced(bar: float) -> float:
        right = [(score >= bar) is label for score, label in zip(scores, labels, strict=True)]
        halves = ([one for one, label in zip(right, labels, strict=True) if label is which] for which in (True, False))
        return sum(sum(half) / len(half) for half in halves)

    return max(sorted(set(scores)), key=balanced)


def share(count: int, of: int) -> str:
    """A share with its 95 % interval (Wilson)."""
    if not of:
        return f"{'none of 0':<28}"
    low, high = wilson_interval(count, of)
    return f"{count / of:5.1%} ({max(0.0, low):.0%}–{high:.0%}) {count}/{of}".ljust(28)


def table(cases: Sequence[Case], checks: dict[str, Check]) -> list[str]:
    """Precision and recall of both verdicts, for each check."""
    out = [f"{'':<22}{'unverified: precision':<28}{'recall':<28}{'verified: precision':<28}{'recall':<28}"]
    for name, check in checks.items():
        held = [check(case) for case in cases]
        labels = [case.pair.supported for case in cases]
        rows = list(zip(held, labels, strict=True))
        caught = sum(not one and not label for one, label in rows)
        passed = sum(one and label for one, label in rows)
        out.append(
            f"{name:<22}{share(caught, held.count(False))}{share(caught, labels.count(False))}"
            f"{share(passed, held.count(True))}{share(passed, labels.count(True))}"
        )
    return out


def by_kind(cases: Sequence[Case], checks: dict[str, Check]) -> list[str]:
    """How many pairs of each kind every check gets right."""
    kinds: defaultdict[tuple[bool, str], list[Case]] = defaultdict(list)
    for case in cases:
        kinds[not case.pair.supported, case.pair.kind].append(case)
    out = [f"{'right, by kind':<26}{'pairs':>6}  " + "".join(f"{name:>22}" for name in checks)]
    for (wrong, kind), group in sorted(kinds.items()):
        label = f"{'–' if wrong else '+'} {kind}"
        right = "".join(f"{sum(check(case) is not wrong for case in group):>22}" for check in checks.values())
        out.append(f"{label:<26}{len(group):>6}  {right}")
    return out


def time_of(cases: Sequence[Case]) -> tuple[float, float]:
    """Milliseconds that the checker takes for a sentence: median, and 95th percentile."""
    took = []
    for at, case in enumerate((*cases[:WARM_UP], *cases)):
        started = time.perf_counter()
        by_checker(case)
        if at >= WARM_UP:
            took.append((time.perf_counter() - started) * 1000)
    return statistics.median(took), statistics.quantiles(took, n=20)[-1]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--kinds", action="store_true", help="also by kind")
    parser.add_argument("--third", action="store_true", help="only the third that was seldom looked at")
    args = parser.parse_args()
    parts = {name: cases_of(read_part(path)) for name, path in PARTS.items()}
    texts = list(
        dict.fromkeys(
            text for cases in parts.values() for case in cases for text in (case.pair.sentence, case.pair.passage)
        )
    )
    vectors = dict(zip(texts, MiniLM.load().embed(texts), strict=True))

    def cosine(case: Case) -> float:
        return float(vectors[case.pair.sentence] @ vectors[case.pair.passage])

    labels = [case.pair.supported for case in parts["tuning"]]
    cosine_bar = best_threshold([cosine(case) for case in parts["tuning"]], labels)
    overlap_bar = best_threshold([overlap(case) for case in parts["tuning"]], labels)
    checks: dict[str, Check] = {
        "checker": by_checker,
        f"cosine ≥ {cosine_bar:.2f}": lambda case: cosine(case) >= cosine_bar,
        f"words ≥ {overlap_bar:.2f}": lambda case: overlap(case) >= overlap_bar,
        "share of before": by_share,
    }
    for name, all_cases in parts.items():
        if args.part not in (name, "all"):
            continue
        cases = [case for case in all_cases if in_last_third(case)] if args.third else all_cases
        supported = sum(case.pair.supported for case in cases)
        print(f"\n{name}: {len(cases)} pairs, {supported} supported, {len(cases) - supported} not")
        print("\n".join(table(cases, checks)))
        if args.kinds:
            print("\n".join(by_kind(cases, checks)))
        median, late = time_of(cases)
        print(f"checker: {median:.2f} ms a sentence (median), {late:.2f} ms at the 95th percentile")


if __name__ == "__main__":
    main()
