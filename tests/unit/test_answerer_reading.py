"""What the extractive answerer reads in prompts, questions and texts."""

from __future__ import annotations

import pytest

from cicada_local.bedrock.extractive.episodes import asked_episodes, in_asked_episodes
from cicada_local.bedrock.extractive.prompt import NumberedPassage, parse_prompt
from cicada_local.bedrock.extractive.prose import excerpt
from cicada_local.bedrock.extractive.question import parts_of, whole
from cicada_local.bedrock.extractive.text import content_stems, sentences, stem

# --- prompts ---


def test_a_prompt_is_read_as_it_was_meant() -> None:
    prompt = parse_prompt(
        '<passages>\n<passage n="1" episode="Rain &amp; &quot;Wind&quot;" episode_id="ep1" chapter="ch2" '
        'message="ep1-0042" speaker="Mara" relevance="0.83">\nWas it &lt;b&gt;late&lt;/b&gt;,\nor not?\n</passage>\n'
        "</passages>\n\n<question>\nWhen &amp; where?\n</question>"
    )
    assert prompt.grounded
    assert prompt.question == "When & where?"
    assert prompt.passages == (
        NumberedPassage(
            number=1,
            text="Was it <b>late</b>, or not?",
            lines="Was it <b>late</b>,\nor not?",
            episode='Rain & "Wind"',
            episode_id="ep1",
            chapter="ch2",
            message="ep1-0042",
            speaker="Mara",
            relevance=0.83,
        ),
    )


@pytest.mark.parametrize("user", ["Where is the key?", "<question>Where is the key?</question>"])
def test_a_prompt_without_passages_is_a_question(user: str) -> None:
    prompt = parse_prompt(user)
    assert (prompt.question, prompt.passages, prompt.grounded) == ("Where is the key?", (), False)


def test_a_prompt_may_have_no_passage_and_still_ask_for_some() -> None:
    prompt = parse_prompt("<passages>\n\n</passages>\n\n<question>\nWhere?\n</question>")
    assert (prompt.question, prompt.passages, prompt.grounded) == ("Where?", (), True)


@pytest.mark.parametrize("attributes", ["", 'n=""', 'n="-1"', 'n="1.5"', 'n="1e3"', 'n="１"', 'n="12345678"'])
def test_a_passage_that_could_not_be_cited_is_left_out(attributes: str) -> None:
    assert parse_prompt(f"<passages><passage {attributes}>text</passage></passages>").passages == ()


@pytest.mark.parametrize(("relevance", "read"), [("0.5", 0.5), ("1", 1.0), ("7", 1.0), ("nan", 0.0), ("-1", 0.0)])
def test_a_relevance_is_a_number_up_to_one(relevance: str, read: float) -> None:
    passage = parse_prompt(f'<passages><passage n="1" relevance="{relevance}">text</passage></passages>').passages[0]
    assert passage.relevance == read


def passage(message: str, chapter: str = "ch1", episode: str = "ep1", name: str = "First Draft: The Boathouse"):
    return NumberedPassage(1, "text", episode=name, episode_id=episode, chapter=chapter, message=message)


def test_neighbours_count_on_within_a_chapter() -> None:
    assert passage("ep1-0010").follows(passage("ep1-0009"))
    assert not passage("ep1-0011").follows(passage("ep1-0009"))
    assert not passage("ep1-0010").follows(passage("ep1-0009", chapter="ch2"))
    assert not passage("ep2-0010", episode="ep2").follows(passage("ep1-0009"))
    assert not passage("ten").follows(passage("nine"))


# --- episodes ---


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        ("Who dies in episode 3?", {3}),
        ("Who dies in the third episode?", {3}),
        ("Who dies in the 3rd draft?", {3}),
        ("Who dies in episode three?", {3}),
        ("Who dies in ep. 3?", {3}),
        ("Compare episodes 1 and 3.", {1, 3}),
        ("Compare the first, second and fourth episodes.", {1, 2, 4}),
        ("Who dies in the first three drafts?", {1, 2, 3}),
        ("Where is he in the first draft, and where in the second?", {1, 2}),
        ("What does she say first?", set()),
        ("Who was the second to arrive?", set()),
        ("Who dies in chapter 3?", set()),
    ],
)
def test_numbers_of_episodes_are_found(question: str, numbers: set[int]) -> None:
    assert asked_episodes(question).numbers == numbers


@pytest.mark.parametrize(
    ("question", "several"),
    [
        ("Who dies in each episode?", True),
        ("Do the drafts differ in how she arrives?", True),
        ("Compare episode 1 and episode 2.", True),
        ("Who dies in episode 2?", False),
        ("Who is different now?", True),
        ("Who dies?", False),
    ],
)
def test_questions_about_several_episodes_are_told(question: str, several: bool) -> None:
    assert asked_episodes(question).several == several


def test_passages_of_other_episodes_are_left_out() -> None:
    passages = [
        passage("m1"),
        passage("m2", episode="ep2", name="Second Draft: The Tower"),
        passage("m3", episode="ep5", name="Fair Copy"),
    ]

    def kept(question: str) -> list[str]:
        return [each.message for each in in_asked_episodes(question, passages)]

    assert kept("Who dies?") == ["m1", "m2", "m3"]
    assert kept("Who dies in episode 2?") == ["m2"]
    assert kept("Who dies in the last episode?") == ["m3"]
    assert kept("Who dies in The Boathouse?") == ["m1"]
    assert kept("Who dies in episode 2 and in the fair copy?") == ["m2", "m3"]
    assert kept("Who dies in episode 4?") == []


def test_without_numbers_in_their_ids_episodes_are_not_told_apart_by_number() -> None:
    passages = [passage("m1", episode="pilot"), passage("m2", episode="finale")]
    assert in_asked_episodes("Who dies in episode 2?", passages) == passages


# --- questions ---


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Where is the key?", []),
        ("Where is the key, and who hid it?", ["Where is the key", "who hid it?"]),
        ("What did she eat? When did she leave?", ["What did she eat", "When did she leave?"]),
        ("Who is found dead and where?", []),
        ("Who found the key and the lamp?", []),
    ],
)
def test_a_compound_question_has_parts(question: str, parts: list[str]) -> None:
    assert [part.text for part in parts_of(question, [])] == parts


@pytest.mark.parametrize(
    ("question", "offers", "misses"),
    [
        ("How many eggs were boiled?", "Nine eggs.", "Some eggs."),
        ("When was the door shut?", "Bolted at half past nine.", "Bolted it."),
        ("What time did it go?", "Five to six tonight.", "It went."),
        ("How old is Toby?", "Toby, who was nine years old.", "Toby has nine boats."),
    ],
)
def test_some_questions_cannot_be_answered_without_a_number_or_a_time(question: str, offers: str, misses: str) -> None:
    part = whole(question, [])
    assert part.offered_by(offers)
    assert not part.missed_by(offers)
    assert not part.offered_by(misses)
    assert part.missed_by(misses)


@pytest.mark.parametrize(
    ("question", "offers", "lacks"),
    [
        ("Where is the key?", "It lies under the stone.", "It is lost."),
        ("Who rang?", "I saw that Corin rang.", "The bell rang."),
        ("Why did she leave?", "She left because it rained.", "She left."),
    ],
)
def test_a_kind_of_answer_that_is_asked_for_is_a_hint_only(question: str, offers: str, lacks: str) -> None:
    part = whole(question, [])
    assert part.offered_by(offers)
    assert not part.offered_by(lacks)
    assert not part.missed_by(lacks)


def test_names_of_persons_are_set_apart_from_what_is_asked() -> None:
    speaker = NumberedPassage(1, "Good evening, Miss Oake.", speaker="Corin")
    part = whole("What did Corin tell Miss Oake about Corin's boat?", [speaker])
    assert part.stems == {"boat"}
    assert part.names == {"corin", "oak"}
    assert part.nameless == "What did someone tell someone about someone's boat?"


def test_a_question_about_a_name_alone_is_about_the_name() -> None:
    assert whole("Who is Corin?", [NumberedPassage(1, "Boats are mine.", speaker="Corin")]).stems == {"corin"}


# --- texts ---


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Twenty to seven. Mr. Vell said so.", ["Twenty to seven.", "Mr. Vell said so."]),
        ("It was I. Then it rained.", ["It was I.", "Then it rained."]),
        ("By J. R. Oake.", ["By J. R. Oake."]),
        ("Really? Yes! Well... maybe.", ["Really?", "Yes!", "Well... maybe."]),
        ('He said, "No." She left.', ['He said, "No."', "She left."]),
        ("雨です。霧です！", ["雨です。", "霧です！"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences_end_where_they_end(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("key", "keys"),
        ("locked", "locking"),
        ("stopped", "stops"),
        ("15th", "fifteenth"),
        ("four", "4"),
        ("house", "houses"),
    ],
)
def test_inflections_meet(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_words_of_asking_carry_no_meaning() -> None:
    assert content_stems("What does she say about the key in this episode?") == {"key"}
    assert content_stems("鍵はどこですか") == {"鍵は"}


def test_an_excerpt_ends_with_a_sentence_that_says_something() -> None:
    assert excerpt("The key is lost. Is it?", frozenset({"key"})) == "The key is lost."
    assert excerpt("Is it?", frozenset()) == "Is it?"
