"""The agents in an AgentCore harness, deployed to the local cloud: the service asks the model, the worker runs the
tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cicada_local.testing import LocalCloud
from tests.e2e.reading import answered, last
from tests.e2e.searched_cloud import SearchedCloud
from tests.support.questions import joined
from tests.template.templates import ROOT

THEORY = "What evidence is there for and against the theory that Corin put a new padlock on the water gate?"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    script = [ROOT / "samples" / "script" / "episode-1.jsonl"]
    embeddings = {"embeddingModelId": "us.cohere.embed-v4:0", "embeddingDimensions": 1536}
    settings = {"agents": {"adapter": "harness"}, "knowledge": {"enabled": False}, "models": embeddings}
    with SearchedCloud(tmp_path_factory.mktemp("cloud"), settings=settings, load=script) as running:
        yield running


def test_a_profile_is_made_changed_and_shown(cloud: LocalCloud) -> None:
    for question in ("Create a profile for Corin: occupation is boatman.", "Add to Corin's profile that he is grumpy"):
        done = last(answered(cloud, question), "complete")
        assert (done["answeredBy"], done["failed"]) == ("profile_agent", [])
    shown = answered(cloud, "Show me the profile of Corin.")
    assert "boatman" in joined(shown)
    assert "grumpy" in joined(shown)
    assert last(shown, "sources")["sources"][0]["locator"]["kind"] == "note"
    assert {one["verdict"] for one in last(shown, "citations")["citations"]} == {"verified"}


def test_a_theory_is_weighed_with_passages(cloud: LocalCloud) -> None:
    frames = answered(cloud, THEORY)
    done = last(frames, "complete")
    assert (done["answeredBy"], done["failed"], done["grounded"]) == ("theory_agent", [], True)
    assert "padlock" in joined(frames)


@pytest.mark.parametrize(
    ("fault", "params", "code"),
    [
        ("harness.throttle", {}, "model_busy"),
        ("harness.cut", {"mode": "silent", "after": 2}, "stream_broken"),
        ("harness.stop", {"stop_reason": "max_iterations_exceeded"}, "agent_cap_reached"),
    ],
)
def test_a_harness_that_fails_leaves_the_answer_to_the_search(
    cloud: LocalCloud, fault: str, params: dict[str, Any], code: str
) -> None:
    cloud.arm(fault, **params)
    try:
        done = last(answered(cloud, THEORY), "complete")
    finally:
        cloud.disarm()
    assert done["attempted"][0] == "theory_agent"
    assert done["answeredBy"] == "rag"
    assert [one["code"] for one in done["failed"]][:1] == [code]
