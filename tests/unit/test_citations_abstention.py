"""Sentences that say that nothing was found, told from claims by a trained classifier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.citations.sentences import abstains

ROOT = Path(__file__).resolve().parents[2]


def lines(pattern: str, field: str) -> list[str]:
    texts = [json.loads(line)[field] for path in sorted(ROOT.glob(pattern)) for line in path.open(encoding="utf-8")]
    return [text for text in texts if text]


def test_no_claim_of_hands_that_have_not_seen_it_is_taken_for_an_abstention():
    claims = lines("tests/data/citations_*.jsonl", "sentence")
    assert len(claims) > 1_000
    assert not [text for text in claims if abstains(text)]


def test_of_another_hands_answers_only_those_abstain_that_say_so():
    answers = lines("training/data/followups/corelli.jsonl", "answer")
    assert len(answers) > 370
    so = {"記載がありません。", "资料里没有。", "その語は本文にありません。", "The text does not say."}
    assert {text for text in answers if abstains(text)} <= so


@pytest.mark.parametrize(
    "sentence",
    [
        "I found nothing in the sources that answers this question.",
        "The passages don't say who signed it.",
        "There is nothing in the excerpts that says whether she came back.",
        "No source names the harbour master.",
        "Davon ist in den Textstellen keine Rede.",
        "Die Dokumente sagen nicht, wer unterschrieben hat.",
        "Les extraits ne permettent pas de savoir qui a signé.",
        "Los documentos no dicen quién firmó.",
        "Le fonti non lo chiariscono.",
        "As passagens não informam a data.",
        "資料では確認できません。",
        "段落中没有这方面的内容。",
    ],
)
def test_what_says_that_the_passages_do_not_tell_abstains(sentence):
    assert abstains(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Mara says: “I found nothing in the sources that answers this question.”",
        "The documents do not name the buyer, but they say that he came from Arlen.",
        "Nobody has found the passage under the mill.",
        "The source of the fire is unknown.",
        "The warranty does not cover the belt.",
        "Das Buch nennt den Täter erst im letzten Kapitel.",
        "Les sources de la rivière se trouvent dans les collines.",
        "No se puede entrar con perro.",
        "駅には駅員がいません。",
        "那天没有人来。",
        "",
        "[1]",
    ],
)
def test_what_claims_something_does_not(sentence):
    assert not abstains(sentence)


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_is_one_or_the_other(text):
    assert abstains(text) in (True, False)
