"""The limits as the functions are told them, and what they come to together."""

from __future__ import annotations

import json

import pytest

from cicada.corpus.passages import DocumentLocator, ScriptLocator
from cicada.errors import SettingsInvalid
from cicada.profiles.changes import By, ChangeContext, FieldGiven, Stated, created, judged, updated
from cicada.profiles.record import Evidence, NoteProof, PassageProof
from cicada.profiles.rules import (
    MAX_EDITS,
    MAX_EPISODE_CHARS,
    MAX_EPISODES,
    MAX_EVIDENCE,
    MAX_FIELD_NAME_CHARS,
    MAX_NAME_CHARS,
    MAX_QUOTE_CHARS,
    MAX_STATEMENT_CHARS,
    MAX_VALUE_CHARS,
    ProfileLimits,
    dumped,
    full_bytes,
    kept_place,
)
from cicada.settings import MessageProcessorSettings
from tests.support.profiles import profile_of

BY = By("mara", "0193b2c4-7a10-7000-8000-0123456789ab", "0" * 32)
NOW_MS = 1_800_000_000_000
TABLE = {"REQUESTS_TABLE": "requests", "STATE_MACHINE_ARN": "machine"}
PLACES = (
    ScriptLocator(
        episode_id="episode-1", episode_name="e" * 900, chapter_id="chapter-1", message_id="m001", speaker="s" * 900
    ),
    DocumentLocator(source="manuals/boats/hasps.pdf", title="t" * 900, page=17, section="s" * 900),
)


def proof(place):
    return PassageProof(
        passage_id="first-draft/episode-1/m001",
        collection="script",
        locator=kept_place(place),
        quote="q" * MAX_QUOTE_CHARS,
        index_version="v20270115-080000-0123abcd",
    )


def full_theory(limits, place):
    """A theory with all that the limits allow, judged and changed in every field."""
    note = NoteProof(request_id=BY.request_id, words="w" * MAX_QUOTE_CHARS, said_at_ms=NOW_MS)
    context = ChangeContext(BY, NOW_MS, limits)

    def facts(letter, start, count):
        names = [f"{n:0{MAX_FIELD_NAME_CHARS}}" for n in range(start, start + count)]
        return [FieldGiven(name, letter * MAX_VALUE_CHARS, proof(place)) for name in names]

    episodes = [f"{n:0{MAX_EPISODE_CHARS}}" for n in range(MAX_EPISODES)]
    stated = Stated("s" * MAX_STATEMENT_CHARS, note, episodes)
    record = created(None, "theory", "n" * MAX_NAME_CHARS, facts("v", 0, limits.fields % MAX_EDITS), stated, context)
    for start in range(limits.fields % MAX_EDITS, limits.fields, MAX_EDITS):
        record = updated(record, profile_of(record), facts("v", start, MAX_EDITS), (), None, context)
    evidence = [Evidence(side="for", strength=0.123456, proof=proof(place), cited=True) for _ in range(MAX_EVIDENCE)]
    record = judged(record, profile_of(record), "contradicted", evidence, context)
    changed = updated(record, profile_of(record), facts("w", 0, MAX_EDITS), (), None, context)
    replaced = tuple(one for one in changed.replaced if one.version == changed.version)
    return changed.model_copy(update={"history": changed.history[-1:], "replaced": replaced})


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.kind)
@pytest.mark.parametrize("limits", [ProfileLimits(), ProfileLimits(fields=70)])
def test_what_the_limits_come_to_holds_a_profile_that_is_full_of_everything(limits, place):
    roomy = ProfileLimits(fields=limits.fields, record_bytes=10**9)
    largest = len(dumped(full_theory(roomy, place)).encode())
    assert 0.75 * full_bytes(limits) < largest <= full_bytes(limits)


def test_the_limits_of_the_code_hold_a_full_profile():
    assert full_bytes(ProfileLimits()) <= ProfileLimits().record_bytes


def test_a_function_is_told_the_limits_in_one_variable_and_has_the_codes_own_without():
    told = MessageProcessorSettings.read(TABLE | {"PROFILE_LIMITS": json.dumps({"profiles": 7, "deleted_kept_s": 60})})
    assert told.profile_limits == ProfileLimits(profiles=7, deleted_kept_s=60)
    assert MessageProcessorSettings.read(TABLE).profile_limits == ProfileLimits()


@pytest.mark.parametrize("given", ["{", '{"profiles": "many"}'])
def test_limits_that_cannot_be_read_are_named(given):
    with pytest.raises(SettingsInvalid, match="PROFILE_LIMITS"):
        MessageProcessorSettings.read(TABLE | {"PROFILE_LIMITS": given})
