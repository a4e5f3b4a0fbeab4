"""The agents' tools over profiles and passages: what is cited, what is refused, and in whose name they act."""

from __future__ import annotations

import json

import pytest

from cicada.agents.ports import Actor, ProfileWritten, ToConfirm, VerdictGiven
from cicada.agents.receipts import confirm_of, told_change
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tools import tools_for
from cicada.agents.tools.evidence import EvidenceJudge
from cicada.agents.tools.inputs import UpdateProfile
from cicada.citations import check_citations
from cicada.corpus.passages import NoteLocator, Passage, ScriptLocator
from cicada.errors import ProfileConflict, ProfileUnknown, ToolInvalid
from cicada.models.structured_output import OutputMisfit, form_schema, read_form
from cicada.profiles.record import Change, Edit, PassageProof, Profile
from cicada.profiles.service import ProfileService
from cicada.protocol.events import MAX_EVENT_BYTES, ChangedField, Receipt, dump_event
from cicada.retrieval.ports import UNLIMITED, Hit, SearchResult
from cicada.rights import EVERYTHING, NOTHING
from tests.support.agents import SidesModel
from tests.support.profiles import InMemoryProfiles

NAMES = {
    "profile": [
        *("search_script", "list_profiles", "show_profile", "create_profile"),
        *("update_profile", "remove_fields", "undo_change", "delete_profile", "profile_history"),
    ],
    "theory": [
        *("search_script", "list_theories", "show_profile", "state_theory", "refine_theory"),
        *("gather_evidence", "give_verdict", "record_verdict", "undo_change", "delete_profile", "profile_history"),
    ],
}


def line(number, text, *, episode="ep1", speaker="Narrator", context=None):
    name = {"ep1": "The Boathouse", "ep2": "The Gauge Tower"}[episode]
    locator = ScriptLocator(
        episode_id=episode, episode_name=name, chapter_id=f"{episode}-c1", message_id=f"m{number}", speaker=speaker
    )
    return Passage(id=f"m{number}", collection="script", text=text, context=context or text, locator=locator)


class Script:
    """A retriever that ranks lines by the words that they share with the query."""

    def __init__(self, *lines):
        self.lines = lines
        self.queries = []

    def search(self, query):
        self.queries.append(query)
        wanted = {word.strip(".,?!").lower() for word in query.text.split()}
        hits = []
        for passage in self.lines:
            if query.filters.episodes and passage.locator.episode_id not in query.filters.episodes:
                continue
            words = {word.strip(".,?!").lower() for word in passage.text.split()}
            shared = len(wanted & words) / len(wanted)
            if shared > 0.2:
                hits.append(Hit(passage, min(1.0, 0.5 + shared / 2)))
        hits.sort(key=lambda hit: -hit.score)
        return SearchResult(tuple(hits[: query.top_k]), "v7", len(self.lines))

    def version(self):
        return "v7"


class World:
    def __init__(self, *lines):
        self.script = Script(*lines)
        self.profile_service = ProfileService(InMemoryProfiles(), now_s=lambda: 1_800_000_000)
        self.registry = NumberedSources()
        self.sides = SidesModel()
        self.requests = 0
        self.changes = []
        self.verdict = None
        self.to_confirm = []
        self.message("Hello.")

    def message(self, text, *, subject="mara", **scope):
        """A new request of a user's."""
        self.requests += 1
        self.registry = NumberedSources()
        self.actor = Actor(subject, f"r{self.requests}", text, 1_799_999_999_000, **{"readable": EVERYTHING, **scope})
        return self

    def tools(self, kind):
        return tools_for(kind, self.profile_service, self.script, EvidenceJudge(self.sides))

    def call(self, tool_name, /, **given):
        offered = {tool.name: tool for kind in NAMES for tool in self.tools(kind)}
        tool = offered[tool_name]
        for facts in ("fields", "set"):  # a fact is its own quote where a test gives no other
            if tool_name in ("create_profile", "update_profile") and facts in given:
                given[facts] = [{"quote": fact["value"], **fact} for fact in given[facts]]
        if tool_name in ("state_theory", "refine_theory"):
            given.setdefault("quote", given["statement"])
        result = tool.run(read_form(tool.form, given), self.actor, self.registry, UNLIMITED)
        if isinstance(result, VerdictGiven | ProfileWritten):
            self.verdict = result.verdict
        match result:
            case VerdictGiven():
                pass
            case ProfileWritten():
                self.changes.append(result.change)
            case ToConfirm():
                self.to_confirm.append(result)
            case _:
                return json.loads(json.dumps(result))
        return json.loads(json.dumps(result.told))

    def noted(self, name="Tamsin", *fields, kind="character"):
        facts = [{"field": field, "value": value} for field, value in fields]
        said = ", ".join(value for _, value in fields)
        made = self.message(f"Please keep of {name}: {said}").call("create_profile", kind=kind, name=name, fields=facts)
        return made["created"]


LINES = (
    line(1, "Tamsin Oake was appointed copy-reader to the Almanac, at six pounds a week."),
    line(2, "Ilse moved the key to the boathouse before supper.", speaker="Corin"),
    line(3, "Ilse never moved the key to the boathouse.", speaker="Petra"),
    line(4, "Ilse moved the key to the boathouse, and Oswin saw her.", episode="ep2", speaker="Julian"),
    line(5, "The supper was cold.", speaker="Winifred"),
)


@pytest.fixture
def world():
    return World(*LINES)


@pytest.mark.parametrize("kind", NAMES)
def test_each_agent_has_its_tools_by_their_names_with_forms_that_every_model_takes(kind, world):
    tools = tools_for(kind, world.profile_service, world.script)
    assert [tool.name for tool in tools] == NAMES[kind]
    for tool in tools:
        assert tool.description
        assert form_schema(tool.form)["type"] == "object"
        writing = ("create", "update", "remove", "undo", "delete", "state", "refine", "record")
        assert tool.writes == tool.name.startswith(writing)


def test_a_passage_that_may_not_be_read_any_more_is_not_shown_as_a_facts_source(world):
    world.message("Note what the script says of Tamsin Oake.")
    found = world.call("search_script", query="Tamsin Oake copy-reader")["passages"][0]
    fact = {"field": "work", "value": "copy-reader to the Almanac", "citation": found["n"]}
    made = world.call("create_profile", kind="character", name="Tamsin", fields=[fact])["created"]
    for readable, cited in ((EVERYTHING, 1), (NOTHING, None)):
        world.message("Who is she?", readable=readable)
        (shown,) = world.call("show_profile", id=made["id"])["fields"]
        assert (shown["value"], shown["citation"]) == ("copy-reader to the Almanac", cited)
        assert [source.text for source in world.registry.sources] == ([LINES[0].text] if cited else [])


# --- search_script ---


def test_as_many_passages_are_brought_as_are_asked_for(world):
    assert len(world.call("search_script", query="the key", limit=2)["passages"]) == 2
    alone = World(line(1, "A key?", speaker="Tamsin"))
    assert [one["text"] for one in alone.call("search_script", query="a key")["passages"]] == ["A key?"]


def test_a_search_brings_numbered_passages_to_the_registry(world):
    told = world.call("search_script", query="Tamsin Oake copy-reader")
    first = told["passages"][0]
    assert (first["n"], first["text"]) == (1, LINES[0].text)
    source = world.registry.sources[0]
    assert (source.n, source.passage_id, source.origin) == (1, "m1", "search")
    assert [(reason.kind, reason.name) for reason in source.why] == [("tool", "search_script")]


def test_a_passage_that_is_found_again_keeps_its_number(world):
    first = world.call("search_script", query="Ilse moved the key")
    again = world.call("search_script", query="Ilse moved the key to the boathouse before supper")
    assert {one["text"]: one["n"] for one in first["passages"]}.items() <= {
        one["text"]: one["n"] for one in again["passages"]
    }.items()


def test_a_search_stays_within_what_the_user_limits_the_question_to(world):
    world.message("?", episodes=("ep1",), collections=("script",), documents=("a.json",), sections=("One",))
    world.call("search_script", query="Ilse")
    filters = world.script.queries[-1].filters
    assert (filters.episodes, filters.collections) == (("ep1",), ("script",))
    assert (filters.documents, filters.sections) == (("a.json",), ("One",))
    for beyond in ({"episodes": ["ep2"]}, {"collections": ["rulebook"]}):
        with pytest.raises(ToolInvalid, match="limits"):
            world.call("search_script", query="Ilse", **beyond)


def test_a_search_that_finds_nothing_says_so(world):
    assert world.call("search_script", query="zeppelin") == {"passages": [], "note": "nothing was found"}


# --- facts and their proofs ---


def test_what_the_user_says_is_kept_with_their_message_as_its_proof(world):
    made = world.noted("Tamsin", ("afraid of", "deep water"))
    (fact,) = world.profile_service.show("mara", made["id"]).fields
    assert (fact.proof.kind, fact.proof.request_id) == ("note", world.actor.request_id)
    assert fact.proof.words == "Please keep of Tamsin: deep water"
    (shown,) = made["fields"]
    source = world.registry.sources[shown["citation"] - 1]
    assert isinstance(source.locator, NoteLocator)
    assert (source.origin, source.locator.field) == ("profile", "afraid of")
    assert source.text == "Tamsin · afraid of: deep water\n“Please keep of Tamsin: deep water”"


@pytest.mark.parametrize(
    ("message", "quote", "value", "why"),
    [
        ("Note that Tamsin is a copy-reader.", "is a murderer", "murderer", "copy its words"),
        ("Note that Tamsin is a copy-reader.", "is a copy-reader", "murderer", "does not say murderer"),
        ("Note that Tamsin likes Corin.", "likes Corin", "does not like Corin", "does not say does, not, like"),
        ("Note that she has 2 dresses.", "has 2 dresses", "12 dresses", "does not say 12"),
        ("Note that 2^30 is a limit.", "2^30", "230", "does not say 230"),
        ("What do you know of Tamsin?", "copy-reader", "copy-reader", "copy its words"),
        ("Note: likes tea. Corin hates it.", "likes Corin", "likes Corin", "copy its words"),
        ("タムシンはお茶が好き。", "編集者", "編集者", "copy its words"),
        ("", "anything", "anything", "copy its words"),
        ("Note that she is tall.", "…", "…", "copy its words"),
    ],
)
def test_a_fact_that_the_message_does_not_say_is_not_kept(world, message, quote, value, why):
    world.message(f"{message} Zoe")
    with pytest.raises(ToolInvalid, match=why):
        fact = {"field": "f", "value": value, "quote": quote}
        world.call("create_profile", kind="character", name="Zoe", fields=[fact])
    assert world.profile_service.list("mara") == ()
    assert world.changes == []


@pytest.mark.parametrize(
    ("message", "quote", "value"),
    [
        ("Please note: Tamsin is afraid of deep water.", "Tamsin is afraid of deep water", "deep water"),
        ("I think Tamsin's brother is called Jonas", "brother is called Jonas", "Jonas"),
        ("Merke dir, dass Tamsin keinen Tee mag.", "Tamsin keinen Tee mag", "mag keinen Tee"),
        ("タムシンはお茶が好き。", "お茶が好き", "お茶"),
        ("Tamsin noted the 14th of November 1962", "14th of November 1962", "14th November 1962"),
        ("NOTE: TAMSIN’S ROOM IS THE ATTIC!!", "Tamsin's room is the attic", "the attic"),
    ],
)
def test_a_fact_in_the_users_words_is_kept(world, message, quote, value):
    world.message(f"{message} Zoe")
    fact = {"field": "f", "value": value, "quote": quote}
    assert world.call("create_profile", kind="character", name="Zoe", fields=[fact])


def test_a_fact_may_be_quoted_from_the_message_as_the_conversation_completed_it(world):
    world.message("Keep that of her. Zoe", understood="Keep of Zoe that she is afraid of deep water.")
    fact = {"field": "fear", "value": "deep water", "quote": "she is afraid of deep water"}
    assert world.call("create_profile", kind="character", name="Zoe", fields=[fact])


def test_a_passage_that_is_cited_is_the_proof_with_its_words_and_place(world):
    world.message("Look up what Tamsin does for a living, and keep it.")
    world.call("search_script", query="Tamsin Oake copy-reader")
    quote = "was appointed copy-reader to the Almanac"
    facts = [{"field": "occupation", "value": "copy-reader to the Almanac", "quote": quote, "citation": 1}]
    made = world.call("create_profile", kind="character", name="Tamsin", fields=facts)["created"]
    proof = world.profile_service.show("mara", made["id"]).fields[0].proof
    assert proof == PassageProof(
        passage_id="m1", collection="script", locator=LINES[0].locator, quote=LINES[0].text, index_version="v7"
    )
    assert made["fields"][0]["citation"] == 1


@pytest.mark.parametrize(
    ("citation", "value", "why"),
    [
        (1, "murderer of Ambrose Vell", "does not have the quote"),
        (1, "at seven pounds a week", "does not have the quote"),
        (99, "copy-reader", r"unknown passage \[99\]"),
    ],
)
def test_a_citation_that_does_not_hold_is_refused(world, citation, value, why):
    world.message("Keep what the text says of Tamsin.")
    world.call("search_script", query="Tamsin Oake copy-reader")
    with pytest.raises(ToolInvalid, match=why):
        world.call(
            "create_profile",
            kind="character",
            name="Tamsin",
            fields=[{"field": "f", "value": value, "citation": citation}],
        )


def test_what_a_profile_keeps_proves_nothing_new(world):
    made = world.noted("Tamsin", ("likes", "tea"))
    world.message("What of Tamsin?").call("show_profile", id=made["id"])
    with pytest.raises(ToolInvalid, match="search for the passage"):
        world.call(
            "update_profile",
            id=made["id"],
            expected_version=1,
            set=[{"field": "drink", "value": "tea", "citation": 1}],
        )


def test_a_name_that_nobody_said_and_no_passage_has_is_not_made_up(world):
    world.message("Keep a profile of her.")
    with pytest.raises(ToolInvalid, match="xavier"):
        world.call("create_profile", kind="character", name="Xavier")
    world.call("search_script", query="Tamsin Oake copy-reader")
    assert world.call("create_profile", kind="character", name="Tamsin Oake")["created"]["name"] == "Tamsin Oake"


# --- changing ---


def test_an_update_and_its_history_are_told_with_citations(world):
    made = world.noted("Tamsin", ("hair", "red"), ("room", "attic"))
    world.message("Tamsin's hair is black.")
    hair = {"field": "hair", "value": "black"}
    new = world.call("update_profile", id=made["id"], expected_version=1, set=[hair])["updated"]
    assert [(one["field"], one["value"]) for one in new["fields"]] == [("hair", "black"), ("room", "attic")]
    changes = world.message("What changed?").call("profile_history", id=made["id"])["changes"]
    assert [change["operation"] for change in changes] == ["updated", "created"]
    assert [change["version"] for change in changes] == [2, 1]
    assert changes[0]["text"].startswith("Version 2, ")
    assert changes[0]["text"].endswith(": hair: “red” became “black”")
    assert [change["citation"] for change in changes] == [1, 2]
    assert [source.text for source in world.registry.sources] == [change["text"] for change in changes]
    assert {source.origin for source in world.registry.sources} == {"profile"}


def test_nothing_speaks_against_a_change_told_in_other_words_but_its_wrong_number(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Tamsin's hair is black.")
    world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "black"}])
    world.message("What changed?").call("profile_history", id=made["id"])
    answer = "In version 2, hair changed from “red” to “black” [1]. Version 3 changed it to “grey” [1]."
    assert [one.verdict for one in check_citations(answer, world.registry.sources)] == ["unchecked", "unverified"]


def test_of_a_long_history_the_newest_changes_are_shown(world):
    made = world.noted("Tamsin", ("hair", "red"))
    for version in range(1, 25):
        colour = f"colour {version}"
        world.message(f"Tamsin's hair is {colour}.")
        hair = {"field": "hair", "value": colour}
        world.call("update_profile", id=made["id"], expected_version=version, set=[hair])
    told = world.message("What changed?").call("profile_history", id=made["id"])
    assert [change["version"] for change in told["changes"]] == list(range(25, 5, -1))
    assert "20 of 25" in told["note"]


def test_a_call_that_is_repeated_for_the_same_request_is_no_second_change(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Her hair is black.")
    update = {"id": made["id"], "expected_version": 1, "set": [{"field": "hair", "value": "black"}]}
    first = world.call("update_profile", **update)
    assert world.call("update_profile", **update) == first
    assert world.profile_service.show("mara", made["id"]).version == 2


def test_an_older_version_is_a_conflict_that_the_model_is_told(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Her hair is black.")
    world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "black"}])
    world.message("Her hair is red.")
    with pytest.raises(ProfileConflict, match="version 2"):
        world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "red"}])


def test_a_change_has_a_receipt_from_its_record(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Her hair is black.")
    world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "black"}])
    created, updated = world.changes
    assert (created.operation, created.version, created.undoable) == ("created", 1, True)
    assert (updated.operation, updated.name, updated.version) == ("updated", "Tamsin", 2)
    assert updated.fields == (ChangedField(field="hair", before="red", after="black"),)


@pytest.mark.parametrize("letter", ["a", "é", "字", "😀", '"'])
def test_a_receipt_and_a_confirmation_of_all_that_can_be_changed_fit_into_one_event_each(letter):
    fields = [ChangedField(field=letter * 60, before=letter * 1_000, after=letter * 1_000) for _ in range(50)]
    edits = tuple(Edit(field=one.field, before=one.before, after=one.after) for one in fields[:20])
    profile = Profile(id="0" * 20, kind="character", name=letter * 80, version=2, created_at_ms=1, changed_at_ms=1)
    change = Change(version=2, at_ms=1, operation="updated", request_id="r", operation_id="o", edits=edits)
    receipt = Receipt(attempt=1, change=told_change(change, profile))
    waits = ToConfirm({}, "0" * 32, "delete", profile.id, "theory", letter * 500, 1, tuple(fields), 1)
    confirm = confirm_of(1, waits)
    for event, told in ((receipt, receipt.change.fields), (confirm, confirm.fields)):
        assert len(dump_event(event).encode()) <= MAX_EVENT_BYTES
        assert len(told) == (20 if event is receipt else 50)
        assert all(len(one.before or "") > 10 for one in told)


def test_what_is_kept_already_is_no_change_and_has_no_receipt(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Her hair is red.")
    with pytest.raises(ToolInvalid, match="nothing changed"):
        world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "red"}])
    assert len(world.changes) == 1


def test_a_change_is_taken_back_with_the_proof_that_it_replaced(world):
    made = world.noted("Tamsin", ("hair", "red"), ("room", "attic"))
    before = world.profile_service.show("mara", made["id"]).fields
    world.message("Her hair is black.")
    world.call("update_profile", id=made["id"], expected_version=1, set=[{"field": "hair", "value": "black"}])
    world.message("Take that back.")
    world.call("undo_change", id=made["id"], version=2)
    assert world.profile_service.show("mara", made["id"]).fields == before
    assert world.changes[-1].operation == "undone"
    world.message("And the profile, too.")
    with pytest.raises(ToolInvalid, match="delete the profile"):
        world.call("undo_change", id=made["id"], version=1)


def test_nothing_is_deleted_or_removed_before_the_user_confirms_it(world):
    made = world.noted("Tamsin", ("hair", "red"), ("room", "attic"))
    world.message("Delete Tamsin's profile, and her hair.")
    for tool, given in (("delete_profile", {}), ("remove_fields", {"fields": ["HAIR"]})):
        told = world.call(tool, id=made["id"], expected_version=1, **given)
        assert told["result"] == "confirmation_required"
    delete, remove = world.to_confirm
    assert (delete.operation, delete.version, len(delete.fields)) == ("delete", 1, 2)
    assert remove.fields == (ChangedField(field="hair", before="red"),)
    assert delete.expires_at_ms == 1_800_000_600_000
    assert delete.confirmation_id != remove.confirmation_id
    assert world.profile_service.show("mara", made["id"]).version == 1
    assert len(world.changes) == 1


def test_a_deletion_of_what_is_not_there_or_was_changed_asks_nobody(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Delete it.")
    with pytest.raises(ToolInvalid, match="version 1 is current"):
        world.call("delete_profile", id=made["id"], expected_version=2)
    with pytest.raises(ToolInvalid, match="unknown field shoes"):
        world.call("remove_fields", id=made["id"], expected_version=1, fields=["shoes"])
    with pytest.raises(ProfileUnknown):
        world.call("delete_profile", id="0" * 20, expected_version=1)
    assert world.to_confirm == []


def test_another_users_profile_is_unknown_to_every_tool(world):
    made = world.noted("Tamsin", ("hair", "red"))
    world.message("Delete Tamsin, or make her hair black; I am mara.", subject="jonas")
    stated = world.message("I suspect Ilse moved the key", subject="mara").call(
        "state_theory", statement="Ilse moved the key"
    )["stated"]
    world.message("Delete Tamsin, or make her hair black; Ilse moved the key; I am mara.", subject="jonas")
    for one in (made["id"], stated["id"]):
        for name, given in (
            ("show_profile", {"id": one}),
            ("profile_history", {"id": one}),
            ("update_profile", {"id": one, "expected_version": 1, "set": [{"field": "hair", "value": "black"}]}),
            ("delete_profile", {"id": one, "expected_version": 1}),
            ("remove_fields", {"id": one, "expected_version": 1, "fields": ["hair"]}),
            ("undo_change", {"id": one, "version": 1}),
            ("refine_theory", {"id": one, "expected_version": 1, "statement": "Ilse moved the key"}),
            ("gather_evidence", {"id": one}),
            ("record_verdict", {"id": one, "expected_version": 1, "verdict": "open", "passages_for": [1]}),
        ):
            with pytest.raises(ProfileUnknown):
                world.call(name, **given)
    assert world.call("list_profiles")["profiles"] == world.call("list_theories")["theories"] == []
    assert world.registry.sources == ()


@pytest.mark.parametrize(
    "given",
    [
        {"id": "0" * 20, "expected_version": 1, "subject": "jonas"},
        {"id": "0" * 19 + "#", "expected_version": 1},
        {"id": "0" * 20, "expected_version": 0},
        {"id": "0" * 20, "expected_version": "1; drop"},
        {"id": "0" * 20, "expected_version": 1, "set": [{"field": "f", "value": "x" * 1001, "quote": "x"}]},
        {"id": "0" * 20, "expected_version": 1, "set": [{"field": "f", "value": "x", "quote": "x"}] * 21},
        {"id": "0" * 20, "expected_version": 1, "set": [{"field": "f", "value": "x", "quote": "x", "proof": {}}]},
        {"id": "0" * 20, "expected_version": 1, "set": [{"field": "f", "value": "x"}]},
        {"id": "0" * 20, "expected_version": 1},
    ],
)
def test_input_that_is_none_of_the_form_is_no_input(given):
    with pytest.raises(OutputMisfit):
        read_form(UpdateProfile, given)


def test_a_profile_with_more_facts_than_the_registry_has_room_for_is_shown_all_the_same(world):
    values = {f"f{n}": f"value{n}" for n in range(20)}
    made = world.noted("Tamsin", *values.items())
    for start in (20, 40):
        more = {f"f{n}": f"value{n}" for n in range(start, min(start + 20, 50))}
        world.message(" ".join(more.values()))
        facts = [{"field": field, "value": value} for field, value in more.items()]
        world.call("update_profile", id=made["id"], expected_version=start // 20, set=facts)
    shown = world.message("Show her").call("show_profile", name="tamsin")["fields"]
    assert len(shown) == 50
    assert [one["citation"] for one in shown][:40] == list(range(1, 41))
    assert {one["citation"] for one in shown[40:]} == {None}
