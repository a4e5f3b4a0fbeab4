"""What is said in other words, and what is said of something else."""

from __future__ import annotations

import pytest

from cicada.citations import check_citations
from cicada.citations.measures import clocks, parts_of_units
from cicada.corpus.passages import DocumentLocator, ScriptLocator
from cicada.protocol.events import Source


def passage(text: str, speaker: str | None = None) -> Source:
    locator = (
        ScriptLocator(episode_id="ep1", episode_name="Storm", chapter_id="c1", message_id="m1", speaker=speaker)
        if speaker
        else DocumentLocator(source="manual.pdf", title="Manual", page=3)
    )
    return Source(n=1, passage_id="p1", collection="c", locator=locator, score=0.5, text=text)


def code_of(sentence: str, text: str, speaker: str | None = None) -> str | None:
    (citation,) = check_citations(f"{sentence} [1]", (passage(text, speaker),))
    return citation.code


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at half past four", "at 16.30"),
        ("at twenty past seven", "at 7.20"),
        ("six in the evening", "18:00"),
        ("6 p.m.", "18:00"),
        ("um halb fünf", "um 16.30 Uhr"),
        ("à quatre heures et demie", "à 16 h 30"),
        ("a las cuatro y media", "a las 16:30"),
        ("alle sette e mezza", "alle 7:30"),
        ("午後六時半", "18時30分"),
        ("下午六点", "18:00"),
    ],
)
def test_a_time_of_day_is_one_in_whatever_form(one, other):
    ((first,), (second,)) = clocks(one), clocks(other)
    assert first.minutes & second.minutes


def test_morning_and_evening_are_two_times():
    assert not clocks("six in the morning")[0].minutes & clocks("18:00")[0].minutes
    assert clocks("from 9 to 17 guests") == ()


def test_a_part_of_a_unit_is_a_measure():
    assert parts_of_units("half an hour") == parts_of_units("eine halbe Stunde") == parts_of_units("mezz'ora") != set()


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Let the glue dry for half an hour.", "Let the glue dry for 30 minutes."),
        ("Loans last for three weeks.", "Loans last for 21 days."),
        ("A dozen boats were lost.", "Twelve boats were lost in the gale."),
        ("The path is 2.5 km long.", "The path is 2,500 metres long."),
        ("In total the two halls hold 70 chairs.", "The upper hall holds 40 chairs, the lower hall holds 30 chairs."),
        ("The mill was rebuilt in 1908.", "The mill burned down in 1905 and was rebuilt three years later."),
        ("Almost 200 letters were kept.", "She kept 196 letters."),
        ("In winter the lift runs only on Saturdays and Sundays.", "In winter the lift runs only at the weekend."),
    ],
)
def test_numbers_written_otherwise_or_added_up_are_verified(sentence, text):
    assert code_of(sentence, text) is None


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The hall closes in the evening at half past four.", "The hall closes at half past five, and opens at nine."),
        ("The lower hall holds 40 chairs.", "The upper hall holds 40 chairs; the lower hall holds 30 chairs."),
        ("Shed K-7 has no window.", "Shed K-4 is 12 m long and has no window; shed K-7 is 9 m long."),
        ("Brann has 5 rations.", "Alda | Scout | rations 5\nBrann | Cook | rations 9"),
        ("The crate weighs 5 pounds.", "The crate weighs 5 kg."),
    ],
)
def test_a_number_of_something_else_is_unverified(sentence, text):
    assert code_of(sentence, text) in ("number_missing", "contradicted")


@pytest.mark.parametrize(
    "frame", ["Mara complains:", "Bitterly, Mara reproaches him:", "Mara si lamenta:", "Mara raconte :"]
)
def test_what_frames_a_quotation_is_no_claim(frame):
    assert code_of(f"{frame} “I only got the lamp.”", "You took the boat. I only got the lamp.", "Mara") is None


TURNS = "ANNA: The gate was open when I came. BRUNO: Because I opened it at nine. The dog was asleep."


def test_words_belong_to_the_turn_that_they_are_in():
    assert code_of("Bruno says that the dog was asleep.", TURNS) is None
    assert code_of("Anna says that the dog was asleep.", TURNS) == "contradicted"
    assert code_of('Anna says: "The dog was asleep."', TURNS) == "contradicted"


def test_a_passage_is_by_its_speaker_unless_it_reports_somebody():
    assert code_of("Silas admits that he only got the debts.", "Silas got it. I only got the debts.", "Petra")
    assert code_of("Silas says that the debts are paid.", "Silas told me that the debts are paid.", "Petra") is None


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("The filter must not be washed.", "Washing the filter is forbidden."),
        ("Rubbing the skin is to be avoided.", "Do not rub the skin."),
        ("A guest may bring no more than two dogs.", "A guest may bring two dogs at most."),
        ("A loan is not renewed if another member waits.", "A loan is renewed unless another member waits."),
        ("鍵を受付に預けなければなりません。", "鍵は必ず受付に預けてください。"),
        ("The button cancels the return of the drone.", "The return of the drone can be cancelled with the button."),
        ("Lucan was warned about the ice by Gideon.", "Gideon warned Lucan about the ice."),
    ],
)
def test_the_same_with_another_negation_or_voice_is_verified(sentence, text):
    assert code_of(sentence, text) is None


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Warm the glass rapidly in lukewarm water.", "Warm the glass slowly in lukewarm water."),
        ("La tour fut détruite par une tempête.", "La tour fut détruite par une inondation."),
        ("Le train de marchandises part à midi, le train de voyageurs part à minuit.",
         "Le train de voyageurs part à midi, le train de marchandises part à minuit."),
        ("The warden calls the doctor before warning the guests.",
         "The warden first warns the guests and then calls the doctor."),
        ("Anyone over 18 may drive the cart.", "Only members over 18 may drive the cart."),
        ("Guests reported no errors.", "Guests reported fewer errors than those who did not sleep."),
        ("Two boats were sold by secret ballot.", "Two boats were sold in spring."),
    ],
)  # fmt: skip
def test_one_word_or_the_order_exchanged_is_unverified(sentence, text):
    assert code_of(sentence, text) in ("contradicted", "unsupported")


def test_a_table_without_sentences_is_in_the_language_of_what_cites_it():
    table = "Brida | Hechicera | PV 18 | Magia 7 / Tomé | Guardia | PV 30 | Magia 0"
    assert code_of("La hechicera Brida tiene 18 PV.", table) is None
    assert code_of("La hechicera Brida tiene 30 PV.", table) == "contradicted"


def test_a_reason_names_the_words_that_are_not_there():
    (citation,) = check_citations(
        "The mill has a haunted cellar with green windows. [1]", (passage("The mill burned."),)
    )
    assert citation.code == "unsupported"
    assert citation.reason == "the passage does not speak of haunted, cellar, green, windows"
