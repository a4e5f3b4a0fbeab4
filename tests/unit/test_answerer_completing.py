"""The extractive answerer completes follow-up questions from the turns of their prompt."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.answering.prompt import direct_prompt, rag_prompt
from cicada.conversation.completion import COMPLETE_SYSTEM, UNCHANGED, completing_prompt, refusal
from cicada.conversation.turns import ConversationTurn
from cicada_local.bedrock.answerer import ExtractiveAnswerer
from cicada_local.bedrock.extractive.completing import MAX_CHARS, asks_to_complete, complete_from
from cicada_local.bedrock.minilm import SentenceEmbedder
from tests.support.embedding import WordEmbedder

BOATHOUSE = ("Who locked the boathouse?", "In First Draft: The Boathouse, Mara says: “I locked the boathouse at ten.”")
ROAKE = ("What does Julian Roake do for a living?", "In First Draft, Julian says: “I am with the publishers.”")


def turns_of(*exchanges: tuple[str, str]) -> list[ConversationTurn]:
    return [ConversationTurn(f"r{n}", n, asked, asked, answer) for n, (asked, answer) in enumerate(exchanges)]


@pytest.mark.parametrize(
    ("exchange", "question", "completed"),
    [
        (
            BOATHOUSE,
            "And what did she say next?",
            "Who locked the boathouse? In First Draft: The Boathouse, Mara says: “I locked the boathouse at ten.” "
            "And what did she say next?",
        ),
        (
            ROAKE,
            "How old is he?",
            "What does Julian Roake do for a living? In First Draft, Julian says: “I am with the publishers.” "
            "How old is he?",
        ),
        (("Wer hat das Bootshaus abgeschlossen?", ""), "Und warum?", "Wer hat das Bootshaus abgeschlossen? Und warum?"),
        (("誰が門を閉めた?", "マーラです。"), "なぜ?", "誰が門を閉めた? マーラです。 なぜ?"),
        (("What happened?", "word " * 40), "and in episode 2?", "What happened? and in episode 2?"),
    ],
)
def test_a_follow_up_takes_up_the_last_question_and_the_beginning_of_its_answer(exchange, question, completed):
    turns = turns_of(exchange)
    assert complete_from(completing_prompt(question, turns).user) == completed
    assert refusal(completed, question, turns) is None


def test_a_question_that_stands_alone_is_unchanged():
    prompt = completing_prompt("Where does Julian Roake hide the keys of the pump house?", turns_of(BOATHOUSE))
    assert complete_from(prompt.user) == UNCHANGED


def test_the_last_turn_is_taken():
    prompt = completing_prompt("What did he say?", turns_of(ROAKE, ("When does the tide come?", "At six.")))
    assert complete_from(prompt.user) == "When does the tide come? At six. What did he say?"


def test_escaped_texts_are_read_as_they_were():
    prompt = completing_prompt("why?", turns_of(('Who said "a < b & c"?', "Nobody.")))
    assert complete_from(prompt.user) == 'Who said "a < b & c"? Nobody. why?'


def test_without_turns_or_where_it_would_grow_too_long_the_question_stays():
    assert complete_from(completing_prompt("why?", []).user) == "why?"
    assert complete_from(completing_prompt("why?", turns_of(("What? " * 100, ""))).user) == "why?"


def test_the_answerer_tells_the_prompts_apart():
    answerer = ExtractiveAnswerer(cast(SentenceEmbedder, WordEmbedder()))
    prompt = completing_prompt("why?", turns_of(BOATHOUSE))
    assert answerer.answer(COMPLETE_SYSTEM, prompt.user).endswith(" why?")
    for other in (direct_prompt("<turns><question>"), rag_prompt("<turns>", ())):
        assert not asks_to_complete(other.user)


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=60)
def test_any_prompt_of_turns_is_one_line_within_its_bound(question, asked, answered):
    completed = complete_from(completing_prompt(question, turns_of((asked, answered))).user)
    assert len(completed) <= max(MAX_CHARS, len(question))
    assert len(completed.splitlines()) <= 1
