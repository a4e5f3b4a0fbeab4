"""What the benchmarks of structured knowledge share: the sample campaign in an index, and its labelled questions."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.retrieval_data import ROOT, MiniLmEmbedder
from cicada.index.reader import IndexReader
from cicada.ingest.contracts import Recipe
from cicada.ingest.enrichment.enricher import Enricher
from cicada.ingest.loading import load_documents
from cicada.retrieval.knowledge.contracts import Catalogue, catalogue_of
from cicada.rights import EVERYTHING
from cicada.text.names import bare_key
from tests.support.object_stores import InMemoryStore

CAMPAIGN = ROOT / "samples" / "campaign"
QUESTIONS = ROOT / "tests" / "data" / "campaign_questions.jsonl"


@dataclass(frozen=True)
class Asked:
    """A labelled question."""

    text: str
    split: str
    """``tuning``, which confidences and the stand-in were fitted to, or ``held_aside``."""
    needs: frozenset[str]
    """What it needs, each as ``collection/intention``."""
    entities: frozenset[str]
    """Whom and what it names, as the index files them, folded and without articles."""

    @property
    def collections(self) -> frozenset[str]:
        """The collections that it needs."""
        return frozenset(need.partition("/")[0] for need in self.needs)


@dataclass(frozen=True)
class Counts:
    """What was found, beside what is labelled, over all questions."""

    found: int = 0
    labelled: int = 0
    right: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(self.found + other.found, self.labelled + other.labelled, self.right + other.right)

    @classmethod
    def of(cls, pairs: Iterable[tuple[frozenset[str], frozenset[str]]]) -> Counts:
        """Of what was found and what is labelled, question by question."""
        return sum((cls(len(got), len(wanted), len(got & wanted)) for got, wanted in pairs), cls())

    @property
    def precision(self) -> float:
        """Of what was found, the share that is right."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Of what is labelled, the share that was found."""
        return self.right / self.labelled if self.labelled else 1.0

    def told(self) -> str:
        """As a table's cells."""
        return f"{self.precision:9.3f} {self.recall:6.3f}"


def campaign_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the caller choose a smaller campaign, and fewer questions."""
    parser.add_argument("--campaign", type=Path, default=CAMPAIGN, help="its folder (default: %(default)s)")
    parser.add_argument("--most", type=int, help="at most so many questions")


def labelled_questions(most: int | None = None) -> list[Asked]:
    """The labelled questions, in their order: all, or the first ones."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Asked(
            row["question"],
            row["split"],
            frozenset(
                f"{collection}/{intention}" for collection, wanted in row["collections"].items() for intention in wanted
            ),
            frozenset(bare_key(entity["name"]) for entity in row["entities"]),
        )
        for row in rows[:most]
    ]


@contextmanager
def campaign(folder: Path) -> Iterator[tuple[IndexReader, Catalogue]]:
    """The campaign, loaded as ``cicada load`` does into a store in memory: its reader, warm, and what it declares."""
    store = InMemoryStore()
    embedder = MiniLmEmbedder()
    recipe = Recipe(embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    for collection in sorted(one for one in folder.iterdir() if one.is_dir()):
        enricher = Enricher(recipe.enrichment, None, store)
        load_documents([collection], collection.name, store, embedder, recipe, enricher=enricher)
    reader = IndexReader(store, embedding_model_id=embedder.model_id, dimensions=embedder.dimensions)
    try:
        reader.warm_up()
        yield reader, catalogue_of(reader.current().manifest, EVERYTHING)
    finally:
        reader.close()
