"""How well the rules name what a text names: ``python -m benchmarks.enrichment [labelled file]``.

Over labelled sentences of several documents and languages (``tests/data/enrichment_held_aside.jsonl``, our own work),
precision, recall and F1 of the entities and the codes that the rules find, beside what is commonly done in their place:
every run of capitalised words that is no stop word, and every word of capitals and digits. A label counts as found if
the very same string is; a passage is one sentence, a document all of its sentences.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cicada.corpus.documents import Document
from cicada.ingest.enrichment.codes import codes_of
from cicada.ingest.enrichment.names import names_of
from cicada.text.frequent import FREQUENT

LABELLED = Path(__file__).parent.parent / "tests" / "data" / "enrichment_held_aside.jsonl"
_RUN = re.compile(r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_CAPITALS_AND_DIGITS = re.compile(r"\b(?=\w*\d)[A-Z][A-Z0-9-]+\b")


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what it names."""

    document: str
    text: str
    entities: frozenset[str]
    codes: frozenset[str]


@dataclass(frozen=True)
class Measured:
    """Counts over all sentences."""

    found: int
    labelled: int
    right: int

    @property
    def precision(self) -> float:
        """Of what was found, the share that is right."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Of what is labelled, the share that was found."""
        return self.right / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def read_labelled(path: Path = LABELLED) -> list[Sentence]:
    """The labelled sentences, in their order."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Sentence(row["document"], row["text"], frozenset(row["entities"]), frozenset(row["codes"])) for row in rows]


def by_rules(sentences: Sequence[Sentence]) -> list[Collection[str]]:
    """The entities that the rules find in each sentence, as passages of their documents."""
    documents: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in sentences:
        documents[sentence.document].append(sentence.text)
    names = {name: names_of(Document(name, name, "text", "", ()), texts) for name, texts in documents.items()}
    return [names[sentence.document].of(sentence.text) for sentence in sentences]


def by_capitals(sentences: Sequence[Sentence]) -> list[Collection[str]]:
    """Every run of capitalised words but stop words."""
    return [
        [run for run in _RUN.findall(sentence.text) if run.lower() not in FREQUENT["eng"]] for sentence in sentences
    ]


def codes_by_rules(sentences: Sequence[Sentence]) -> list[Collection[str]]:
    """The codes that the rules find in each sentence."""
    return [codes_of(sentence.text) for sentence in sentences]


def codes_by_shape(sentences: Sequence[Sentence]) -> list[Collection[str]]:
    """Every word of capitals and digits."""
    return [_CAPITALS_AND_DIGITS.findall(sentence.text) for sentence in sentences]


def measure(found: Sequence[Collection[str]], labels: Sequence[Collection[str]]) -> Measured:
    """Compare what was found with the labels, sentence by sentence."""
    pairs = [(set(got), set(wanted)) for got, wanted in zip(found, labels, strict=True)]
    return Measured(
        sum(len(got) for got, _ in pairs),
        sum(len(wanted) for _, wanted in pairs),
        sum(len(got & wanted) for got, wanted in pairs),
    )


def _table(
    title: str, sentences: Sequence[Sentence], labels: Sequence[Collection[str]], ways: Iterable[tuple[str, Find]]
) -> None:
    print(f"{title}: {sum(map(len, labels))} labels in {len(sentences)} sentences")
    scores = []
    for name, way in ways:
        measured = measure(way(sentences), labels)
        scores.append(measured.f1)
        print(f"  {name:<24} precision {measured.precision:.3f}   recall {measured.recall:.3f}   F1 {measured.f1:.3f}")
    print(f"  F1 of the rules: {scores[0] / scores[1]:.2f} x the peer's\n")


Find = Callable[[Sequence[Sentence]], list[Collection[str]]]


def main() -> None:
    """Print the tables, what the rules got wrong, and how fast they are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("labelled", nargs="?", type=Path, default=LABELLED)
    parser.add_argument("--errors", action="store_true", help="show what the rules missed and made up")
    arguments = parser.parse_args()
    sentences = read_labelled(arguments.labelled)
    entities = [sentence.entities for sentence in sentences]
    codes = [sentence.codes for sentence in sentences]
    _table("Entities", sentences, entities, [("rules", by_rules), ("capitalised runs", by_capitals)])
    _table("Codes", sentences, codes, [("rules", codes_by_rules), ("capitals and digits", codes_by_shape)])
    if arguments.errors:
        for sentence, got, got_codes in zip(sentences, by_rules(sentences), codes_by_rules(sentences), strict=True):
            missed = (sentence.entities - set(got)) | (sentence.codes - set(got_codes))
            made_up = (set(got) - sentence.entities) | (set(got_codes) - sentence.codes)
            if missed or made_up:
                print(f"  {sentence.text}\n    missed {sorted(missed)}, made up {sorted(made_up)}")
    many = [sentence.text for sentence in sentences] * 200
    began = time.perf_counter()
    names = names_of(Document("many", "many", "text", "", ()), many)
    for text in many:
        names.of(text)
        codes_of(text)
    print(f"Speed: {sum(map(len, many)) / (time.perf_counter() - began) / 1e6:.1f} million characters a second")


if __name__ == "__main__":
    main()
