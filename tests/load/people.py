"""Who asks what, and when: drawn from a seed, person by person."""

from __future__ import annotations

import json
import math
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.chaos.plans import KINDS
from tests.chaos.questions import COMPARISONS, OPENINGS, POLICIES, SAMPLES, SMALL_TALK, Asked, script_questions

Kind = Literal["script", "campaign", "shelf", "hybrid", "policy", "talk", "theory", "profile", "repeat", "follow-up"]

SHARES: dict[Kind, float] = {
    "script": 30,
    "campaign": 12,
    "shelf": 6,
    "hybrid": 7,
    "policy": 6,
    "talk": 9,
    "theory": 7,
    "profile": 7,
    "repeat": 8,
    "follow-up": 8,
}
"""In per cent."""
MEAN_THINK_S = 75.0
"""Between the end of an answer and the next question, at a pace of 1: to read some sentences, think, and type."""
ARRIVAL_S = 120.0
"""Within which everybody has come in, at a pace of 1."""
_THINK_SIGMA = 0.6
"""Of the logarithm: half of the pauses are shorter than 63 s, and one in twenty is longer than 168 s."""
DROPPING, SLOW = 0.05, 0.05
"""Shares of the questions whose socket is cut under the answer, and of the people who read slowly."""
OFFLINE_S = (0.0, 0.5, 3.0)
CAMPAIGN = ("character_data", "rulebook", "session_notes")

_SHELF = (
    "How often is the wick of the jetty lamp trimmed?",
    "What does the keeper's manual say of the fog bell?",
    "What was repaired in 1961?",
    "Who signed the founding letter?",
    "What do the house rules say of supper?",
    "What did the gauge show in March 1961?",
)
_THEORIES = (
    "What evidence is there for and against the theory that Corin put a new padlock on the water gate?",
    "What evidence is there for and against the theory that Ilse rang the fog bell?",
    "Weigh the theory that Oswin took the green ledger.",
    "Weigh the theory that Julian smashed the barometer.",
)
_NAMES = ("Corin", "Ilse", "Oswin", "Petra", "Winifred", "Ambrose", "Edda", "Julian")
_TRADES = ("boatman", "engineer", "cook", "editor", "inspector", "copy-reader")
_FOLLOW_UPS = ("And in the second episode?", "Why?", "Who else was there?", "And what happened then?", "Who saw it?")


@dataclass(frozen=True)
class Drop:
    """A socket that is cut at the first event of a kind, and how long its owner stays away."""

    kind: str
    offline_s: float


@dataclass(frozen=True)
class Question:
    """One question of one person."""

    kind: Kind
    asked: Asked
    request_id: str
    session_id: str
    think_s: float
    """Before it is asked, at a pace of 1."""
    collections: tuple[str, ...] = ()
    drop: Drop | None = None


class Person:
    """Asks one question after the other, all in one conversation and over one socket."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.subject = f"reader-{number:03}"
        self.rng = random.Random(f"{seed} person {number}")
        self.network = random.Random(f"{seed} network {number}")
        """For what depends on real time, so that it does not change what is asked."""
        self.is_slow = self.rng.random() < SLOW
        self._session_id = str(self._uuid())
        self._asked: list[tuple[Asked, tuple[str, ...]]] = []
        self._profiles: list[str] = []

    def next(self) -> Question:
        """What is asked next."""
        first = not self._asked
        kind = self._kind(first)
        asked, collections = self._words(kind)
        if kind not in ("repeat", "follow-up"):
            self._asked.append((asked, collections))
        drop = Drop(self.rng.choice(KINDS), self.rng.choice(OFFLINE_S)) if self.rng.random() < DROPPING else None
        think_s = self.rng.uniform(0, ARRIVAL_S) if first else self._think_s()
        return Question(kind, asked, str(self._uuid()), self._session_id, think_s, collections, drop)

    def _kind(self, first: bool) -> Kind:
        shares = {kind: share for kind, share in SHARES.items() if not (first and kind in ("repeat", "follow-up"))}
        return self.rng.choices(list(shares), list(shares.values()))[0]

    def _think_s(self) -> float:
        return self.rng.lognormvariate(math.log(MEAN_THINK_S) - _THINK_SIGMA**2 / 2, _THINK_SIGMA)

    def _words(self, kind: Kind) -> tuple[Asked, tuple[str, ...]]:
        match kind:
            case "script":
                one = self.rng.choice(_SCRIPT)
                return Asked(self._opened(one.text), one.episodes), ("script",)
            case "campaign":
                return Asked(self.rng.choice(_CAMPAIGN)), CAMPAIGN
            case "shelf":
                return Asked(self._opened(self.rng.choice(_SHELF))), ("shelf",)
            case "repeat":
                return self.rng.choice(self._asked)
            case "profile":
                return Asked(self._profile()), ()
            case _:
                return Asked(self.rng.choice(_PLAIN[kind])), ()

    def _profile(self) -> str:
        """A profile is made, changed or shown."""
        name = self.rng.choice(_NAMES)
        if name not in self._profiles:
            self._profiles.append(name)
            return f"Create a profile for {name}: occupation is {self.rng.choice(_TRADES)}."
        if self.rng.random() < 0.5:
            return f"Show me the profile of {name}."
        return f"Update the profile of {name}: set mood to {self.rng.choice(('grumpy', 'merry', 'tired'))}."

    def _opened(self, text: str) -> str:
        opening = self.rng.choice(OPENINGS)
        return opening + (text[0].lower() + text[1:] if opening else text)

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.rng.getrandbits(128), version=4)


def _campaign_questions() -> list[str]:
    labelled = SAMPLES.parent / "tests" / "data" / "campaign_questions.jsonl"
    lines = labelled.read_text(encoding="utf-8").splitlines()
    return [str(json.loads(line)["question"]) for line in lines]


_SCRIPT = script_questions()
_CAMPAIGN = _campaign_questions()
_PLAIN: dict[Kind, Sequence[str]] = {
    "hybrid": COMPARISONS,
    "policy": POLICIES,
    "talk": SMALL_TALK,
    "theory": _THEORIES,
    "follow-up": _FOLLOW_UPS,
}
