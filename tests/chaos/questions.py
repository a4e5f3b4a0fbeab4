"""What is asked in a run: each question once, so that a model call shows whose it was."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).parents[2] / "samples"

SMALL_TALK = ("Hello there!", "Good evening!", "Thank you very much!", "How are you today?", "Goodbye, and thanks!")
"""Direct questions."""
POLICIES = (
    "What are your terms for ringing the fog bell at night?",
    "What are your rules for members who use the launch Heron?",
    "What is your policy for guests at supper?",
    "What is your policy on the red oilskin?",
    "What is your policy on weather forecasts?",
    "What is your policy on crossing the causeway?",
)
"""Questions that enter at the semantic cache."""
COMPARISONS = (
    "Compare Ilse and Oswin: what does each of them hide, and why?",
    "Explain why the bell rang, and compare what Tamsin and Petra make of it.",
    "Compare the suppers of the first and the third episode, and explain the difference.",
    "Explain step by step how the barometer was moved, and who knew of it.",
)
"""Questions that need both the search and earlier answers."""
OPENINGS = ("", "Please tell me: ", "I would like to know: ", "Say, ", "One more thing: ", "Remind me: ", "Listen, ")


@dataclass(frozen=True)
class Asked:
    """A question, and the episodes that it is limited to."""

    text: str
    episodes: tuple[str, ...] = ()


def script_questions() -> list[Asked]:
    """The sample's own questions."""
    lines = (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    read = [json.loads(line) for line in lines]
    return [Asked(one["question"], tuple(one["episodes"])) for one in read]


def questions(rng: random.Random) -> Iterator[Asked]:
    """Questions without end: mostly the sample's, some of every route. None comes twice before all have come."""
    others = [Asked(text) for text in (*SMALL_TALK, *POLICIES, *COMPARISONS)]
    asked: set[str] = set()
    while True:
        for opening in OPENINGS:
            batch = [*script_questions(), *others]
            rng.shuffle(batch)
            for one in batch:
                text = opening + (one.text[0].lower() + one.text[1:] if opening else one.text)
                if text not in asked:
                    asked.add(text)
                    yield Asked(text, one.episodes)
        asked.clear()
