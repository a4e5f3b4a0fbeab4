"""From messages to passages: what is cited, and what is embedded with it."""

from __future__ import annotations

from cicada.corpus.messages import Message
from cicada.corpus.windows import Window, passages


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


def contexts(messages: list[Message], window: Window) -> list[str]:
    return [passage.context for passage in passages("script", messages, window)]


def test_a_passage_cites_its_own_message_and_embeds_its_neighbours_too():
    made = list(passages("script", script(*["e1/c1"] * 5), Window(before=2, after=1)))
    assert [passage.text for passage in made] == [f"line {n}" for n in range(5)]
    assert made[2].context == "A: line 0\nB: line 1\nA: line 2\nB: line 3"
    assert made[0].context == "A: line 0\nB: line 1"
    assert made[4].context == "A: line 2\nB: line 3\nA: line 4"
    assert made[2].locator.label() == "E1 · c1 · m2 · A"
    assert made[2].metadata == {"day": "1"}


def test_neighbours_are_of_the_same_chapter_and_episode():
    wide = Window(before=5, after=5)
    assert contexts(script("e1/c1", "e1/c1", "e1/c2", "e2/c2"), wide) == [
        "A: line 0\nB: line 1",
        "A: line 0\nB: line 1",
        "A: line 2",
        "B: line 3",
    ]


def test_the_nearest_neighbours_come_in_first_and_the_message_itself_always():
    line = len("A: line 0")
    assert (
        contexts(script(*["e1/c1"] * 5), Window(2, 2, max_chars=3 * line + 2))[2] == "B: line 1\nA: line 2\nB: line 3"
    )
    assert contexts(script(*["e1/c1"] * 5), Window(2, 2, max_chars=2 * line + 1))[2] == "B: line 1\nA: line 2"
    assert contexts(script(*["e1/c1"] * 5), Window(2, 2, max_chars=1))[2] == "A: line 2"


def test_each_language_is_a_passage_of_its_own_that_cites_the_same_message():
    messages = script("e1/c1", "e1/c1", JPN="行")
    english, japanese = (list(passages("script", messages))[at] for at in (0, 2))
    assert (english.id, japanese.id) == ("m0", "m0#jpn")
    assert english.locator == japanese.locator
    assert japanese.text == "行"
    assert japanese.context == "A: 行\nB: 行"
    assert japanese.metadata == {"day": "1", "language": "JPN"}
    assert "language" not in english.metadata


def test_a_window_skips_messages_that_lack_its_language():
    bilingual, plain = script("e1/c1", "e1/c1", JPN="行")[0], script("e1/c1", "e1/c1")[1]
    made = {passage.id: passage.context for passage in passages("script", [bilingual, plain])}
    assert made["m0#jpn"] == "A: 行"
    assert made["m0"] == "A: line 0\nB: line 1"
