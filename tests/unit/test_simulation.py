"""The simulation of whole requests, in short: its long run is ``python -m tests.simulation``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.campaign import run_batch
from tests.simulation.faults import KINDS
from tests.simulation.mutations import BY_NAME, MUTATIONS, worlds_until_found
from tests.simulation.one import quiet, replay, run_world

WORLDS = range(100)
"""The same in every run, so that a failure stays until it is mended; the long run takes others each time."""
SOON_FOUND = (
    "fence_ignored",
    "posted_before_stored",
    "no_fallback_event",
    "always_landed",
    "never_landed",
    "orphans_not_ended",
    "text_lost_in_flight",
    "subject_ignored",
    "expiry_ignored",
    "refused_and_asked",
    "reservations_kept",
    "rights_ignored",
    "ungrounded_answers_kept",
    "citations_trusted",
    "text_not_withdrawn",
)
"""Those that two hundred worlds find; ``python -m tests.simulation --mutations`` looks for all."""


@pytest.fixture(scope="module")
def figures():
    return run_batch(WORLDS)


def test_every_invariant_holds_in_a_hundred_worlds(figures):
    assert figures.violations == [], f"replay: python -m tests.simulation --seed {figures.violations[0][0]}"


def test_most_kinds_of_faults_are_met_even_in_a_short_run(figures):
    assert len([kind for kind in KINDS if figures.kinds[kind.name]]) > 0.8 * len(KINDS)
    assert figures.injected > 10 * len(WORLDS)


def test_requests_end_in_every_way(figures):
    ways = {way for way in figures.outcomes if way != "error cancelled"}
    assert ways >= {
        "answered by hybrid",
        "answered by rag",
        "answered by direct",
        "error all_strategies_failed",
    }


def test_a_seed_replays_its_world_to_the_letter():
    first, second = replay(7), replay(7)
    assert first.history == second.history
    with quiet() as bugs:
        unwatched = run_world(7, Counter(), bugs)
    assert (unwatched.switches, unwatched.injected, unwatched.outcomes) == (
        first.switches,
        first.injected,
        first.outcomes,
    )


@pytest.mark.parametrize("name", SOON_FOUND)
def test_a_fault_in_the_code_is_found(name):
    found = worlds_until_found(BY_NAME[name], limit=200)
    assert found is not None
    assert "unexpected TypeError" not in found[1], "the mutation itself does not fit the code any more"


def test_mutations_leave_no_trace():
    for mutation in MUTATIONS:
        worlds_until_found(mutation, limit=1)
    assert run_batch(range(3)).violations == []


def test_the_documents_name_every_fault_and_every_mutation():
    documented = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    for kind in KINDS:
        assert f"| `{kind.name}` | {kind.catalogue.replace(' ', ', ')} | {kind.what} |" in documented
    for mutation in MUTATIONS:
        assert f"| `{mutation.name}` | {mutation.what} |" in documented
