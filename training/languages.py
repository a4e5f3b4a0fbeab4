"""Train the classifier that tells which language a question is in: ``python -m training.languages``.

The questions that train the other classifiers train it, each with the language that its author gave. Languages that
their script tells need no classifier.
"""

from __future__ import annotations

import json
import sys

from cicada.text.characters import unaccented
from cicada.text.detection import TOLD_APART
from cicada.text.features import spelling_of
from cicada.text.languages import canonical
from training.fitting import bare
from training.models import DATA, Labelled, Model, main

ASKED = ("query", "earlier", "asked")
"""Fields that hold a question."""


class Languages(Model):
    """Its sentences are those of all folders, each once."""

    def sentences(self) -> list[Labelled]:
        """See :class:`Model`."""
        found: dict[tuple[str, str], Labelled] = {}
        for path in sorted(DATA.glob("*/*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                told = json.loads(line)
                if "language" not in told:  # the questions on manuals are all English
                    continue
                language = canonical(told["language"])
                for text in (told[name] for name in ASKED if told.get(name)):
                    if language in TOLD_APART:
                        found.setdefault((path.stem, text), Labelled(text, language, told["language"], path.stem))
        return list(found.values())

    def split(self) -> dict[str, list[str]]:
        """Whoever tunes or is held aside anywhere does not train here."""
        splits = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("*/split.json"))]
        tuning, aside = ({one for split in splits for one in split[name]} for name in ("tuning", "held_aside"))
        return {"tuning": sorted(tuning), "held_aside": sorted(aside - tuning)}


def in_haste(text: str) -> str:
    """A question without capitals, punctuation and accents."""
    return unaccented(bare(text))


MODEL = Languages(
    name="languages",
    package="cicada.text",
    labels=TOLD_APART,
    buckets=1 << 20,
    decay=4e-6,
    featuring=spelling_of,
    in_haste=in_haste,
)

if __name__ == "__main__":
    sys.exit(main(MODEL))
