"""Looking earlier answers up: what is given again, what is of use, and what is neither."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from cicada.breakers.dependencies import CACHE, verdict
from cicada.errors import CacheUnavailable, IndexMismatch, ModelUnavailable, OutOfTime
from cicada.semantic_cache.cache import MAX_BODIES_READ
from cicada.semantic_cache.decision import Thresholds, thresholds_of
from cicada.semantic_cache.entries import CachedAnswer, pack_body
from cicada.semantic_cache.entry_lists import OVERLAP_MS, HeldScopes
from tests.support.cache_store import InMemoryCacheStore
from tests.support.cached_answers import AngledEmbedder, Shelf
from tests.support.questions import NOW_S

LOCKED = "Who locked the boathouse?"
LOCKED_TOO = "Who was it that locked the boathouse?"
POLITELY = "Hello, could you tell me who locked the boathouse? Thanks!"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


class WrongLength(AngledEmbedder):
    def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
        return [[2.0] * self.dimensions for _ in texts]


# --- the decision ---


def test_a_question_that_asks_the_same_gets_the_earlier_answer_with_all_that_it_rests_on(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.embedder.cosines[POLITELY] = 0.9
    looked = shelf.look_up(POLITELY)
    assert (looked.use, looked.question, looked.text) == (
        "answer",
        LOCKED,
        "Mara says: “I locked the boathouse myself.” [1]",
    )
    assert looked.similarity == pytest.approx(0.9, abs=0.01)
    assert looked.answered_at_ms == NOW_S * 1000
    assert (looked.model_id, looked.stop_reason, looked.found) == ("model-a", "end_turn", 5)
    assert (looked.index_version, looked.compared) == ("000007-g", 1)
    assert [source.n for source in looked.sources] == [1, 2]
    assert looked.sources[0].text == "I locked the boathouse myself."
    assert looked.citations[0].verdict == "verified"


def test_sources_of_an_earlier_answer_say_that_the_cache_brought_them(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    assert {source.origin for source in shelf.look_up(LOCKED).sources} == {"cache"}


def test_a_question_that_is_near_but_not_near_enough_gets_the_contexts(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.embedder.cosines[LOCKED_TOO] = 0.75
    looked = shelf.look_up(LOCKED_TOO)
    assert (looked.use, looked.question) == ("contexts", LOCKED)


def test_a_question_that_is_far_is_a_miss_and_says_how_far(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.embedder.cosines["What is for dinner?"] = 0.3
    looked = shelf.look_up("What is for dinner?")
    assert (looked.use, looked.compared, looked.text, looked.sources) == ("miss", 1, "", ())
    assert looked.similarity == pytest.approx(0.3, abs=0.01)


def test_an_empty_cache_is_a_miss(shelf: Shelf) -> None:
    looked = shelf.look_up(LOCKED)
    assert (looked.use, looked.compared, looked.similarity) == ("miss", 0, 0.0)


@pytest.mark.parametrize(
    "question",
    [
        "Who didn't lock the boathouse?",
        "Why was the boathouse locked?",
        "Who unlocked the boathouse?",
        "Who locked the boathouse in episode 3?",
        "Who locked the boathouse for Tom?",
        "Whom did the boathouse lock?",
    ],
)
def test_however_near_another_question_is_its_answer_is_not_given_again(shelf: Shelf, question: str) -> None:
    shelf.keep(LOCKED)
    assert shelf.look_up(question).use != "answer"


@pytest.mark.parametrize(("told", "use"), [(True, "answer"), (False, "contexts")])
def test_a_model_may_confirm_that_a_near_question_asks_the_same(told: bool, use: str) -> None:
    asked: list[tuple[str, str]] = []

    def confirm(question: str, earlier: str, limits: object) -> bool:
        asked.append((question, earlier))
        return told

    shelf = Shelf(confirm=confirm)
    shelf.keep(LOCKED)
    shelf.keep("Who locked the boathouse in episode 3?")
    assert shelf.look_up(LOCKED_TOO).use == use
    assert asked == [(LOCKED_TOO, LOCKED)]
    assert shelf.look_up(LOCKED).use == "answer"
    shelf.embedder.cosines["Was it locked, the boathouse?"] = 0.75
    shelf.look_up("Was it locked, the boathouse?")
    assert len(asked) == 1  # neither for an equal question, nor for one that is not near enough


def test_contexts_are_of_use_only_if_they_speak_of_what_the_question_has_more(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    assert shelf.look_up("Who locked the boathouse when the bell rang?").use == "contexts"
    assert shelf.look_up("Who locked the boathouse when the siren rang?").use == "miss"


@pytest.mark.parametrize(
    ("told", "asked", "use"),
    [
        ("I sang during the evening", "Who locked the boathouse with a ring?", "miss"),
        ("I wore the ring in the evening", "Who locked the boathouse with a ring?", "contexts"),
        ("A ringleader was there", "Who locked the boathouse with a ring?", "miss"),
        ("The lanterns were out", "Who locked the boathouse with a lantern?", "contexts"),
        ("All was in candlelight there", "Who locked the boathouse in the light?", "miss"),
    ],
)
def test_words_are_found_at_the_beginning_of_words_and_short_ones_whole(
    shelf: Shelf, told: str, asked: str, use: str
) -> None:
    shelf.keep(LOCKED, f"{told} [1].")
    assert shelf.look_up(asked).use == use


def test_in_a_script_without_spaces_words_are_found_anywhere(shelf: Shelf) -> None:
    shelf.keep("誰が船を見た？", "彼女と古い鍵は塔にあった [1]。")
    assert shelf.look_up("誰が鍵と船を見た？").use == "contexts"
    assert shelf.look_up("誰が犬と船を見た？").use == "miss"


def test_an_equal_question_is_found_among_nearer_ones(shelf: Shelf) -> None:
    shelf.keep("What happens in episode 4?", "The fire [1].")
    shelf.keep("What happens in episode 3?", "The flood [1].")
    shelf.embedder.cosines["hi, what happens in Episode 3 please"] = 0.8
    looked = shelf.look_up("hi, what happens in Episode 3 please")
    assert (looked.use, looked.text, looked.compared) == ("answer", "The flood [1].", 2)


def test_a_completed_question_is_looked_up_as_it_was_completed(shelf: Shelf) -> None:
    shelf.keep("And who locked it?", completed=LOCKED)
    assert shelf.look_up("who did it", completed=LOCKED).use == "answer"
    assert shelf.embedder.texts == [LOCKED, LOCKED]


@pytest.mark.parametrize(
    ("model_id", "measured"),
    [
        ("local.all-minilm-l6-v2", True),
        ("amazon.titan-embed-text-v2:0", False),
        ("arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0", False),
        ("somebody.new-model", False),
    ],
)
def test_a_model_that_was_not_measured_gets_stricter_thresholds(model_id: str, measured: bool) -> None:
    thresholds = thresholds_of(model_id)
    assert thresholds.measured is measured
    assert measured or thresholds.replay > thresholds_of("local.all-minilm-l6-v2").replay
    assert thresholds.near < thresholds.replay


@pytest.mark.parametrize(("replay", "near"), [(0.7, 0.8), (1.1, 0.8), (0.9, -1.1)])
def test_thresholds_that_no_decision_can_be_made_by_are_refused(replay: float, near: float) -> None:
    with pytest.raises(ValueError, match="near <= replay"):
        Thresholds(replay, near)


def test_without_thresholds_those_of_the_embedding_model_hold() -> None:
    shelf = Shelf(thresholds=None)
    shelf.keep(LOCKED)
    shelf.embedder.cosines[LOCKED_TOO] = 0.9
    assert shelf.look_up(LOCKED_TOO).use == "contexts"


# --- scopes ---


@pytest.mark.parametrize(
    ("kept", "looked"),
    [
        ({"subject": "mara"}, {"subject": "tom"}),
        ({}, {"collections": ("manual",)}),
        ({}, {"episodes": ("ep1",)}),
        ({}, {"documents": ("a.md",)}),
        ({"documents": ("a.md",)}, {"sections": ("a.md",)}),
        ({"collections": ("manual",)}, {"collections": ("manual", "script")}),
    ],
)
def test_questions_of_another_user_or_with_other_filters_share_nothing(
    shelf: Shelf, kept: dict[str, Any], looked: dict[str, Any]
) -> None:
    shelf.keep(LOCKED, **kept)
    assert shelf.look_up(LOCKED, **looked).compared == 0
    assert shelf.look_up(LOCKED, **kept).use == "answer"


def test_the_order_of_filters_makes_no_difference(shelf: Shelf) -> None:
    shelf.keep(LOCKED, episodes=("ep2", "ep1"))
    assert shelf.look_up(LOCKED, episodes=("ep1", "ep2", "ep1")).use == "answer"


def test_a_new_version_of_the_corpus_makes_old_answers_unreachable(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    assert shelf.look_up(LOCKED, "000008-h").compared == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt_version": "p2"},
        {"generation_model_id": "model-b"},
        {"embedder": AngledEmbedder("test.other")},
        {"embedder": AngledEmbedder(dimensions=16)},
        {"sharing": "deployment"},
    ],
)
def test_another_prompt_model_or_sharing_makes_old_answers_unreachable(shelf: Shelf, changed: dict[str, Any]) -> None:
    shelf.keep(LOCKED)
    assert Shelf(shelf.store, **changed).look_up(LOCKED).compared == 0


def test_a_question_in_another_language_is_not_compared(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    assert shelf.look_up("Wer hat das Bootshaus abgeschlossen, und warum ist es nicht offen?").compared == 0


def test_a_tenants_answers_are_shared_among_its_users_and_with_nobody_else() -> None:
    shelf = Shelf(sharing="tenant")
    shelf.keep(LOCKED, subject="mara", tenant="guild")
    assert shelf.look_up(LOCKED, subject="tom", tenant="guild").use == "answer"
    assert shelf.look_up(LOCKED, subject="tom", tenant="other").compared == 0


def test_without_a_tenant_answers_stay_with_their_user_whatever_the_tenants_are_called() -> None:
    shelf = Shelf(sharing="tenant")
    shelf.keep(LOCKED, subject="mara")
    assert shelf.look_up(LOCKED, subject="mara").use == "answer"
    assert shelf.look_up(LOCKED, subject="tom").compared == 0
    assert shelf.look_up(LOCKED, subject="tom", tenant="mara").compared == 0


def test_one_subject_of_two_tenants_is_two_users(shelf: Shelf) -> None:
    shelf.keep(LOCKED, subject="mara", tenant="guild")
    assert shelf.look_up(LOCKED, subject="mara", tenant="other").compared == 0
    assert shelf.look_up(LOCKED, subject="mara").compared == 0
    assert shelf.look_up(LOCKED, subject="mara", tenant="guild").use == "answer"


@pytest.mark.parametrize("sharing", ["tenant", "deployment"])
def test_a_question_completed_from_a_conversation_stays_with_who_asked_it(sharing: str) -> None:
    shelf = Shelf(sharing=sharing)
    shelf.keep("And who locked it?", completed=LOCKED, subject="mara", tenant="guild")
    assert shelf.look_up(LOCKED, subject="tom", tenant="guild").compared == 0
    assert shelf.look_up("Who did?", completed=LOCKED, subject="tom", tenant="guild").compared == 0
    assert shelf.look_up("Who did?", completed=LOCKED, subject="mara", tenant="guild").use == "answer"


def test_a_whole_deployment_can_share() -> None:
    shelf = Shelf(sharing="deployment")
    shelf.keep(LOCKED, subject="mara", tenant="guild")
    assert shelf.look_up(LOCKED, subject="tom").use == "answer"


# --- time and space ---


def test_an_answer_is_gone_after_its_time_whether_it_is_still_stored_or_not(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.now_s += 3599
    assert shelf.look_up(LOCKED).use == "answer"
    shelf.now_s += 1
    assert shelf.look_up(LOCKED).compared == 0
    assert Shelf(shelf.store).look_up(LOCKED).use == "answer"  # its clock still shows the earlier time
    late = Shelf(shelf.store)
    late.now_s = shelf.now_s
    assert late.look_up(LOCKED).compared == 0


def test_the_newest_answers_stay_and_older_ones_are_deleted() -> None:
    shelf = Shelf(max_entries=3)
    for number in range(5):
        shelf.now_s += 60
        shelf.keep(f"What happens in episode {number}?")
    (entries,) = shelf.store.entries_of.values()
    assert sorted(entry.question for entry in entries.values()) == [f"What happens in episode {n}?" for n in (2, 3, 4)]
    assert len(shelf.store.bodies) == 3
    assert shelf.look_up("What happens in episode 1?").use == "miss"
    assert shelf.look_up("What happens in episode 4?").use == "answer"


def test_a_warm_worker_reads_what_is_newer_and_nothing_else(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.look_up("What is for dinner?")
    other = Shelf(shelf.store)
    other.now_s += 60
    other.keep("What happens in episode 3?", "The flood [1].")
    shelf.store.calls.clear()
    assert shelf.look_up("What happens in episode 3?").text == "The flood [1]."
    assert shelf.store.calls == ["entries", "body"]


def test_an_entry_that_appears_late_among_older_ones_is_found(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    slow = Shelf(shelf.store)
    slow.now_s -= (OVERLAP_MS - 1000) / 1000
    slow.keep("What happens in episode 3?")
    assert shelf.look_up("What happens in episode 3?").use == "answer"


# --- damage and faults ---


def test_an_entry_without_a_body_is_passed_over_and_forgotten(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    shelf.store.bodies.clear()
    assert shelf.look_up(LOCKED).use == "miss"
    assert shelf.look_up(LOCKED).compared == 0


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no json", "another question's"])
def test_a_damaged_body_is_a_miss(shelf: Shelf, damage: str) -> None:
    shelf.keep(LOCKED)
    ((key, body),) = shelf.store.bodies.items()
    other = CachedAnswer(question="?", text="", sources=(), citations=(), model_id="", stop_reason="", found=0)
    shelf.store.bodies[key] = {
        "cut": body[: len(body) // 2],
        "flipped": body[:20] + bytes([body[20] ^ 255]) + body[21:],
        "empty": b"",
        "no json": pack_body(other)[::-1],
        "another question's": pack_body(other),
    }[damage]
    assert shelf.look_up(LOCKED).use == "miss"


def test_another_entry_serves_where_the_best_ones_body_is_gone(shelf: Shelf) -> None:
    shelf.keep(LOCKED_TOO, "From the older one [1].")
    shelf.now_s += 60
    shelf.keep(LOCKED, "From the newer one [1].")
    shelf.embedder.cosines[LOCKED_TOO] = 0.95
    shelf.store.bodies = {key: body for key, body in shelf.store.bodies.items() if "00000000" in key[1]}
    assert shelf.look_up(LOCKED).text == "From the older one [1]."


def test_a_look_up_reads_a_few_bodies_at_most(shelf: Shelf) -> None:
    questions = (
        LOCKED,
        LOCKED_TOO,
        "Who was it that locked the boathouse?",
        "Please tell me who locked the boathouse",
        "Who locks the boathouse?",
    )
    for number, question in enumerate(questions):
        shelf.now_s += number
        shelf.keep(question)
    shelf.store.bodies.clear()
    shelf.store.calls.clear()
    assert shelf.look_up(LOCKED).use == "miss"
    assert shelf.store.calls.count("body") == MAX_BODIES_READ


def test_a_vector_of_another_length_is_left_out(shelf: Shelf) -> None:
    shelf.keep(LOCKED)
    ((digest, entries),) = shelf.store.entries_of.items()
    shelf.store.entries_of[digest] = {name: replace(entry, vector=b"\x01") for name, entry in entries.items()}
    assert Shelf(shelf.store).look_up(LOCKED).compared == 0


def test_a_store_that_is_down_is_a_failure_of_the_cache(shelf: Shelf) -> None:
    shelf.store.down = True
    with pytest.raises(CacheUnavailable):
        shelf.look_up(LOCKED)


def test_a_question_that_cannot_be_embedded_is_the_models_failure(shelf: Shelf) -> None:
    shelf.embedder.down = True
    with pytest.raises(ModelUnavailable):
        shelf.look_up(LOCKED)


def test_vectors_of_no_use_are_no_failure_of_the_cache() -> None:
    with pytest.raises(IndexMismatch) as raised:
        Shelf(embedder=WrongLength()).look_up(LOCKED)
    assert verdict(CACHE, raised.value) == "nothing"


def test_nothing_is_read_after_the_time_is_up() -> None:
    class Slow(AngledEmbedder):
        def embed(self, texts: Any, *, time_budget_s: float) -> list[list[float]]:
            slow.monotonic_s += time_budget_s
            return super().embed(texts, time_budget_s=time_budget_s)

    slow = Shelf(embedder=Slow())
    with pytest.raises(OutOfTime) as raised:
        slow.look_up(LOCKED)
    assert slow.store.calls == []
    assert verdict(CACHE, raised.value) == "nothing"  # the store was not even asked


def test_no_body_is_read_after_the_time_is_up(shelf: Shelf) -> None:
    shelf.keep(LOCKED)

    class Slow(InMemoryCacheStore):
        def entries(self, scope: str, *, after: str, limit: int) -> Any:
            late.monotonic_s += 2
            return shelf.store.entries(scope, after=after, limit=limit)

    late = Shelf(Slow())
    with pytest.raises(OutOfTime):
        late.look_up(LOCKED)


# --- several threads ---


def test_threads_that_keep_and_look_up_at_once_see_whole_answers() -> None:
    shelf = Shelf(max_entries=40)
    start = threading.Barrier(4)

    def work(worker: int) -> list[bool]:
        start.wait()
        seen: list[bool] = []
        for number in range(25):
            question = f"What happens in episode {worker * 100 + number}?"
            shelf.keep(question, f"Flood {number} drowned village {worker} [1].")
            looked = shelf.look_up(question)
            if looked.use == "answer":
                text = f"Flood {number} drowned village {worker} [1]."
                seen.append((looked.text, looked.question) == (text, question))
        return seen

    with ThreadPoolExecutor(4) as pool:
        outcomes = [one for seen in pool.map(work, range(4)) for one in seen]
    assert outcomes
    assert all(outcomes)
    (entries,) = shelf.store.entries_of.values()
    assert set(entries) <= {entry_id for _, entry_id in shelf.store.bodies}


def test_a_look_up_tells_no_log_what_was_asked(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        shelf.keep(LOCKED)
        shelf.store.bodies = dict.fromkeys(shelf.store.bodies, b"damaged")
        shelf.look_up(LOCKED)
    assert caplog.records
    assert "boathouse" not in " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)


def test_only_what_was_asked_lately_stays_in_memory() -> None:
    scopes = HeldScopes(4, max_scopes=2)
    first, second = scopes.of("a"), scopes.of("b")
    assert scopes.of("a") is first
    scopes.of("c")
    assert scopes.of("a") is first
    assert scopes.of("b") is not second
