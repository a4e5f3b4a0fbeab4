"""What is said without passages."""

from __future__ import annotations

import pytest

from cicada_local.bedrock.extractive.prompt import NumberedPassage
from cicada_local.bedrock.extractive.small_talk import small_talk


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("hi", "Hello!"),
        ("Good morning, Cicada!", "Hello!"),
        ("こんにちは", "こんにちは。"),
        ("thanks a lot for your help", "You are welcome!"),
        ("Danke dir!", "Gern geschehen!"),
        ("ありがとうございます", "どういたしまして"),
        ("muchas gracias por tu ayuda", "¡De nada!"),
        ("merci beaucoup", "Je vous en prie"),
        ("what is in here?", "I am Cicada."),
        ("which documents do you have", "I am Cicada."),
        ("bye for now", "Goodbye!"),
        ("Have a nice day", "Goodbye!"),
        ("Hi, how are you today?", "I am well"),
        ("Hello, who are you?", "I am Cicada."),
        ("what can I ask you", "I am Cicada."),
        ("What’s your name?", "I am Cicada."),
        ("help!", "I am Cicada."),
        ("ok, great", "Good."),
    ],
)
def test_courtesies_are_returned(message: str, reply: str) -> None:
    assert small_talk(message).startswith(reply)


@pytest.mark.parametrize(
    "message",
    [
        "When does Petra say goodbye?",
        "When do they say goodbye?",
        "Thanks, and where is the key?",
        "Who are you talking about in chapter 2?",
        "hello world programs in the script",
        "Explain the ending to me.",
        "What is in it?",
        "鍵はどこですか",
        "",
        "?!",
    ],
)
def test_anything_else_is_not_answered_without_the_script(message: str) -> None:
    assert small_talk(message) == ""


def test_who_asks_what_is_there_is_told_the_sources_of_the_prompt() -> None:
    passages = [
        NumberedPassage(1, "…", title="The Keeper's Manual"),
        NumberedPassage(2, "…", title="The Keeper's Manual"),
        NumberedPassage(3, "…", episode="The [First] Night"),
    ]
    told = small_talk("What can I ask?", passages)
    assert told == "Among the sources here:\n- The Keeper's Manual [1]\n- The First Night [3]"
    assert small_talk("Was kannst du?", passages).startswith("Unter anderem sind hier:\n- The Keeper's Manual [1]")
    assert small_talk("thanks", passages).startswith("You are welcome!")


def test_one_more_word_is_allowed_where_nothing_was_searched_for() -> None:
    assert small_talk("thanks, that helped")
    assert not small_talk("thanks, that helped", [NumberedPassage(1, "…")])
    assert not small_talk("thanks for the boathouse key")
    assert not small_talk("thanks, boathouse?")
