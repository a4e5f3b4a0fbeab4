"""The operations on profiles: rules, versions, repeated operations, and one user apart from another."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given as given_
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cicada.errors import ProfileConflict, ProfileInvalid, ProfileUnknown
from cicada.profiles.changes import By, FieldGiven, Stated
from cicada.profiles.record import Evidence, NoteProof, PassageProof, Profile, ProfileRecord
from cicada.profiles.rules import MAX_EDITS, ProfileLimits, dumped, name_key, profile_id
from cicada.profiles.service import ProfileService, operation
from tests.support.passages import make_passage
from tests.support.profiles import InMemoryProfiles, profile_of

NOW_S = 1_800_000_000
NOTE = NoteProof(request_id="r", words="as I said", said_at_ms=1)


class World:
    def __init__(self, **limits):
        self.store = InMemoryProfiles()
        self.now_s = NOW_S
        self.limit(**limits)
        self.operations = 0

    def limit(self, **limits):
        """From now on these limits hold."""
        self.limits = ProfileLimits(**limits)
        self.profile_service = ProfileService(self.store, limits=self.limits, now_s=lambda: self.now_s)

    def by(self, subject="mara", operation_id=None):
        self.operations += 1
        return By(subject, "r", operation_id or f"o{self.operations}")

    def create(self, name="Tamsin Oake", kind="character", *, subject="mara", **fields):
        return self.profile_service.create(self.by(subject), kind, name, given(**fields))

    def stored(self, profile: Profile) -> ProfileRecord:
        record = self.store.read("mara", profile.id)
        assert record is not None
        return record

    def theory(self, statement="Ilse moved the key", episodes=()):
        return self.profile_service.create(self.by(), "theory", statement, stated=Stated(statement, NOTE, episodes))


def given(**fields):
    return [FieldGiven(name, value, NOTE) for name, value in fields.items()]


def evidence(number, side="for", strength=0.6, *, cited=False):
    passage = make_passage(number)
    proof = PassageProof(
        passage_id=passage.id, collection="script", locator=passage.locator, quote=passage.text, index_version="v1"
    )
    return Evidence(side=side, strength=strength, proof=proof, cited=cited)


@pytest.fixture
def world():
    return World()


def test_a_new_profile_has_its_facts_with_their_proofs_and_a_history(world):
    made = world.create(occupation="copy-reader")
    assert (made.version, made.name, made.kind) == (1, "Tamsin Oake", "character")
    (fact,) = made.fields
    assert (fact.name, fact.value, fact.proof, fact.changed_at_ms) == ("occupation", "copy-reader", NOTE, NOW_S * 1000)
    shown, (change,) = world.profile_service.with_history("mara", made.id)
    assert shown == made
    assert (change.operation, change.version, change.request_id) == ("created", 1, "r")
    assert [(edit.field, edit.before, edit.after) for edit in change.edits] == [("occupation", None, "copy-reader")]


def test_an_update_sets_replaces_and_removes_and_says_so_in_the_history(world):
    made = world.create(occupation="copy-reader", room="attic")
    new = world.profile_service.update(
        world.by(), made.id, 1, given=given(Occupation="editor", hair="red"), remove=["ROOM"]
    )
    assert [(fact.name, fact.value) for fact in new.fields] == [("occupation", "editor"), ("hair", "red")]
    _, history = world.profile_service.with_history("mara", made.id)
    edits = {(edit.field, edit.before, edit.after) for edit in history[-1].edits}
    assert edits == {("occupation", "copy-reader", "editor"), ("room", "attic", None), ("hair", None, "red")}


def test_what_stands_there_already_keeps_its_proof_and_is_no_change(world):
    made = world.create(occupation="copy-reader")
    other = [FieldGiven("occupation", " copy-reader\u200b ", NOTE.model_copy(update={"words": "again"}))]
    assert world.profile_service.update(world.by(), made.id, 1, given=other) == made


@pytest.mark.parametrize("name", ["tamsin oake", "TAMSIN  OAKE", "Ｔamsin Oake", "Tamsin\u200b Oake\n"])
def test_names_are_compared_without_case_and_one_of_a_kind_exists(world, name):
    made = world.create()
    with pytest.raises(ProfileConflict, match=made.id):
        world.create(name)
    assert world.create(name, "location").id != made.id
    assert world.profile_service.find("mara", name, "character") == made


@pytest.mark.parametrize("text", ["ß", "İ", "ǅ", "ﬁ", "K", "ῼ", "ſ"])
def test_folding_a_folded_name_changes_nothing(text):
    assert name_key(name_key(text)) == name_key(text)


def test_a_name_of_several_kinds_asks_which_one(world):
    world.create()
    world.create(kind="location")
    with pytest.raises(ProfileInvalid, match="character, location"):
        world.profile_service.find("mara", "tamsin oake")
    assert world.profile_service.find("mara", "tamsin oake", "location").kind == "location"


def test_another_version_is_not_changed(world):
    made = world.create()
    world.profile_service.update(world.by(), made.id, 1, given=given(hair="red"))
    for change in (
        lambda: world.profile_service.update(world.by(), made.id, 1, given=given(hair="black")),
        lambda: world.profile_service.delete(world.by(), made.id, 1),
        lambda: world.profile_service.update(world.by(), made.id, 3, given=given(hair="black")),
    ):
        with pytest.raises(ProfileConflict, match="version 2"):
            change()


def test_a_write_that_comes_in_between_wins_and_the_other_is_told(world):
    made = world.create()

    def interrupt():
        world.store.before_write = lambda: None
        world.profile_service.update(world.by(), made.id, 1, given=given(hair="red"))

    world.store.before_write = interrupt
    with pytest.raises(ProfileConflict):
        world.profile_service.update(world.by(), made.id, 1, given=given(hair="black"))
    assert world.profile_service.show("mara", made.id).fields[0].value == "red"


def test_a_repeated_operation_is_no_second_change(world):
    by = world.by()
    first = world.profile_service.create(by, "character", "Tamsin", given(hair="red"))
    assert world.profile_service.create(by, "character", "Tamsin", given(hair="red")) == first
    changing = world.by()
    second = world.profile_service.update(changing, first.id, 1, given=given(hair="black"))
    assert world.profile_service.update(changing, first.id, 1, given=given(hair="black")) == second
    deleting = world.by()
    assert (
        world.profile_service.delete(deleting, first.id, 2) == world.profile_service.delete(deleting, first.id, 2) == 3
    )
    assert world.store.writes == 3


def test_an_operation_whose_write_landed_unheard_is_known_by_its_own_mark(world):
    made = world.create()

    def landed_already():
        world.store.before_write = lambda: None
        world.profile_service.update(by, made.id, 1, given=given(hair="red"))

    by = world.by()
    world.store.before_write = landed_already
    assert world.profile_service.update(by, made.id, 1, given=given(hair="red")).version == 2


def test_a_repeated_create_does_not_bring_back_what_was_deleted(world):
    by = world.by()
    made = world.profile_service.create(by, "character", "Tamsin", given(hair="red"))
    world.profile_service.delete(world.by(), made.id, 1)
    with pytest.raises(ProfileUnknown):
        world.profile_service.create(by, "character", "Tamsin", given(hair="red"))


def test_a_deleted_profile_leaves_no_word_and_its_version_goes_on_counting(world):
    made = world.create(secret="the green ledger")
    world.profile_service.delete(world.by(), made.id, 1)
    for look in (world.profile_service.show, world.profile_service.with_history):
        with pytest.raises(ProfileUnknown):
            look("mara", made.id)
    assert world.profile_service.list("mara") == ()
    left = world.stored(made)
    assert "ledger" not in dumped(left)
    assert "Tamsin" not in dumped(left)
    assert left.expires_at == NOW_S + world.limits.deleted_kept_s
    again = world.create()
    assert again.version == 3
    with pytest.raises(ProfileConflict):
        world.profile_service.update(world.by(), again.id, 1, given=given(hair="red"))


@pytest.mark.parametrize("subject", ["jonas", "mara#x", "mara/", "", "tenant/mara"])
def test_another_users_profile_is_absent_whatever_is_done_with_its_id(world, subject):
    made = world.create(hair="red")
    own, theirs = made.id, profile_id("character", "Nobody")
    attempts = [
        lambda one: world.profile_service.show(subject, one),
        lambda one: world.profile_service.with_history(subject, one),
        lambda one: world.profile_service.update(world.by(subject), one, 1, given=given(hair="black")),
        lambda one: world.profile_service.delete(world.by(subject), one, 1),
        lambda one: world.profile_service.judge(world.by(subject), one, 1, "open", [evidence(1, cited=True)]),
    ]
    for attempt in attempts:
        told = set()
        for one in (own, theirs, "../mara", "profile#", "x" * 5000):
            with pytest.raises(ProfileUnknown) as refusal:
                attempt(one)
            told.add(str(refusal.value))
        assert len(told) == 1
    assert world.profile_service.list(subject) == ()
    assert world.create(subject=subject).version == 1
    assert world.profile_service.show("mara", own) == made


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({" ": "x"}, "name"),
        ({"x" * 61: "x"}, "60"),
        ({"hair": "\u200b"}, "hair"),
        ({"hair": "x" * 1001}, "1000"),
        ({"hair": "red", "HAIR": "black"}, "twice"),
        ({f"f{n}": "x" for n in range(4)}, "3 fields"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_nothing_is_kept(fields, told):
    world = World(fields=3)
    with pytest.raises(ProfileInvalid, match=told):
        world.create(**fields)
    assert world.store.stored == {}


@pytest.mark.parametrize("name", ["", " \n", "\u200b", "x" * 81])
def test_a_name_has_1_to_80_characters(world, name):
    with pytest.raises(ProfileInvalid, match="name"):
        world.create(name)


def test_one_change_has_so_many_edits_at_most(world):
    made = world.create()
    many = given(**{f"f{n}": "x" for n in range(MAX_EDITS)})
    with pytest.raises(ProfileInvalid, match=str(MAX_EDITS)):
        world.profile_service.update(world.by(), made.id, 1, given=many, remove=["hair"])


def test_a_field_that_is_not_there_is_not_removed(world):
    made = world.create()
    with pytest.raises(ProfileInvalid, match="hair"):
        world.profile_service.update(world.by(), made.id, 1, remove=["hair"])


def test_a_user_has_so_many_profiles_and_another_as_many_again():
    world = World(profiles=2)
    first = world.create("A")
    world.create("B")
    with pytest.raises(ProfileInvalid, match="2 profiles"):
        world.create("C")
    world.create("C", subject="jonas")
    world.profile_service.delete(world.by(), first.id, 1)
    world.create("C")


def test_lists_and_counts_read_no_whole_record(world):
    for n in range(4):
        world.create(f"Person {n}", hair="red")
    theory = world.theory(episodes=("ep1",))
    world.profile_service.judge(
        world.by(), theory.id, 1, "supported", [evidence(1, cited=True), evidence(2, "against")]
    )
    heads = world.profile_service.list("mara")
    assert [(head.name, head.facts) for head in heads[:4]] == [(f"Person {n}", 1) for n in range(4)]
    assert (heads[4].statement, heads[4].episodes, heads[4].evidence, heads[4].verdict, heads[4].version) == (
        *("Ilse moved the key", ("ep1",), "1 for, 1 against", "supported"), 2
    )  # fmt: skip
    assert [head.name for head in world.profile_service.list("mara", "theory")] == ["Ilse moved the key"]
    assert world.store.records_read == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_a_list_is_whole_however_many_pages_it_has(world, count, monkeypatch):
    monkeypatch.setattr("cicada.profiles.service.PAGE", 2)
    for n in range(count):
        world.create(f"Person {n}")
    assert [head.name for head in world.profile_service.list("mara")] == [f"Person {n}" for n in range(count)]


def test_so_many_deleted_profiles_are_remembered_and_a_new_one_waits_until_some_are_forgotten():
    world = World(deleted=2)
    for name in ("A", "B"):
        world.profile_service.delete(world.by(), world.create(name).id, 1)
    with pytest.raises(ProfileInvalid, match="2 deleted profiles"):
        world.create("C")
    assert world.create("A").version == 3  # in the place of what it has left
    world.profile_service.delete(world.by(), profile_id("character", "A"), 3)
    world.now_s += world.limits.deleted_kept_s + 1
    assert world.create("C").version == 1


def test_a_deleted_profile_keeps_the_newest_of_its_changes_without_words():
    world = World(deleted_history_entries=3)
    made = world.create(hair="red")
    for n in range(6):
        world.profile_service.update(world.by(), made.id, n + 1, given=given(hair=f"shade {n}"))
    deleting = world.by()
    world.profile_service.delete(deleting, made.id, 7)
    left = world.stored(made)
    assert [change.version for change in left.history] == [6, 7, 8]
    assert world.profile_service.delete(deleting, made.id, 7) == 8


def test_of_a_deleted_profile_the_deletion_alone_can_be_remembered():
    world = World(deleted_history_entries=1)
    made = world.create(hair="red")
    world.profile_service.delete(world.by(), made.id, 1)
    assert [change.operation for change in world.stored(made).history] == ["deleted"]


def test_the_history_keeps_its_newest_entries():
    world = World(history_entries=3)
    made = world.create()
    for n in range(5):
        world.profile_service.update(world.by(), made.id, n + 1, given=given(hair=f"shade {n}"))
    _, history = world.profile_service.with_history("mara", made.id)
    assert [change.version for change in history] == [4, 5, 6]


def test_the_oldest_entries_make_room_and_a_profile_that_is_too_large_without_them_is_refused():
    world = World(record_bytes=6_000)
    made = world.create()
    for n in range(4):
        made = world.profile_service.update(world.by(), made.id, n + 1, given=given(note=f"{n}" * 900))
    _, history = world.profile_service.with_history("mara", made.id)
    assert len(dumped(world.stored(made))) <= 6_000
    assert history[-1].version == 5
    with pytest.raises(ProfileInvalid, match="6000"):
        world.profile_service.update(world.by(), made.id, 5, given=given(**{f"f{n}": "x" * 900 for n in range(6)}))


def test_what_is_over_a_lowered_limit_is_still_read_and_can_be_brought_below_it_step_by_step():
    world = World()
    made = world.create(**{f"f{n}": "x" for n in range(5)})
    world.create("B")
    world.limit(profiles=1, fields=2)
    assert world.profile_service.show("mara", made.id) == made
    assert len(world.profile_service.list("mara")) == 2
    fewer = world.profile_service.update(world.by(), made.id, 1, given=given(f1="y"), remove=["f0"])
    assert [fact.name for fact in fewer.fields] == ["f1", "f2", "f3", "f4"]
    with pytest.raises(ProfileInvalid, match="2 fields"):
        world.profile_service.update(world.by(), made.id, 2, given=given(f5="x"))
    with pytest.raises(ProfileInvalid, match="1 profiles"):
        world.create("C")


def test_a_profile_larger_than_a_lowered_limit_can_be_changed_where_it_does_not_grow():
    world = World()
    made = world.create(**{f"f{n}": "x" * 900 for n in range(6)})
    world.limit(record_bytes=4_000)
    assert world.profile_service.show("mara", made.id) == made
    smaller = world.profile_service.update(world.by(), made.id, 1, remove=["f0"])
    assert len(smaller.fields) == 5
    with pytest.raises(ProfileInvalid, match="4000"):
        world.profile_service.update(world.by(), made.id, 2, given=given(f6="x" * 1000, f7="x" * 1000))
    for version, field in enumerate(("f1", "f2", "f3"), start=2):
        world.profile_service.update(world.by(), made.id, version, remove=[field])
    assert len(dumped(world.stored(made))) <= 4_000
    assert world.profile_service.delete(world.by(), made.id, 5) == 6


def test_the_history_gives_way_to_a_lowered_limit_before_anything_else():
    world = World()
    made = world.create(hair="red")
    for n in range(9):
        world.profile_service.update(world.by(), made.id, n + 1, given=given(hair=f"{n}" * 300))
    world.limit(record_bytes=3_000, history_entries=8)
    world.profile_service.update(world.by(), made.id, 10, given=given(hair="black"))
    assert len(dumped(world.stored(made))) <= 3_000


def test_a_refined_theory_loses_what_was_gathered_for_the_old_statement(world):
    made = world.theory(episodes=("ep1",))
    judged = world.profile_service.judge(
        world.by(), made.id, 1, "supported", [evidence(1, cited=True), evidence(2, "against")]
    )
    assert judged.theory.judgement.verdict == "supported"
    assert [one.cited for one in judged.theory.evidence] == [True, False]
    refined = world.profile_service.update(world.by(), made.id, 2, stated=Stated("Ilse hid the key", NOTE, ("ep1",)))
    assert (refined.theory.statement, refined.theory.evidence, refined.theory.judgement) == (
        "Ilse hid the key",
        (),
        None,
    )
    _, history = world.profile_service.with_history("mara", made.id)
    gone = {edit.field: edit.before for edit in history[-1].edits}
    assert gone == {
        "statement": "Ilse moved the key",
        "evidence": "1 for, 1 against",
        "verdict": "supported, by 1 of its evidence",
    }


def test_a_verdict_rests_on_evidence(world):
    made = world.theory()
    for nothing in ([], [evidence(1)]):
        with pytest.raises(ProfileInvalid):
            world.profile_service.judge(world.by(), made.id, 1, "open", nothing)
    plain = world.create()
    with pytest.raises(ProfileInvalid, match="theory"):
        world.profile_service.judge(world.by(), plain.id, 1, "open", [evidence(1, cited=True)])


def test_what_a_verdict_rests_on_is_kept_before_stronger_evidence(world):
    made = world.theory()
    gathered = [evidence(n, strength=0.9) for n in range(16)] + [evidence(99, strength=0.2, cited=True)]
    kept = world.profile_service.judge(world.by(), made.id, 1, "open", gathered).theory.evidence
    assert len(kept) == 16
    assert [one.proof.passage_id for one in kept if one.cited] == ["m99"]


def test_a_theorys_own_parts_are_no_fields_and_only_theories_have_a_statement(world):
    with pytest.raises(ProfileInvalid, match="reserved in theories"):
        world.profile_service.create(world.by(), "theory", "T", given(Verdict="supported"), Stated("Ilse did", NOTE))
    with pytest.raises(ProfileInvalid):
        world.profile_service.create(world.by(), "theory", "T")
    with pytest.raises(ProfileInvalid):
        world.profile_service.create(world.by(), "character", "T", stated=Stated("Ilse did", NOTE))
    plain = world.create()
    with pytest.raises(ProfileInvalid):
        world.profile_service.update(world.by(), plain.id, 1, stated=Stated("Ilse did", NOTE))


# --- taking back ---


def test_what_a_change_replaced_removed_and_added_is_taken_back_with_its_proofs(world):
    made = world.create(hair="red", room="attic " + "x" * 900)
    changed = world.profile_service.update(
        world.by(), made.id, 1, given=given(hair="black", shoes="none"), remove=["room"]
    )
    assert [field.name for field in changed.fields] == ["hair", "shoes"]
    undone = profile_of(world.profile_service.undo(world.by(), made.id, 2))
    assert {field.name: field for field in undone.fields} == {field.name: field for field in made.fields}
    assert undone.version == 3
    _, history = world.profile_service.with_history("mara", made.id)
    assert (history[-1].operation, history[-1].undoes) == ("undone", 2)
    again = world.profile_service.undo(world.by(), made.id, 3).profile
    assert {field.name: field.value for field in again.fields} == {"hair": "black", "shoes": "none"}


def test_an_older_change_is_taken_back_while_nothing_has_touched_what_it_did(world):
    made = world.create(hair="red")
    world.profile_service.update(world.by(), made.id, 1, given=given(hair="black"))
    world.profile_service.update(world.by(), made.id, 2, given=given(shoes="none"))
    undone = profile_of(world.profile_service.undo(world.by(), made.id, 2))
    assert {field.name: field.value for field in undone.fields} == {"hair": "red", "shoes": "none"}
    world.profile_service.update(world.by(), made.id, 4, given=given(shoes="two"))
    with pytest.raises(ProfileConflict, match="shoes was changed"):
        world.profile_service.undo(world.by(), made.id, 3)


def test_a_creation_is_taken_back_by_deleting_what_nothing_has_changed_since(world):
    made = world.create(hair="red")
    assert world.profile_service.undo(world.by(), made.id, 1).profile is None
    assert world.profile_service.list("mara") == ()
    made = world.create(hair="red")
    world.profile_service.update(world.by(), made.id, made.version, given=given(hair="black"))
    with pytest.raises(ProfileConflict, match="after it was created"):
        world.profile_service.undo(world.by(), made.id, made.version)


def test_a_theorys_refined_statement_comes_back_with_its_evidence_and_verdict(world):
    made = world.theory()
    judged = world.profile_service.judge(world.by(), made.id, 1, "supported", [evidence(1, cited=True)])
    world.profile_service.update(world.by(), made.id, 2, stated=Stated("Petra moved the key", NOTE))
    assert world.profile_service.undo(world.by(), made.id, 3).profile.theory == judged.theory
    world.profile_service.update(world.by(), made.id, 4, stated=Stated("Corin moved the key", NOTE))
    with pytest.raises(ProfileConflict, match="theory was changed"):
        world.profile_service.undo(world.by(), made.id, 2)


def test_a_verdict_on_other_evidence_is_a_later_change_though_it_reads_the_same(world):
    made = world.theory()
    world.profile_service.judge(world.by(), made.id, 1, "supported", [evidence(1, cited=True)])
    judged = world.profile_service.judge(world.by(), made.id, 2, "supported", [evidence(2, cited=True)])
    with pytest.raises(ProfileConflict, match="theory was changed"):
        world.profile_service.undo(world.by(), made.id, 2)
    assert world.profile_service.show("mara", made.id) == judged
    undone = world.profile_service.undo(world.by(), made.id, 3).profile.theory
    assert [one.proof.passage_id for one in undone.evidence] == ["m1"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_a_deleted_profile_of_the_name_went_through_is_not_taken_back(world, version):
    made = world.create(hair="red")
    world.profile_service.update(world.by(), made.id, 1, given=given(hair="black"))
    world.profile_service.delete(world.by(), made.id, 2)
    anew = world.create(hair="grey")
    with pytest.raises((ProfileInvalid, ProfileConflict)):
        world.profile_service.undo(world.by(), made.id, version)
    assert world.profile_service.show("mara", made.id) == anew


def test_a_change_that_could_not_be_taken_back_is_refused_where_it_must_be():
    world = World(record_bytes=10_500)
    made = world.create(**dict.fromkeys("abcd", "x" * 900))
    change = given(**dict.fromkeys("abc", "y" * 900))
    with pytest.raises(ProfileInvalid, match="exceed the size limit"):
        world.profile_service.update(replace(world.by(), reversibly=True), made.id, 1, given=change)
    assert world.profile_service.show("mara", made.id) == made
    world.profile_service.update(replace(world.by(), reversibly=True), made.id, 1, given=change[:1])
    assert profile_of(world.profile_service.undo(world.by(), made.id, 2)).fields[0].value == "x" * 900


def test_taking_back_is_done_once_by_its_user_and_not_for_what_is_forgotten():
    world = World(history_entries=2)
    made = world.create(hair="red")
    world.profile_service.update(world.by(), made.id, 1, given=given(hair="black"))
    by = world.by()
    assert world.profile_service.undo(by, made.id, 2) == world.profile_service.undo(by, made.id, 2)
    with pytest.raises(ProfileUnknown):
        world.profile_service.undo(world.by("jonas"), made.id, 2)
    with pytest.raises(ProfileInvalid, match="no change to version 1"):
        world.profile_service.undo(world.by(), made.id, 1)


def test_a_change_of_an_earlier_release_that_did_not_keep_what_it_replaced_is_not_taken_back(world):
    made = world.create(hair="red")
    world.profile_service.update(world.by(), made.id, 1, given=given(hair="black"))
    stored = world.store.stored["mara", made.id]
    world.store.stored["mara", made.id] = stored.model_copy(update={"replaced": ()})
    with pytest.raises(ProfileInvalid, match="not kept"):
        world.profile_service.undo(world.by(), made.id, 2)
    assert world.profile_service.show("mara", made.id).version == 2
    theory = world.theory()
    world.profile_service.update(world.by(), theory.id, 1, stated=Stated("Petra moved the key", NOTE))
    stored = world.store.stored["mara", theory.id]
    world.store.stored["mara", theory.id] = stored.model_copy(update={"replaced": ()})
    with pytest.raises(ProfileInvalid, match="not kept"):
        world.profile_service.undo(world.by(), theory.id, 2)


@settings(max_examples=60)
@given_(
    st.dictionaries(st.sampled_from("abcd"), st.text("xy", min_size=1, max_size=3), max_size=4),
    st.dictionaries(st.sampled_from("abcd"), st.text("xyz", min_size=1, max_size=3), max_size=4),
    st.sets(st.sampled_from("abcd")),
)
def test_whatever_a_change_did_taking_it_back_leaves_the_facts_as_they_were(before, after, removed):
    world = World()
    made = world.create(**before)
    remove = [name for name in removed if name in before and name not in after]
    changed = world.profile_service.update(world.by(), made.id, 1, given=given(**after), remove=remove)
    if changed.version == 1:
        return
    undone = profile_of(world.profile_service.undo(world.by(), made.id, 2))
    assert {field.name: field for field in undone.fields} == {field.name: field for field in made.fields}


def test_an_operation_is_known_by_request_name_and_input_whatever_its_order():
    one = operation("r", "update_profile", {"a": 1, "b": "\ud800"})
    assert one == operation("r", "update_profile", json.loads('{"b": "\\ud800", "a": 1}'))
    assert len({one, operation("s", "update_profile", {"a": 1, "b": "\ud800"}), operation("r", "u", {"a": 1})}) == 3


USERS, NAMES, VALUES = ("mara", "jonas"), ("Ilse", "Corin"), ("red", "black", "grey")


class TwoUsers(RuleBasedStateMachine):
    """What each user sees is what that user alone has done, whatever is repeated and whoever is late."""

    def __init__(self):
        super().__init__()
        self.world = World()
        self.model = {}  # (user, name) -> (version, values or None once deleted)
        self.done = []

    def _expect(self, user, name):
        return self.model.get((user, name), (0, None))

    def _try(self, user, name, version, change, after):
        stands, values = self._expect(user, name)
        by = self.world.by(user)
        run = lambda: change(by, profile_id("character", name), version)  # noqa: E731
        if values is None:
            with pytest.raises(ProfileUnknown):
                run()
        elif version != stands:
            with pytest.raises(ProfileConflict):
                run()
        else:
            run()
            self.model[user, name] = after(stands, values)
            self.done.append((user, name, run))

    @rule(user=st.sampled_from(USERS), name=st.sampled_from(NAMES), value=st.sampled_from(VALUES))
    def create(self, user, name, value):
        version, values = self._expect(user, name)
        if values is not None:
            with pytest.raises(ProfileConflict):
                self.world.create(name.upper(), subject=user)
            return
        made = self.world.create(name, subject=user, hair=value)
        self.model[user, name] = (version + 1, value)
        assert made.version == version + 1

    @rule(
        user=st.sampled_from(USERS), name=st.sampled_from(NAMES), value=st.sampled_from(VALUES), late=st.integers(0, 2)
    )
    def update(self, user, name, value, late):
        version = max(1, self._expect(user, name)[0] - late)
        self._try(
            user,
            name,
            version,
            lambda by, one, at: self.world.profile_service.update(by, one, at, given=given(hair=value)),
            lambda at, old: (at + (value != old), value),
        )

    @rule(user=st.sampled_from(USERS), name=st.sampled_from(NAMES), late=st.integers(0, 1))
    def delete(self, user, name, late):
        version = max(1, self._expect(user, name)[0] - late)
        self._try(user, name, version, self.world.profile_service.delete, lambda at, old: (at + 1, None))

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def repeat(self, data):
        """A retry or a zombie: whatever it is told, nothing changes."""
        _, _, run = data.draw(st.sampled_from(self.done))
        before = dict(self.world.store.stored)
        with contextlib.suppress(ProfileConflict, ProfileUnknown):
            run()
        assert self.world.store.stored == before

    @invariant()
    def each_sees_their_own(self):
        for user in USERS:
            seen = {profile.name.title(): profile for profile in self.world.profile_service.list(user)}
            expected = {name: at for (owner, name), at in self.model.items() if owner == user and at[1] is not None}
            whole = {name: self.world.profile_service.show(user, one.id) for name, one in seen.items()}
            assert {name: (seen[name].version, one.fields[0].value) for name, one in whole.items()} == expected


TwoUsers.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
TestTwoUsers = TwoUsers.TestCase
