"""The agents in Amazon Bedrock Agents, deployed to the local cloud: the service calls the action-group function, what
writes comes back to the worker, and the answer's sources are what both have found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cicada_local.testing import LocalCloud
from tests.e2e.reading import answered, last
from tests.e2e.searched_cloud import SearchedCloud
from tests.template.templates import ROOT


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    script = [ROOT / "samples" / "script" / "episode-1.jsonl"]
    embeddings = {"embeddingModelId": "amazon.nova-2-multimodal-embeddings-v1:0", "embeddingDimensions": 1024}
    settings = {"agents": {"adapter": "classic"}, "knowledge": {"enabled": False}, "models": embeddings}
    with SearchedCloud(tmp_path_factory.mktemp("cloud"), settings=settings, load=script) as running:
        yield running


def test_a_profile_is_made_and_shown(cloud: LocalCloud) -> None:
    made = answered(cloud, "Create a character profile named Mira: she is a ferrywoman")
    assert last(made, "complete")["answeredBy"] == "profile_agent"
    assert last(made, "complete")["failed"] == []
    shown = answered(cloud, "Show me the profile of Mira")
    assert last(shown, "complete")["answeredBy"] == "profile_agent"
    assert last(shown, "sources")["sources"][0]["locator"]["kind"] == "note"
    assert {one["verdict"] for one in last(shown, "citations")["citations"]} == {"verified"}


def test_a_theory_is_weighed_with_passages(cloud: LocalCloud) -> None:
    frames = answered(
        cloud, "What evidence is there for and against the theory that the letter was hidden in the boathouse?"
    )
    assert last(frames, "complete")["answeredBy"] == "theory_agent"
    assert last(frames, "sources")["sources"]


def test_a_throttled_service_leaves_the_answer_to_the_search(cloud: LocalCloud) -> None:
    cloud.arm("agents.throttle")
    try:
        frames = answered(cloud, "Show me the profile of Mira")
    finally:
        cloud.disarm()
    done = last(frames, "complete")
    assert done["attempted"][0] == "profile_agent"
    assert done["answeredBy"] != "profile_agent"
    assert [one["code"] for one in done["failed"]][:1] == ["agent_unavailable"]
