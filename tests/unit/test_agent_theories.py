"""Theories: evidence for and against, apart from each other and episode by episode, and verdicts that rest on it."""

from __future__ import annotations

import pytest

from cicada.agents.tools.negating import contradicting_queries, supporting_queries
from cicada.agents.tools.shown import passage_source
from cicada.agents.tools.weighing import Found, balance_words, gathered_for, reason_of, strength_words, weigh
from cicada.errors import ProfileConflict, ProfileInvalid, ToolInvalid
from cicada.profiles.changes import By
from cicada.retrieval.ports import Hit
from tests.unit.test_agent_tools import LINES, World, line

THEORY = "Ilse moved the key to the boathouse."


@pytest.fixture
def world():
    return World(*LINES)


@pytest.fixture
def stated(world):
    return world.message(f"My theory: {THEORY}").call("state_theory", statement=THEORY)["stated"]


def sides(told):
    return {side: [one["text"] for part in told["parts"] for one in part[side]] for side in ("for", "against")}


# --- what is searched for ---


@pytest.mark.parametrize(
    ("statement", "query"),
    [
        ("Ilse was in the tower.", "Ilse was not in the tower."),
        ("Ilse was not in the tower.", "Ilse was in the tower."),
        ("Ilse never left the house", "Ilse left the house"),
        ("Ilse didn't leave", "Ilse did leave"),
        ("Ilse moved the key", "It is not true that Ilse moved the key"),
        ("Ilse moved the key", "someone else moved the key"),
        ("Der Schlüssel lag nicht im Boot, und Ilse war auch da.", "Der Schlüssel lag im Boot, und Ilse war auch da."),
    ],
)
def test_what_speaks_against_a_statement_is_searched_for_in_other_words(statement, query):
    assert query in contradicting_queries(statement)


def test_a_word_with_an_opposite_is_exchanged_for_it():
    queries = contradicting_queries("The door was open at midnight")
    assert any("open" not in query and "door" in query for query in queries)


@pytest.mark.parametrize(
    "statement", ["Ilse moved the key", "key", "?", "誰が鍵を動かした", "нет", "not", "никогда не был"]
)
def test_both_sides_have_queries_and_none_is_the_other_sides(statement):
    against = contradicting_queries(statement)
    assert supporting_queries(statement)
    assert set(against).isdisjoint({statement})
    assert len(against) <= 3


# --- on which side a passage stands ---


def found(text, statement=THEORY, *, scores=None):
    return weigh(statement, Found(passage_source(Hit(line(1, text), 0.8)).model_copy(), scores or {"for": 0.8}))


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("Ilse moved the key to the boathouse before supper.", "for"),
        ("Ilse never moved the key to the boathouse.", "against"),
        ("The supper was cold.", None),
        ("Somebody has a boat.", None),
        ("Did Ilse move the key to the boathouse?", None),
        ("Ilse did not move the key to the boathouse.", "against"),
        ("The boathouse.", None),
    ],
)
def test_a_passages_side_is_read_from_the_passage(text, side):
    assert found(text).side == side


def test_strength_grows_with_the_score_and_with_the_share_of_the_words_and_knows_its_search():
    text = "Ilse moved the key to the boathouse before supper."
    own = found(text, scores={"for": 0.8})
    other = found(text, scores={"against": 0.8})
    low = found(text, scores={"for": 0.5})
    assert own.strength == 0.8  # all of the statement's words are there
    assert other.strength == pytest.approx(0.64)
    assert low.strength < own.strength
    assert found("Ilse moved the key.", "Ilse quietly moved the small key before supper").strength < own.strength


@pytest.mark.parametrize(
    ("strength", "words"), [(1, "strong"), (0.7, "strong"), (0.69, "moderate"), (0.4, "moderate"), (0.39, "weak")]
)
def test_strength_in_words(strength, words):
    assert strength_words(strength) == words


def test_weak_evidence_and_none_are_called_so():
    weak = found("Ilse moved the key to the boathouse.", scores={"for": 0.3})
    assert "only be open" in balance_words([weak])
    assert "no verdict can rest on this" in balance_words([found("The supper was cold.")])
    assert balance_words([]).startswith("nothing for it; nothing against it")


def test_a_reason_says_for_which_statement_and_on_which_side_a_source_was_gathered():
    weighed = found("Ilse moved the key to the boathouse before supper.")
    source = weighed.source.model_copy(update={"why": (reason_of(THEORY, weighed),)})
    assert gathered_for(THEORY, source).side == "for"
    assert gathered_for("Corin moved the key.", source) is None
    assert gathered_for(THEORY, weighed.source) is None


# --- the tools ---


def test_a_theory_is_kept_in_the_users_words(world, stated):
    profile = world.desk.show("mara", stated["id"])
    assert (profile.kind, profile.theory.statement) == ("theory", THEORY)
    assert profile.theory.proof.words == f"My theory: {THEORY}"
    with pytest.raises(ToolInvalid, match="words"):
        world.message("Hm.").call("state_theory", statement="Corin sank the launch")
    with pytest.raises(ProfileConflict):
        world.message(f"My theory: {THEORY}").call("state_theory", statement=THEORY.upper())


def test_a_theory_about_episodes_that_the_question_leaves_out_is_refused(world):
    world.message(f"My theory: {THEORY}", episodes=("ep1",))
    with pytest.raises(ToolInvalid, match="episodes"):
        world.call("state_theory", statement=THEORY, episodes=["ep2"])


def test_evidence_is_gathered_for_both_sides_and_no_passage_stands_on_both(world, stated):
    told = world.message("Weigh it.").call("gather_evidence", id=stated["id"])
    found = sides(told)
    assert set(found["for"]) == {LINES[1].text, LINES[3].text}
    assert set(found["against"]) == {LINES[2].text}
    assert told["balance"].startswith("2 for it, the strongest strong")
    assert told["searched"]["for"][0] == THEORY
    assert THEORY not in told["searched"]["against"]


def test_evidence_stays_with_its_episode(world, stated):
    parts = world.message("Weigh it.").call("gather_evidence", id=stated["id"])["parts"]
    assert [part["part"] for part in parts] == ["ep1 · The Boathouse", "ep2 · The Gauge Tower"]
    assert [len(part["for"]) for part in parts] == [1, 1]
    assert [len(part["against"]) for part in parts] == [1, 0]
    assert "nothing against it" in parts[1]["balance"]


def test_a_theory_about_an_episode_is_searched_there(world):
    stated = world.message(f"In ep2: {THEORY}").call("state_theory", statement=THEORY, episodes=["ep2"])["stated"]
    told = world.call("gather_evidence", id=stated["id"])
    assert [part["part"] for part in told["parts"]] == ["ep2 · The Gauge Tower"]
    assert {query.filters.episodes for query in world.script.queries} == {("ep2",)}
    parts = world.message("And here?", episodes=("ep1",)).call("gather_evidence", id=stated["id"])["parts"]
    assert [part["part"] for part in parts] == ["ep1 · The Boathouse"]


def test_what_is_near_and_says_neither_is_no_evidence(world):
    world.script.lines = (line(7, "Did the key move to the boathouse, as Corin asked Petra?"),)
    told = world.message("Weigh it.").call("gather_evidence", statement=THEORY)
    assert (told["parts"], len(told["near_but_undecided"])) == ([], 1)
    assert "no verdict can rest on this" in told["balance"]


def test_a_verdict_is_kept_with_the_evidence_and_its_citations(world, stated):
    world.message("Weigh it.")
    told = world.call("gather_evidence", id=stated["id"])
    n = next(one["n"] for part in told["parts"] for one in part["for"])
    kept = world.call("record_verdict", id=stated["id"], expected_version=1, verdict="supported", citations=[n])
    assert kept["recorded"]["verdict"]["citations"] == [n]
    theory = world.desk.show("mara", stated["id"]).theory
    assert (theory.judgement.verdict, len(theory.evidence)) == ("supported", 3)
    assert [one.proof.quote for one in theory.evidence if one.cited] == [world.shelf.sources[n - 1].text]
    (listed,) = world.message("Which?").call("list_theories")["theories"]
    assert (listed["verdict"], listed["evidence"]) == ("supported", "2 for, 1 against")


def test_a_verdict_without_a_search_in_this_run_is_refused(world, stated):
    world.message("Just say that it is true.")
    verdict = {"id": stated["id"], "expected_version": 1, "verdict": "supported", "citations": [1]}
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", **verdict)
    world.call("search_script", query="Ilse moved the key")  # a search that weighs nothing
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", **verdict)
    world.call("gather_evidence", statement="The supper was cold.")  # another theory's
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", **verdict)
    assert world.desk.show("mara", stated["id"]).theory.judgement is None


def test_evidence_of_an_earlier_run_is_not_gathered_in_this_one(world, stated):
    world.message("Weigh it.").call("gather_evidence", id=stated["id"])
    world.call("record_verdict", id=stated["id"], expected_version=1, verdict="open", citations=[1])
    world.message("And now?").call("show_profile", id=stated["id"])
    assert world.shelf.sources
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", id=stated["id"], expected_version=2, verdict="supported", citations=[2])


def test_a_verdict_cites_evidence_of_its_own_side(world, stated):
    world.message("Weigh it.")
    told = world.call("gather_evidence", id=stated["id"])
    side = {s: [one["n"] for part in told["parts"] for one in part[s]] for s in ("for", "against")}
    for verdict, citations, why in (
        ("supported", side["against"], "needs evidence for"),
        ("contradicted", side["for"], "needs evidence against"),
        ("supported", [99], r"\[99\]"),
    ):
        with pytest.raises(ToolInvalid, match=why):
            world.call("record_verdict", id=stated["id"], expected_version=1, verdict=verdict, citations=citations)
    assert world.call(
        "record_verdict", id=stated["id"], expected_version=1, verdict="contradicted", citations=side["against"]
    )


def test_weak_evidence_supports_nothing(world, stated, monkeypatch):
    monkeypatch.setattr("cicada.agents.tools.verdicts.MODERATE", 1.1)
    world.message("Weigh it.")
    told = world.call("gather_evidence", id=stated["id"])
    citations = [one["n"] for part in told["parts"] for one in part["for"]]
    verdict = {"id": stated["id"], "expected_version": 1, "citations": citations}
    with pytest.raises(ToolInvalid, match="weak"):
        world.call("record_verdict", verdict="supported", **verdict)
    assert world.call("record_verdict", verdict="open", **verdict)


def test_a_refined_theory_needs_evidence_of_its_own(world, stated):
    world.message("Rather: Ilse hid the key in the boathouse.")
    world.call("gather_evidence", id=stated["id"])
    refined = world.call(
        "refine_theory", id=stated["id"], expected_version=1, statement="Ilse hid the key in the boathouse."
    )["refined"]
    assert (refined["version"], refined["name"]) == (2, stated["name"])
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", id=stated["id"], expected_version=2, verdict="supported", citations=[1])
    with pytest.raises(ToolInvalid, match="words"):
        world.call("refine_theory", id=stated["id"], expected_version=2, statement="Corin sank the launch")


def test_what_is_no_theory_is_not_weighed(world):
    made = world.noted("Tamsin", ("hair", "red"))
    for name, given in (
        ("gather_evidence", {}),
        ("refine_theory", {"expected_version": 1, "statement": THEORY}),
        ("record_verdict", {"expected_version": 1, "verdict": "open", "citations": [1]}),
    ):
        with pytest.raises(ProfileInvalid):
            world.call(name, id=made["id"], **given)
    for neither in ({}, {"id": made["id"], "statement": THEORY}):
        with pytest.raises(ToolInvalid, match="either"):
            world.call("gather_evidence", **neither)


# --- what a refined theory is called ---


@pytest.fixture
def refined(world, stated):
    world.message("Rather: Petra moved the key to the boathouse.")
    statement = "Petra moved the key to the boathouse."
    return world.call("refine_theory", id=stated["id"], expected_version=1, statement=statement)["refined"]


def test_what_a_theory_said_before_it_was_refined_can_be_stated_again(world, refined):
    again = world.message(f"My theory: {THEORY}").call("state_theory", statement=THEORY)["stated"]
    assert again["id"] != refined["id"]
    assert world.call("state_theory", statement=THEORY)["stated"]["id"] == again["id"]  # the same call of one request
    assert {head.statement for head in world.desk.list("mara", "theory")} == {THEORY, refined["statement"]}
    with pytest.raises(ProfileConflict, match=again["id"]):
        world.message(f"My theory: {THEORY}").call("state_theory", statement=THEORY)


def test_a_statement_that_is_made_twice_by_one_request_is_kept_once_though_its_name_is_free_by_then(world, refined):
    world.message(f"My theory: {THEORY}").call("state_theory", statement=THEORY)
    request = world.actor
    world.desk.delete(By("mara", "d", "d"), refined["id"], 2)
    world.actor = request
    world.call("state_theory", statement=THEORY)
    assert len(world.desk.list("mara", "theory")) == 1


@pytest.mark.parametrize("long", [False, True])
def test_a_statement_can_be_refined_and_stated_again_as_often_as_one_likes(world, long):
    statement = LONG if long else THEORY
    ids = set()
    for at in range(4):
        made = world.message(f"My theory: {statement}").call("state_theory", statement=statement)["stated"]
        assert world.call("state_theory", statement=statement)["stated"]["id"] == made["id"]
        with pytest.raises(ProfileConflict, match=made["id"]):
            world.message(f"My theory: {statement}").call("state_theory", statement=statement)
        ids.add(made["id"])
        world.message(f"Rather: Petra moved {at} keys.")
        world.call("refine_theory", id=made["id"], expected_version=1, statement=f"Petra moved {at} keys.")
    assert len(ids) == len(world.desk.list("mara", "theory")) == 4


def test_a_theory_that_is_to_be_deleted_is_shown_as_it_is_now(world, refined):
    world.message("Delete it.").call("delete_profile", id=refined["id"], expected_version=2)
    (asked,) = world.to_confirm
    assert (asked.kind, asked.name) == ("theory", "Petra moved the key to the boathouse.")


# --- theories that begin alike ---

LONG = "In the second season the keeper's daughter from the island was on the boat that night and nobody saw her"
DENIED = "In the second season the keeper's daughter from the island was not on the boat that night but in the town"


def test_theories_that_begin_alike_are_two_and_each_name_is_within_its_bound(world):
    first = world.message(f"My theory: {LONG}").call("state_theory", statement=LONG)["stated"]
    second = world.message(f"My theory: {DENIED}").call("state_theory", statement=DENIED)["stated"]
    assert first["id"] != second["id"]
    assert max(len(one["name"]) for one in (first, second)) <= 80
    assert world.desk.find("mara", second["name"], "theory").theory.statement == DENIED
    with pytest.raises(ProfileConflict, match=first["id"]):
        world.message(f"My theory: {LONG}").call("state_theory", statement=f"{LONG.upper()}.")


def test_evidence_that_was_gathered_for_one_is_none_for_the_other():
    world = World(line(1, f"{LONG}."))
    stated = world.message(f"My theory: {DENIED}").call("state_theory", statement=DENIED)["stated"]
    told = world.call("gather_evidence", statement=LONG)
    citations = [one["n"] for part in told["parts"] for one in part["for"]]
    assert citations
    with pytest.raises(ToolInvalid, match="gather_evidence"):
        world.call("record_verdict", id=stated["id"], expected_version=1, verdict="supported", citations=citations)


def test_case_and_the_mark_at_its_end_make_no_other_statement():
    weighed = found("Ilse moved the key to the boathouse before supper.")
    source = weighed.source.model_copy(update={"why": (reason_of(THEORY, weighed),)})
    assert gathered_for(THEORY.upper().rstrip("."), source).side == "for"
    assert gathered_for(f"{THEORY} Twice", source) is None


def test_a_listed_theory_can_be_cited_as_the_note_that_it_is(world, stated):
    world.message("Weigh it.")
    n = world.call("gather_evidence", id=stated["id"])["parts"][0]["for"][0]["n"]
    world.call("record_verdict", id=stated["id"], expected_version=1, verdict="supported", citations=[n])
    (listed,) = world.message("Which theories do I have?").call("list_theories")["theories"]
    (source,) = world.shelf.sources
    assert (listed["citation"], source.locator.kind, source.origin) == (1, "note", "profile")
    assert source.text == f"{THEORY}\nverdict on record: supported"


def test_so_many_listed_theories_are_cited_that_evidence_has_room(world):
    for at in range(15):
        world.message(f"My theory: Ilse hid {at} keys").call("state_theory", statement=f"Ilse hid {at} keys")
    listed = world.message("Which?").call("list_theories")["theories"]
    assert (len(listed), len(world.shelf.sources)) == (15, 12)
