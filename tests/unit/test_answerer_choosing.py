"""The stand-in for a model chooses what a question needs and names what it names, by the selector's own prompt."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.models.structured_output import form_schema, read_form
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.retrieval.knowledge.extracting import extracting_prompt
from cicada.retrieval.knowledge.selecting import choices_of, selecting_system
from cicada.retrieval.knowledge.structured_calls import NamesFound, selection_form
from cicada.rights import EVERYTHING
from cicada_local.bedrock.extractive.choosing import options_of, parts_of
from cicada_local.bedrock.extractive.filling import fill
from tests.support.catalogues import CATALOGUE, declared


def chosen(question: str, catalogue: Catalogue = CATALOGUE) -> list[str]:
    form = selection_form(catalogue)
    user = f"<question>\n{question}\n</question>"
    value: Any = fill(user, form_schema(form), system=selecting_system(catalogue))
    return [one.intention for one in choices_of(read_form(form, value), catalogue, 0.7)]


def chosen_of(question: str) -> set[str]:
    """The collections that are chosen."""
    form = selection_form(WITH_SCRIPT)
    value: Any = fill(f"<question>{question}</question>", form_schema(form), system=selecting_system(WITH_SCRIPT))
    return {one.collection for one in choices_of(read_form(form, value), WITH_SCRIPT, 0.7)}


def named(question: str) -> list[str]:
    prompt = extracting_prompt(question, CATALOGUE)
    value = fill(prompt.user, form_schema(NamesFound), system=prompt.system)
    return [one.name for one in read_form(NamesFound, value).names if one.confidence >= 0.6]


def test_a_question_that_an_intention_has_as_its_example_means_it():
    assert chosen("What is in my pack?") == ["belongings"]
    assert chosen("Who was that woman at the gate?") == ["people"]


def test_each_part_of_a_question_is_chosen_for():
    assert set(chosen("Remind me who was that woman at the gate and how hard do I hit?")) == {"people", "fighting"}


def test_small_talk_needs_nothing():
    assert chosen("Hello there!") == []
    assert chosen("Thanks a lot.") == []


def test_only_what_the_form_allows_is_chosen():
    assert options_of(selecting_system(CATALOGUE), ["sheet/fighting", "sheet/nothing"])[0].value == "sheet/fighting"
    assert len(options_of(selecting_system(CATALOGUE), ["sheet/fighting", "sheet/nothing"])) == 1


def test_what_the_prompt_escapes_is_read_as_it_was():
    odd = Catalogue(
        "v1",
        (declared("odd", {"signs": ('Of "<" & ">".', ("Is 1 < 2?",))}, description="A & B."),),
        readable=EVERYTHING,
    )
    (option,) = options_of(selecting_system(odd), ["odd/signs"])
    assert (option.about, option.texts) == ("A & B.", ('Of "<" & ">".', "Is 1 < 2?"))


def test_a_question_is_taken_apart_where_another_begins():
    assert parts_of("How does grappling work and what's my athletics bonus?") == [
        "How does grappling work",
        "what's my athletics bonus?",
    ]
    assert parts_of("Where are salt and bread?") == ["Where are salt and bread?"]
    assert parts_of("?") == ["?"]


SCRIPT = declared(
    "script",
    {
        "happening": ("What happens in an episode, and why.", ("How does Tamsin arrive?",)),
        "people": ("Who somebody in the script is.", ("Who is Mrs Sallow?",)),
    },
    description="The script of a mystery in five episodes.",
    aliases={"Tamsin Oake": ("Tamsin",), "red oilskin": ()},
)
WITH_SCRIPT = Catalogue("v1", (*CATALOGUE.collections, SCRIPT), readable=EVERYTHING)


def test_names_that_a_collection_lists_tell_it_from_those_that_list_others():
    options = options_of(selecting_system(WITH_SCRIPT), ["script/people", "sheet/belongings"])
    assert [(one.collection, one.names) for one in options] == [
        ("sheet", ("Gutterflame",)),
        ("script", ("Tamsin Oake", "red oilskin")),
    ]
    assert chosen_of("Who was Tamsin at the gate?") == {"script"}
    assert chosen_of("Who was Ottoline Prawle at the gate?") == {"diary"}


def test_a_question_that_speaks_of_episodes_means_the_script():
    assert chosen_of("What happens in episode 2?") == {"script"}
    assert chosen_of("Who was that woman at the gate in the first draft?") == {"script"}


def test_my_own_and_our_own_is_not_the_scripts():
    assert chosen_of("What is in my pack?") == {"sheet"}
    assert chosen_of("Who was that woman we met?") == {"diary"}


def test_names_are_found_and_what_is_asked_of_as_well():
    assert named("What did Ottoline Prawle say of Gutterflame?") == ["Ottoline Prawle", "Gutterflame"]
    assert named("How does grappling work and what's my athletics bonus?") == ["grappling", "athletics"]
    assert named("Hask said what?") == ["Hask"]
    assert named('Is there a "burning axe"?') == ["burning axe"]
    assert named("what happened last time?") == []


@given(st.text(max_size=120))
@settings(max_examples=60)
def test_whatever_is_asked_the_forms_fit(question: str):
    chosen(question)
    named(question)
