"""Evidence is attributed to whom the passage says it of: labelled pairs, and what tells whose deed a passage tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cicada.agents.tools.shown import passage_source
from cicada.agents.tools.weighing import MODERATE, STRONG, Found, weigh
from cicada.retrieval.ports import Hit
from tests.unit.test_agent_tools import line

PAIRS = [
    json.loads(row)
    for row in (Path(__file__).resolve().parents[1] / "data" / "evidence_labelled.jsonl").read_text().splitlines()
]
FITTED = [pair for pair in PAIRS if pair["part"] == "fitted"]
MIN_PRECISION = 0.95
MIN_RECALL = 0.8
PADLOCK = (
    "As he made fast, Corin took a new padlock from his coat, turned it over in his palm, and snapped it through the "
    "hasp of the water gate."
)
BY_DAYLIGHT = (
    "By daylight the tower was only a tower. Tamsin went up it with one hand on the wall, counting, and came down it "
    "counting again."
)
HERON = "Boathouse. Heron sleeps outside on the jetty ring, the Plover sleeps inside. Skiff, leaks a bit."


def weighed(statement, passage, speaker="Narrator"):
    source = passage_source(Hit(line(1, passage, speaker=speaker), 0.8))
    return weigh(statement, Found(source, {"for": 0.8, "against": 0.8}))


def told(pair):
    return weighed(pair["statement"], pair["passage"], pair["speaker"]).side or "neither"


def test_the_labelled_pairs_are_enough_and_half_of_them_are_held_aside():
    assert len(PAIRS) >= 40
    assert len(FITTED) * 2 == len(PAIRS)
    assert {pair["label"] for pair in FITTED} == {"for", "against", "neither"}


@pytest.mark.parametrize("side", ["for", "against"])
def test_what_is_called_evidence_is_evidence(side):
    called = [pair for pair in FITTED if told(pair) == side]
    labelled = [pair for pair in FITTED if pair["label"] == side]
    right = sum(pair["label"] == side for pair in called)
    assert right >= len(called) * MIN_PRECISION
    assert right >= len(labelled) * MIN_RECALL


@pytest.mark.parametrize(
    "pair",
    [pair for pair in PAIRS if pair["label"] == "against" and pair["kind"] not in ("denial", "opposite")],
    ids=lambda pair: pair["statement"],
)
def test_what_somebody_else_has_done_is_never_evidence_for(pair):
    found = weighed(pair["statement"], pair["passage"], pair["speaker"])
    assert (found.side, found.strength < STRONG) == ("against", True)


@pytest.mark.parametrize(
    ("statement", "passage", "speaker", "side"),
    [
        ("Corin put a new padlock on the water gate", PADLOCK, "Narrator", "for"),
        ("Ambrose put a new padlock on the water gate", PADLOCK, "Narrator", "against"),
        ("Tamsin took the tower key", BY_DAYLIGHT, "Narrator", None),
        ("Corin locked the boathouse", HERON, "Corin", None),
        ("Corin locked the boathouse", "Corin did not lock the boathouse.", "Petra", "against"),
        ("Corin locked the boathouse", "Ambrose did not lock the boathouse.", "Petra", None),
        ("Corin did not lock the boathouse", "Ambrose locked the boathouse.", "Petra", None),
        ("Corin went to Lowmoor", "Ambrose went to the tower.", "Narrator", None),
        ("Petra locked the boathouse", "Corin and Petra locked the boathouse.", "Narrator", "for"),
        ("Ilse brachte den Schlüssel zum Bootshaus", "Ilse brachte den Schlüssel zum Bootshaus.", "Petra", "for"),
        ("Corin locked the boathouse", "If Corin locked the boathouse, I never saw it.", "Ilse", None),
        ("Corin locked the boathouse", "Mr Hale came in April. He locked the boathouse.", "Narrator", "against"),
        ("Corin locked the boathouse", "The boathouse was locked by me.", "Corin", "for"),
        ("Corin locked the boathouse", "The boathouse was locked, and Corin slept.", "Narrator", None),
    ],
)
def test_whose_deed_it_is_tells_the_side(statement, passage, speaker, side):
    assert weighed(statement, passage, speaker).side == side


def test_a_passage_without_the_statements_verb_is_weak_at_most():
    found = weighed(
        "Corin sold the grey mare to the doctor", "Corin told the doctor about the grey mare and her bad foot."
    )
    assert (found.side, found.strength < MODERATE) == ("for", True)


def test_another_deed_with_the_same_thing_is_not_against_and_the_opposite_deed_is():
    another = weighed("Corin sold the old tower key", "Corin stood by with the old tower key in his hand.")
    opposite = weighed("Corin locked the water gate", "Corin unlocked the water gate.")
    assert (another.side, opposite.side) == (None, "against")


def test_a_doer_who_is_not_named_may_be_whom_the_statement_means_and_is_never_strong_against_it():
    found = weighed("Corin locked the boathouse", "The keeper locked the boathouse, and Corin slept.")
    assert found.strength < STRONG


def test_a_verb_that_says_it_more_closely_says_it_and_a_wider_one_does_not():
    closer = weighed("Corin took the tower key", "Corin pocketed the tower key.")
    wider = weighed("Corin pocketed the tower key", "Corin took the tower key.")
    assert (closer.side, closer.strength >= MODERATE) == ("for", True)
    assert wider.strength < MODERATE
