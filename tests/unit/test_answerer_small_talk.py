"""What is said without passages."""

from __future__ import annotations

import pytest

from cicada_local.bedrock.extractive.small_talk import CANNOT_CONSULT, small_talk


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("hi", "Hello!"),
        ("Good morning, Cicada!", "Hello!"),
        ("こんにちは", "Hello!"),
        ("thanks a lot for your help", "You are welcome!"),
        ("Danke!", "You are welcome!"),
        ("ありがとうございます", "You are welcome!"),
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
        "鍵はどこですか",
        "",
        "?!",
    ],
)
def test_anything_else_is_not_answered_without_the_script(message: str) -> None:
    assert small_talk(message) == CANNOT_CONSULT
