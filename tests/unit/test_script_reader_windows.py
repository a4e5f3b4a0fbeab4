"""From messages to passages: what is cited, and what is embedded with it."""

from __future__ import annotations

from dataclasses import replace

from cicada.corpus.indexable import Indexable, WeightedText
from cicada.corpus.messages import Message
from cicada.corpus.windows import DEFAULT_WINDOW, Window, passages


def script(*places: str, **texts_of_all: str) -> list[Message]:
    """A message a place (``episode/chapter``), each saying its own number."""
    return [
        Message(
            episode_id=place.split("/")[0],
            episode_name=place.split("/")[0].upper(),
            chapter_id=place.split("/")[1],
            message_id=f"m{number}",
            speaker="AB"[number % 2],
            texts={"ENG": f"line {number}", **texts_of_all},
            metadata={"day": "1"},
        )
        for number, place in enumerate(places)
    ]


def made(messages: list[Message], window: Window = DEFAULT_WINDOW) -> dict[str, Indexable]:
    return {item.passage.id: item for item in passages("script", messages, window)}


def contexts(messages: list[Message], window: Window) -> list[str]:
    return [item.passage.context for item in made(messages, window).values()]


def test_a_passage_cites_its_own_message_and_shows_its_neighbours_as_context():
    items = made(script(*["e1/c1"] * 5), Window(reach=1))
    assert [item.passage.text for item in items.values()] == [f"line {n}" for n in range(5)]
    assert items["m2"].passage.context == "B: line 1\nA: line 2\nB: line 3"
    assert items["m0"].passage.context == "A: line 0\nB: line 1"
    assert items["m4"].passage.context == "B: line 3\nA: line 4"
    assert items["m2"].passage.locator.label() == "E1 · c1 · m2 · A"
    assert items["m2"].passage.metadata == {"day": "1"}


def test_a_vector_is_made_of_the_message_and_a_fading_share_of_its_neighbours():
    items = made(script(*["e1/c1"] * 5), Window(reach=2, fade=0.5))
    assert items["m2"].parts == (
        WeightedText("A: line 2", 1.0),
        WeightedText("B: line 1", 0.5),
        WeightedText("B: line 3", 0.5),
        WeightedText("A: line 0", 0.25),
        WeightedText("A: line 4", 0.25),
    )
    assert items["m0"].parts == (
        WeightedText("A: line 0", 1.0),
        WeightedText("B: line 1", 0.5),
        WeightedText("A: line 2", 0.25),
    )


def test_neighbours_are_of_the_same_chapter_and_episode():
    wide = Window(reach=5)
    messages = script("e1/c1", "e1/c1", "e1/c2", "e2/c2")
    assert contexts(messages, wide) == ["A: line 0\nB: line 1", "A: line 0\nB: line 1", "A: line 2", "B: line 3"]
    assert [len(item.parts) for item in made(messages, wide).values()] == [2, 2, 1, 1]


def test_the_nearest_neighbours_come_into_the_context_first_and_the_message_itself_always():
    messages, line = script(*["e1/c1"] * 5), len("A: line 0")
    assert contexts(messages, Window(max_context_chars=3 * line + 2))[2] == "B: line 1\nA: line 2\nB: line 3"
    assert contexts(messages, Window(max_context_chars=2 * line + 1))[2] == "B: line 1\nA: line 2"
    assert contexts(messages, Window(max_context_chars=1))[2] == "A: line 2"


def test_each_language_is_a_passage_of_its_own_that_cites_the_same_message():
    items = made(script("e1/c1", "e1/c1", JPN="行"))
    english, japanese = items["m0"].passage, items["m0#jpn"].passage
    assert english.locator == japanese.locator
    assert japanese.text == "行"
    assert japanese.context == "A: 行\nB: 行"
    assert japanese.metadata == {"day": "1", "language": "JPN"}
    assert "language" not in english.metadata


def test_neighbours_are_of_the_same_language():
    messages = [script("e1/c1", "e1/c1", JPN="行")[0], script("e1/c1", "e1/c1")[1]]
    items = made(messages)
    assert items["m0#jpn"].passage.context == "A: 行"
    assert items["m0#jpn"].parts == (WeightedText("A: 行", 1.0),)
    assert items["m0"].passage.context == "A: line 0\nB: line 1"


def test_a_recipe_changes_with_the_parts_and_with_nothing_else():
    before = made(script(*["e1/c1"] * 8))
    changed = script(*["e1/c1"] * 8)
    changed[3] = replace(changed[3], texts={"ENG": "something else"}, metadata={"day": "2"})
    after = made(changed)
    assert [name for name in before if before[name].recipe() != after[name].recipe()] == ["m1", "m2", "m3", "m4", "m5"]
    assert before["m3"].recipe() != made(script(*["e1/c1"] * 8), Window(fade=0.4))["m3"].recipe()
