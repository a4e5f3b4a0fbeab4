"""What the training commands share: labelled files by author, the model's file, and how well it does on each author.

Each author's sentences are one file, ``training/data/<model>/<author>.jsonl``, a JSON object a line: ``query``,
``label``, ``language``. ``training/data/<model>/split.json`` says which authors tune and which are held aside; all
others train.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np
from scipy.sparse import diags

from cicada.text.features import Featuring, features_of
from cicada.text.linear import LinearClassifier, dumped
from training.fitting import bare, fitted, quantised, sentences_of, tellings, tempered

DATA = Path(__file__).resolve().parent / "data"
MOST_ROWS = 70_000
"""Of a model's file: with six labels it stays below 512 KB."""


@dataclass(frozen=True)
class Labelled:
    """One sentence, with what its author says it is."""

    query: str
    label: str
    language: str
    author: str


@dataclass(frozen=True)
class Model:
    """A classifier to train."""

    name: str
    package: str
    """Of the library, where its file lies."""
    labels: tuple[str, ...]
    buckets: int
    decay: float
    weights: Mapping[str, float] = field(default_factory=dict)
    """What a sentence of a label counts, where not 1."""
    featuring: Featuring = features_of
    in_haste: Callable[[str], str] = bare
    """Gives the form of a sentence that counts less beside it."""
    beside: Callable[[str], tuple[str, ...]] = lambda _: ()
    """Gives further features of a sentence."""

    by_telling: bool = True
    """Whether features that tell more are held less. It finds more, and errs more where classes look alike."""

    @property
    def path(self) -> Path:
        """Its file."""
        return Path(str(files(self.package) / f"{self.name}.bin"))

    def sentences(self) -> list[Labelled]:
        """All labelled sentences, in the order of their files and lines."""
        return [one for path in sorted((DATA / self.name).glob("*.jsonl")) for one in read(path)]

    def split(self) -> dict[str, list[str]]:
        """Authors that are not for training: ``tuning`` and ``held_aside``."""
        path = DATA / self.name / "split.json"
        told: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return {"tuning": told.get("tuning", []), "held_aside": told.get("held_aside", [])}


def read(path: Path) -> Iterator[Labelled]:
    """One author's sentences."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            told = json.loads(line)
            yield Labelled(told["query"], told["label"], told["language"], path.stem)


def train(model: Model, most: int | None = None) -> bytes:
    """The model's file: its weights are fitted to the authors who train, its temperature to those who tune.

    Args:
        model: what to train.
        most: of each author and label, at most so many sentences.
    """
    split = model.split()
    seen: Counter[tuple[str, str]] = Counter()
    sentences = []
    for one in model.sentences():
        seen[one.author, one.label] += 1
        if most is None or seen[one.author, one.label] <= most:
            sentences.append(one)
    mine = [one for one in sentences if one.author not in (*split["tuning"], *split["held_aside"])]
    tuning = [one for one in sentences if one.author in split["tuning"]] or mine
    buckets, matrix, shares = sentences_of(
        [one.query for one in mine],
        model.buckets,
        [model.beside(one.query) for one in mine],
        [model.weights.get(one.label, 1.0) for one in mine],
        model.featuring,
        model.in_haste,
    )
    labels = [one.label for one in mine]
    telling = tellings(matrix[: len(mine)], labels, model.labels) if model.by_telling else np.ones(len(buckets))
    scaled = (matrix @ diags(telling)).tocsr()
    weights = fitted(scaled, labels * 2, model.labels, decay=model.decay, weights=shares) * telling[:, None]
    kept, scale, packed = quantised(weights, MOST_ROWS)
    rows = [buckets[row] for row in kept]
    untempered = LinearClassifier(model.labels, model.buckets, scale, 1.0, rows, packed, model.featuring)
    temperature = tempered(
        [untempered.decide(one.query, beside=model.beside(one.query)).probabilities for one in tuning],
        [one.label for one in tuning],
    )
    return dumped(model.labels, model.buckets, scale, temperature, rows, packed)


def report(model: Model, sentences: Sequence[Labelled]) -> str:
    """How often the model's file is right, by author and by language."""
    classifier = LinearClassifier.read(model.path, model.featuring)
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for one in sentences:
        for group in (one.author, one.language):
            seen[group] += 1
            right[group] += classifier.decide(one.query, beside=model.beside(one.query)).label == one.label
    return "\n".join(
        f"{group:<12} {right[group]:>5} of {seen[group]:>5}  {right[group] / seen[group]:.3f}" for group in seen
    )


def main(model: Model, argv: Sequence[str] | None = None) -> int:
    """Train, write the model's file, and say how well it does on the authors who did not train it."""
    parser = argparse.ArgumentParser(description=f"Train the classifier {model.name}.")
    parser.add_argument("--check", action="store_true", help="only compare: exit with 1 if the file would be another")
    parser.add_argument(
        "--trial", type=int, metavar="N", help="train on N sentences an author and label, write nothing"
    )
    args = parser.parse_args(argv)
    made = train(model, args.trial)
    if args.trial:
        print(f"{model.path.name}: {len(made):,} bytes in a trial")
        return 0
    if args.check:
        same = model.path.read_bytes() == made
        print(f"{model.path.name}: {'the same' if same else 'another'}")
        return 0 if same else 1
    model.path.write_bytes(made)
    print(f"{model.path.name}: {len(made):,} bytes")
    split = model.split()
    unseen = [one for one in model.sentences() if one.author in split["tuning"]]
    if unseen:
        print(report(model, unseen))
    return 0
