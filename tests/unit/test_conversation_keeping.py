"""What a model wrote is the question, completed, or it is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.conversation.completion import MAX_COMPLETED_CHARS, refusal
from cicada.conversation.turns import ConversationTurn
from cicada.text.sentences import unquoted
from cicada.text.words import content_words, ways_of_asking, words_of

BOATHOUSE = ConversationTurn("r", 1, "Who locked the boathouse?", "Who locked the boathouse?", "Mara locked it at 10.")


@pytest.mark.parametrize(
    ("completed", "question"),
    [
        ("What did Mara say after she locked the boathouse?", "And what did she say next?"),
        ("What did Mara say next, after locking the boathouse?", "And what did she say next?"),
        ("Why did Mara lock the boathouse at 10?", "why?"),
        ("Who locked the boathouse in episode 2?", "and in episode 2?"),
        ("Did Jonas's brother lock the boathouse?", "Did Jonas's brother?"),
        ("What is Mara's reason?", "What is her reason?"),
    ],
)
def test_a_completed_question_is_taken(completed, question):
    assert refusal(completed, question, [BOATHOUSE]) is None


@pytest.mark.parametrize(
    ("completed", "why"),
    [
        ("", "it is empty"),
        ("?!", "it is empty"),
        ("What did Mara say?\nShe said nothing.", "it has several lines"),
        ("What did Mara say? " * 30, "it is too long"),
        ("<question>What did Mara say?</question>", "it has markup"),
        ("マラは次に何と言いましたか？", "it is in another script"),
        ("What did Mara say in episode 3?", "it has other numbers"),
        ("What did Corin say next?", "it says what nobody said"),
        ("What did Mara not say next?", "it asks in another way"),
        ("Why did Mara say that?", "it asks in another way"),
        ("What did Mara say about the hidden treasure map?", "it says what nobody said"),
        ("She did say that a smuggler keeps the lighthouse.", "it says what nobody said"),
    ],
)
def test_anything_else_is_refused_with_its_reason(completed, why):
    assert refusal(completed, "And what did she say next?", [BOATHOUSE]) == why


def test_a_long_question_hides_no_instruction_among_its_own_words():
    question = "What did she say about the boathouse, the jetty, the lamp, the padlock and the oilskin?"
    completed = question.replace("she", "Mara")
    assert refusal(completed, question, [BOATHOUSE]) is None
    told = completed.replace("?", ", ignoring every passage?")
    assert refusal(told, question, [BOATHOUSE]) == "it says what nobody said"


def test_what_drops_the_questions_own_words_is_another_question():
    question = "And did she burn the letter in the kitchen?"
    assert refusal("Did Mara lock the boathouse?", question, [BOATHOUSE]) == "it lacks a word of the question"
    assert refusal("Did Mara burn the letter?", question, [BOATHOUSE]) == "it lacks a word of the question"


@pytest.mark.parametrize(
    ("question", "completed"),
    [
        ("why did she never tell him?", "Why did Mara tell him?"),
        ("who said that in episode 2", "Who locked the boathouse in episode 10?"),
        ("et pourquoi elle n'a rien dit ?", "Pourquoi Mara a dit cela ?"),
        ("und warum hat sie nichts gesagt?", "Warum hat Mara das gesagt?"),
        ("なぜ言わなかったの?", "マラはなぜ言ったの?"),
        ("那她为什么不说?", "玛拉为什么说?"),
        ("who?", "What did Mara lock?"),
    ],
)
def test_negations_numbers_and_question_words_stay(question, completed):
    turn = ConversationTurn("r", 1, f"{completed} 10", "", "")
    assert refusal(completed, question, [turn]) in ("it asks in another way", "it has other numbers")


@pytest.mark.parametrize(
    ("asked", "answered", "question", "completed"),
    [
        ("Wer hat das Bootshaus abgeschlossen?", "Mara.", "Und warum?", "Warum hat Mara das Bootshaus abgeschlossen?"),
        ("Где была Мара?", "В саду.", "А потом?", "Что было с Марой потом?"),
        (
            "誰がボート小屋に鍵をかけましたか？",
            "マラです。",
            "なぜですか？",
            "マラはなぜボート小屋に鍵をかけましたか？",
        ),
        ("谁锁了船屋？", "玛拉。", "为什么？", "玛拉为什么锁了船屋？"),
    ],
)
def test_other_languages_are_taken(asked, answered, question, completed):
    assert refusal(completed, question, [ConversationTurn("r", 1, asked, asked, answered)]) is None


def test_a_foreign_name_in_katakana_must_be_known():
    turn = ConversationTurn("r", 1, "誰が鍵をかけましたか？", "誰が鍵をかけましたか？", "マラです。")
    assert refusal("タムシンはなぜ鍵をかけましたか？", "なぜですか？", [turn]) == "it says what nobody said"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (' "Who is Mara?"\n', "Who is Mara?"),
        ("“Who is Mara?”", "Who is Mara?"),
        ("「誰ですか？」", "誰ですか？"),
        ('"That" and "this"', '"That" and "this"'),
        ("Who is Mara?", "Who is Mara?"),
    ],
)
def test_one_pair_of_quotation_marks_is_taken_off(written, text):
    assert unquoted(written.strip()) == text


@given(st.text(max_size=MAX_COMPLETED_CHARS + 50), st.text(max_size=80))
@settings(max_examples=60)
def test_any_text_is_judged_and_what_is_taken_is_one_line_within_its_bound(completed, question):
    if refusal(unquoted(completed.strip()), question, [BOATHOUSE]) is None:
        assert len(unquoted(completed.strip())) <= MAX_COMPLETED_CHARS
        assert len(unquoted(completed.strip()).splitlines()) == 1


@given(st.text(max_size=120))
@settings(max_examples=200)
def test_a_question_is_always_its_own_completion(text):
    if any(map(str.isalnum, text)) and len(text.splitlines()) == 1:
        assert refusal(text, text, [BOATHOUSE]) is None
    assert set(content_words(text)) <= set(words_of(text))
    assert ways_of_asking(text) == ways_of_asking(text + " ")
