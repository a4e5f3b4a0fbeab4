"""A completed question still asks what the asker asked: whatever changes that is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.answering.conversation.fidelity import change
from cicada.answering.conversation.fidelity_words import ADDED, KIND, NAME, NEGATION, NUMBER, ORDER, WORDS
from cicada.answering.conversation.turns import Turn
from cicada.answering.conversation.validation import refusal

HIDDEN = "What did Corin and Petra hide in episode 2?"
HID = Turn("r", 1, HIDDEN, HIDDEN, "Corin hid the padlock key in the boathouse. Petra told Julian on day 3.")
LOCKED = Turn("r", 1, "Who locked the boathouse?", "Who locked the boathouse?", "Mara locked it, Julian Roake says.")
UNLOCKED = Turn("r", 1, "Who did not lock it?", "Who did not lock the boathouse?", "Mara did not.")


@pytest.mark.parametrize(
    ("question", "completed", "why"),
    [
        ("Did she hide the key?", "Did Petra not hide the key?", NEGATION),
        ("Why did she not tell Julian?", "Why did Petra tell Julian?", NEGATION),
        ("Didn't she hide the key?", "Did Petra hide the key?", NEGATION),
        ("What did she never hide?", "What did Petra hide in the boathouse?", NEGATION),
        ("Why did she not tell Corin to hide it?", "Why did Petra tell Corin not to hide the key?", NEGATION),
        ("Why did she tell Corin not to hide it?", "Why did Petra not tell Corin to hide the key?", NEGATION),
        ("Why did she hide it?", "Who did Petra hide it from?", KIND),
        ("When did she hide it?", "Where did Petra hide it?", KIND),
        ("How many did she hide?", "How much did Petra hide?", KIND),
        ("Did she hide the key?", "Who hid the key?", KIND),
        ("Who did she tell about the key?", "Tell me who Petra told about the key?", KIND),
        ("Can you tell me why she hid it?", "Can you tell me where Petra hid the key?", KIND),
        ("Who did she tell?", "Who did Petra tell.", KIND),
        ("why?", "Who hid the key in the boathouse?", KIND),
        ("What did she tell Tamsin about the key?", "What did Petra tell Julian about the key?", NAME),
        ("What did Mrs Sallow tell her?", "What did Mrs Roake tell Petra?", NAME),
        ("What did she say in episode 4 about the key?", "What did Petra say in episode 2 about the key?", NUMBER),
        ("And on day 3?", "What did Corin and Petra hide in episode 2?", NUMBER),
        ("And before that?", "What did Corin and Petra hide in episode 2 after that?", WORDS),
        ("Could she hide the key?", "Would Petra hide the key?", WORDS),
        ("What did she hide in the second tower?", "What did Petra hide in the third tower?", WORDS),
        ("Who did she say hid the ring?", "Who did Petra say hid the key?", WORDS),
        ("Why did she leave without it?", "Why did Petra leave with the key?", NEGATION),
        ("What did “the bell” tell her?", "What did “the key” tell Petra?", WORDS),
        ("Why did she hide it without Julian?", "Why did Petra not hide the key with Julian?", NEGATION),
        ("Why did she tell nobody?", "Why did Petra not tell Julian?", NEGATION),
        ("What did she say to Corin?", "What did Petra say about Corin?", WORDS),
        ("What did she say to Corin?", "What did Corin say to Petra?", ORDER),
        ("Did he see what Petra hid?", "Did Petra see what Corin hid?", ORDER),
        ("Did she tell Corin that Julian lied?", "Did Petra tell Julian that Corin lied?", ORDER),
        ("Who did she tell?", "Who did Petra tell? Corin hid the key?", ADDED),
        ("Who did she tell?", "Who did Petra tell in episode 2, and where did you hide the key?", ADDED),
    ],
)
def test_what_changes_the_question_is_told(question: str, completed: str, why: str) -> None:
    assert change(completed, question, [HID]) == why
    assert refusal(completed, question, [HID]) is not None


@pytest.mark.parametrize(
    ("question", "completed"),
    [
        ("Why not?", "Why did Mara not lock the boathouse?"),
        ("And then?", "What did Mara do after she locked the boathouse?"),
        ("and in episode 2?", "Who locked the boathouse in episode 2?"),
        ("And Petra?", "Did Petra lock the boathouse?"),
        ("What about Petra?", "Who is Petra?"),
        ("Tell me more", "Tell me more about how Mara locked the boathouse."),
        ("why?", "Who locked the boathouse, and why?"),
        ("when she came home, what did he do?", "When Mara came home, what did Julian Roake do?"),
        ("Didn't he like it there?", "Did Julian Roake not like it at the boathouse?"),
        ("Who else works there?", "Who else works at the boathouse?"),
        ("Which one is older?", "Which boathouse is older?"),
        ("Is the first one better?", "Is the boathouse better?"),
        ("To whom did he write it?", "To whom did Julian Roake write the letter?"),
        ("says who?", "Who says that Mara locked the boathouse?"),
        ("Are you sure?", "Are you sure that Mara locked the boathouse?"),
        ("Can you explain that?", "Can you explain how Mara locked the boathouse?"),
        ("who's that?", "Who is Julian Roake?"),
        ("Where's his brother now?", "Where is Julian Roake's brother now?"),
        ("Does she never smile?", "Does Mara never smile?"),
        ("Who did she not tell?", "Whom did Mara not tell about locking the boathouse?"),
        ("in episode 2, who did she tell?", "Who did Mara tell in episode 2 about the boathouse?"),
        ("in episode 2, who did she lock out?", "In episode 2, who did Mara lock out of the boathouse?"),
    ],
)
def test_what_only_completes_it_changes_nothing(question: str, completed: str) -> None:
    assert change(completed, question, [LOCKED]) is None


@pytest.mark.parametrize(
    ("question", "completed", "taken"),
    [
        ("And which is older?", "Who locked the boathouse? Which is older?", True),
        ("At what time?", "Who locked the boathouse, and at what time?", True),
        ("Und warum?", "Who locked the boathouse? Und warum?", True),
        ("Which is older?", "Who locked the boathouse? Which is not older?", False),
        ("Which is older?", "Who locked the tower? Which is older?", False),
        ("why?", "Who locked the boathouse?", False),
    ],
)
def test_the_question_may_stand_as_it_is_behind_the_one_that_it_follows(
    question: str, completed: str, taken: bool
) -> None:
    assert (change(completed, question, [LOCKED]) is None) is taken


def test_a_shortened_question_is_negated_as_the_one_before_it() -> None:
    assert change("Why did Mara not lock the boathouse?", "why?", [UNLOCKED]) is None
    assert change("Why did Mara lock the boathouse?", "why?", [UNLOCKED]) == NEGATION
    assert change("Why did Mara not lock the boathouse?", "why?", [LOCKED]) == NEGATION


GERMAN = Turn("r", 1, "Wer hat das Bootshaus abgeschlossen?", "Wer hat das Bootshaus abgeschlossen?", "Mara, sagt Tom.")
RUSSIAN = Turn("r", 1, "Где была Мара?", "Где была Мара?", "Мара была в саду.")
JAPANESE = Turn("r", 1, "誰がボート小屋に鍵をかけましたか？", "誰がボート小屋に鍵をかけましたか？", "マラです。")


@pytest.mark.parametrize(
    ("turn", "question", "completed", "why"),
    [
        (GERMAN, "Und warum?", "Warum hat Mara das Bootshaus abgeschlossen?", None),
        (GERMAN, "Warum hat sie es nicht gesagt?", "Warum hat Mara es nicht gesagt?", None),
        (GERMAN, "Danach, was hat sie gesagt?", "Was hat Mara nach dem Abschließen gesagt?", None),
        (GERMAN, "Warum hat sie es nicht gesagt?", "Warum hat Mara es gesagt?", NEGATION),
        (GERMAN, "Warum hat sie es Tom gesagt?", "Warum hat Mara es Tom nicht gesagt?", NEGATION),
        (GERMAN, "Warum hat sie es Tom gesagt?", "Wann hat Mara es Tom gesagt?", KIND),
        (GERMAN, "Warum hat sie es Tamsin gesagt?", "Warum hat Mara es Tom gesagt?", NAME),
        (GERMAN, "Was hat sie danach verbrannt?", "Was hat Mara nach dem Abschließen gesagt?", WORDS),
        (RUSSIAN, "А потом?", "Что было с Марой потом?", None),
        (RUSSIAN, "Почему она не сказала Марой?", "Почему Мара не сказала Маре?", None),
        (RUSSIAN, "Почему она не сказала?", "Почему Мара сказала?", NEGATION),
        (JAPANESE, "なぜですか？", "マラはなぜボート小屋に鍵をかけましたか？", None),
        (JAPANESE, "なぜですか？", "マラはいつボート小屋に鍵をかけましたか？", KIND),
        (JAPANESE, "なぜ彼女は鍵をかけなかったのですか？", "なぜマラは鍵をかけましたか？", NEGATION),
    ],
)
def test_other_languages_are_held_to_their_negations_and_question_words(
    turn: Turn, question: str, completed: str, why: str | None
) -> None:
    assert change(completed, question, [turn]) == why


SMALL = st.lists(
    st.sampled_from("why who did not never she Mara Petra tell hide the key in episode 2 4 before ? , and".split()),
    max_size=9,
).map(" ".join)


@given(SMALL)
@settings(max_examples=100)
def test_a_question_changes_nothing_of_itself(question: str) -> None:
    assert change(question, question, []) is None


@given(SMALL, SMALL)
@settings(max_examples=100)
def test_what_is_taken_has_every_number_and_name_of_the_question(question: str, completed: str) -> None:
    if change(completed, question, [HID]) is None:
        for word in ("2", "4"):
            assert word not in question or word in completed
