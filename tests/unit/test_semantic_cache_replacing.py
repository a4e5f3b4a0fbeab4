"""How kept answers give way to newer ones, and how few of them are kept."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from cicada.retrieval.ports import Unlimited
from cicada.semantic_cache.cache import SURPLUS_DELETED
from cicada.semantic_cache.entries import CachedAnswer, CacheEntry, pack_body, pack_vector, unpack_body
from cicada.semantic_cache.entry_lists import HeldScope, HeldScopes
from tests.support.cache_store import InMemoryCacheStore
from tests.support.cached_answers import VERSION, Shelf, asked

LOCKED = "Who locked the boathouse?"
LOCKED_TOO = "Sorry, who locked the boathouse, please?"
OLD, NEW = "Mara says: “The old text.” [1]", "Mara says: “The new text.” [1]"
NEVER_S = 2**40


@pytest.fixture
def shelf() -> Shelf:
    shelf = Shelf()
    shelf.keep(LOCKED, OLD)
    shelf.now_s += 60
    return shelf


def entry(number: int, question: str = "", *, vector: bytes = b"\x7f\x00\x00\x00") -> CacheEntry:
    return CacheEntry(f"{number:013d}-aa", question or f"What is {number}?", vector, number, NEVER_S)


def kept_at(shelf: Shelf) -> list[str]:
    return [one.question for entries in shelf.store.entries_of.values() for one in entries.values()]


def test_a_newer_answer_takes_the_place_of_the_older_to_the_same_question(shelf: Shelf) -> None:
    shelf.keep("who locked the boathouse?", NEW)
    assert (shelf.look_up(LOCKED).text, shelf.look_up(LOCKED).compared) == (NEW, 1)
    assert kept_at(shelf) == ["who locked the boathouse?"]
    assert len(shelf.store.bodies) == 1


def test_an_answer_about_a_power_takes_the_place_of_none_about_a_number(shelf: Shelf) -> None:
    for question, answer in (("What is 102?", OLD), ("What is 10²?", NEW)):
        shelf.keep(question, answer)
    assert {"What is 102?", "What is 10²?"} <= set(kept_at(shelf))
    assert (shelf.look_up("what is 102").text, shelf.look_up("what is 10²").text) == (OLD, NEW)


def test_an_older_answer_that_comes_late_does_not(shelf: Shelf) -> None:
    shelf.keep(LOCKED, NEW)
    shelf.keep(LOCKED, OLD, at_ms=int(shelf.now_s - 30) * 1000)
    assert shelf.look_up(LOCKED).text == NEW
    assert len(shelf.store.bodies) == 1


def test_of_two_that_are_kept_at_once_the_newest_is_found_by_everybody(shelf: Shelf) -> None:
    class Meets(InMemoryCacheStore):
        """A store where another worker keeps an answer just before this one's is put."""

        def put(self, scope: str, entry: CacheEntry, body: bytes, *, owner: str) -> None:
            other.keep(LOCKED, NEW, at_ms=int(shelf.now_s * 1000) + 5)
            shelf.store.put(scope, entry, body, owner=owner)

        def entries(self, scope: str, *, after: str, limit: int) -> list[CacheEntry]:
            return shelf.store.entries(scope, after=after, limit=limit)

        def body(self, scope: str, entry_id: str) -> bytes | None:
            return shelf.store.body(scope, entry_id)

    one, other = Shelf(Meets()), Shelf(shelf.store)
    one.now_s = shelf.now_s
    one.keep(LOCKED, "The text in between [1].")
    assert len(shelf.store.bodies) > 1
    for reader in (one, other, Shelf(shelf.store)):
        assert (reader.look_up(LOCKED).text, reader.look_up(LOCKED).compared) == (NEW, 1)


def test_of_questions_that_are_as_near_the_newest_is_answered(shelf: Shelf) -> None:
    shelf.keep(LOCKED_TOO, NEW)
    assert shelf.look_up("Please tell me who locked the boathouse").text == NEW


@pytest.mark.parametrize("damage", ["gone", "unreadable"])
def test_the_next_answer_takes_the_place_of_one_that_cannot_be_read(shelf: Shelf, damage: str) -> None:
    ((key, _),) = shelf.store.bodies.items()
    shelf.store.bodies = {} if damage == "gone" else {key: b"damaged"}
    other = Shelf(shelf.store)
    other.now_s = shelf.now_s
    assert shelf.look_up(LOCKED).use == "miss"
    other.keep(LOCKED, NEW)  # by a worker that has not seen the damage
    assert shelf.look_up(LOCKED).text == NEW
    assert len(kept_at(shelf)) == 1


def no_longer_holding(shelf: Shelf) -> None:
    """Change what the kept passages say, so that the citations of then do not hold any more."""
    ((key, data),) = shelf.store.bodies.items()
    body = unpack_body(data)
    sources = tuple(source.model_copy(update={"text": "Nobody was there."}) for source in body.sources)
    shelf.store.bodies[key] = pack_body(body.model_copy(update={"sources": sources}))


def test_an_answer_whose_citations_do_not_hold_any_more_gives_way_to_the_next(shelf: Shelf) -> None:
    no_longer_holding(shelf)
    assert shelf.look_up(LOCKED).use == "miss"
    shelf.keep(LOCKED, NEW)
    assert shelf.look_up(LOCKED).text == NEW
    assert len(shelf.store.bodies) == 1


def test_an_answer_that_holds_serves_where_a_nearer_one_does_not(shelf: Shelf) -> None:
    no_longer_holding(shelf)
    shelf.keep(LOCKED_TOO, NEW)
    shelf.embedder.cosines["Who was it that locked the boathouse?"] = 0.9
    assert shelf.look_up(LOCKED).text == NEW


def test_an_answer_that_was_never_grounded_is_not_given_again(shelf: Shelf) -> None:
    ((key, _),) = shelf.store.bodies.items()
    bare = CachedAnswer(
        question=LOCKED, text=OLD, sources=(), citations=(), model_id="m", stop_reason="end_turn", found=0
    )
    shelf.store.bodies[key] = pack_body(bare)
    assert shelf.look_up(LOCKED).use == "miss"


# --- how many ---


def test_a_lower_bound_comes_true_as_new_answers_come() -> None:
    shelf = Shelf(max_entries=50)
    for number in range(40):
        shelf.now_s += 60
        shelf.keep(f"What happens in episode {number}?")
    fewer = Shelf(shelf.store, max_entries=3)
    fewer.now_s = shelf.now_s
    sizes = []
    for number in range(100, 103):
        fewer.now_s += 60
        fewer.keep(f"What happens in episode {number}?")
        sizes.append(len(kept_at(shelf)))
    assert sizes == [41 - SURPLUS_DELETED, 3, 3]
    assert sorted(kept_at(shelf)) == [f"What happens in episode {number}?" for number in (100, 101, 102)]
    assert len(shelf.store.bodies) == 3


def test_nothing_is_deleted_below_the_bound() -> None:
    shelf = Shelf(max_entries=3)
    for number in range(2):
        shelf.keep(f"What happens in episode {number}?")
    assert {"older", "delete"}.isdisjoint(shelf.store.calls)


# --- in memory ---


def test_what_is_held_has_no_packed_vectors_and_one_entry_a_question() -> None:
    held = HeldScope(4)
    held.add([entry(2, LOCKED), entry(1, LOCKED.upper()), entry(3)], keep=10, now_s=0)
    assert held.snapshot.entries == (replace(entry(2, LOCKED), vector=b""), replace(entry(3), vector=b""))
    held.add([entry(1, LOCKED.upper())], keep=10, now_s=0)  # read again, before it is deleted
    assert len(held.snapshot.entries) == 2


def test_entries_of_one_cosine_come_newest_first() -> None:
    held = HeldScope(4)
    held.add([entry(number) for number in range(20)], keep=20, now_s=0)
    nearest = held.snapshot.nearest(np.array([1, 0, 0, 0], np.float32), limit=3, now_s=0)
    assert [one.answered_at_ms for one, _ in nearest] == [19, 18, 17]


def test_the_memory_that_is_counted_is_about_what_is_taken() -> None:
    vectors = np.random.default_rng(7).normal(size=(300, 384)).astype(np.float32)
    held = HeldScope(384)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        entries = [entry(at, f"{'q' * 80}{at}", vector=pack_vector(row)) for at, row in enumerate(vectors)]
        held.add(entries, keep=300, now_s=0)
        del entries
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.8 < held.snapshot.size_bytes / (after - before) < 1.25


def test_entries_count_where_memory_is_bounded() -> None:
    scopes = HeldScopes(4, max_bytes=3_000)
    first = scopes.of("a")
    first.add([entry(number) for number in range(10)], keep=10, now_s=0)
    assert first.snapshot.matrix.nbytes < 200
    scopes.of("b")
    assert scopes.of("a") is not first


def test_what_is_left_out_of_a_look_up_is_told(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    shelf.cache.look_up(asked(LOCKED, top_k=3), VERSION, Unlimited(), time_budget_s=1.0)
    told = [record for record in caplog.records if record.message == "earlier answers looked up"]
    assert [(record.__dict__["outcome"], record.__dict__["why"]) for record in told] == [("miss", "its own topK")]
