"""docs/protocol.md names every action, event, field and code of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from cicada import errors
from cicada.attempts.chain import _WORKFLOW_ERRORS
from cicada.errors import CicadaError
from cicada.protocol.asyncapi import ACTIONS, EVENTS, REPLIES
from cicada.protocol.conversations import ConversationListed, ConversationRequest
from cicada.protocol.corpus import (
    CollectionListed,
    DocumentListed,
    DocumentRead,
    EpisodeListed,
    OriginalFile,
    PassageRead,
    SectionListed,
)
from cicada.protocol.events import Citation, Degraded, Metrics, Reason, Reused, Source, StrategyFailure
from cicada.usage.limits import LimitState

TEXT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()


def codes(kind=CicadaError):
    yield kind.code
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from codes(child)


NO_CLIENTS = {
    *("publish_conflict", "declaration_changed", "corpus_invalid", "settings_invalid"),  # who loads meets them
    *("invalid_request", "response_too_large"),  # integrators meet them
    *codes(errors.DocumentRefused),
    "tool_invalid",  # an agent's model is told
    "name_unknown",  # of no error itself
}


@pytest.mark.parametrize("code", sorted({*codes(), *(code for code, _ in _WORKFLOW_ERRORS.values())} - NO_CLIENTS))
def test_every_code_that_a_client_can_meet_is_documented(code):
    assert f"`{code}`" in TEXT


@pytest.mark.parametrize("message", [*ACTIONS, *EVENTS, *REPLIES], ids=lambda message: message.__name__)
def test_every_message_and_field_is_documented(message):
    tag = "action" if message in ACTIONS else "type"
    assert f"`{message.model_fields[tag].default}`" in TEXT
    for name, field in message.model_fields.items():
        if name not in (tag, "v"):
            assert f"`{field.alias or name}`" in TEXT


@pytest.mark.parametrize(
    "part",
    [
        *(ConversationListed, ConversationRequest),
        *(Citation, CollectionListed, Degraded, DocumentListed, DocumentRead, EpisodeListed, LimitState, Metrics),
        *(OriginalFile, PassageRead, Reason, Reused, SectionListed, Source, StrategyFailure),
    ],
    ids=lambda part: part.__name__,
)
def test_every_field_of_an_events_parts_is_documented(part):
    for name, field in part.model_fields.items():
        assert f"`{field.alias or name}`" in TEXT


def test_every_code_of_what_a_search_had_to_do_without_is_documented():
    described = Degraded.model_fields["code"].description
    assert described is not None
    for code in described.removeprefix("stable: ").split(", "):
        assert f"`{code}`" in TEXT
