"""The gazetteer finds known names as they are written, by alias, inflected, in part and misspelt, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.passages import DocumentLocator
from cicada.defaults import MIN_ENTITY_CONFIDENCE
from cicada.errors import IndexMissing
from cicada.retrieval.knowledge.contracts import MAX_NAMES, Catalogue
from cicada.retrieval.knowledge.gazetteer import Gazetteer, IndexNames
from cicada.retrieval.knowledge.gazetteer_names import KnownNames, LikeWords
from cicada.retrieval.knowledge.gazetteer_words import Filed
from cicada.retrieval.ports import UNLIMITED, SearchLimits
from cicada.rights import EVERYTHING
from tests.support.catalogues import CATALOGUE, SHEET
from tests.support.entities import naming, reading, stored
from tests.support.object_stores import InMemoryStore

FILED = (
    "Ottoline Prawle",
    "Bell of Warding",
    "The Silent Bell",
    "Gutterflame",
    "Glass Otter",
    "Wolf",
    "Hope",
    "Persuasion",
    "Will",
    "Königsmoor",
    "Half-Orc",
    "Jory Pell",
    "ミラ・オーク",
    "汐見",
    "灯",
    "PX-210ポンプ",
    "Марина",
)
ALIASES = (("Ottoline Prawle", ("the Tollwife", "Mistress Prawle")), ("Gutterflame", ("the burning axe",)))
NAMES = KnownNames([Filed(name, 3) for name in FILED], ALIASES)


def found(text: str, names: KnownNames = NAMES) -> dict[str, str]:
    """The names that are sure enough, and how each was found."""
    return {one.name: one.kind for one in names.find(text) if one.confidence >= MIN_ENTITY_CONFIDENCE}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who is Ottoline Prawle?", {"Ottoline Prawle": "exact"}),
        ("WHO IS OTTOLINE PRAWLE?", {"Ottoline Prawle": "exact"}),
        ("the bell of warding, and gutterflame", {"Bell of Warding": "exact", "Gutterflame": "exact"}),
        ("where is the silent bell", {"The Silent Bell": "exact"}),
        ("where is a silent bell", {"The Silent Bell": "exact"}),
        ("a half orc, or two Half-Orcs", {"Half-Orc": "exact"}),
        ("How far is Konigsmoor?", {"Königsmoor": "exact"}),
        ("What did the tollwife want?", {"Ottoline Prawle": "alias"}),
        ("Swing the Burning Axe", {"Gutterflame": "alias"}),
    ],
)
def test_names_and_aliases_are_found_in_any_case_with_their_article_or_without(text: str, names: Mapping[str, str]):
    assert found(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ottoline Prawle's boat", {"Ottoline Prawle": "exact"}),
        ("the tollwife’s boat", {"Ottoline Prawle": "alias"}),
        ("What do glass otters eat?", {"Glass Otter": "inflected"}),
        ("How do I fight wolves?", {"Wolf": "inflected"}),
        ("Was fressen die Wölfe?", {"Wolf": "inflected"}),
        ("im Schatten des Königsmoores", {"Königsmoor": "inflected"}),
        ("Где живёт Марину?", {"Марина": "inflected"}),
        ("à cause d'Ottoline Prawle", {"Ottoline Prawle": "exact"}),
        ("I was hoping to prevail.", {}),
    ],
)
def test_a_names_inflections_are_found_and_a_verbs_are_not(text: str, names: Mapping[str, str]):
    assert found(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Who told Gutterflme's tale?", {"Gutterflame": "alike"}),
        ("What does guterflame do?", {"Gutterflame": "alike"}),
        ("Where is Otoline Prawl?", {"Ottoline Prawle": "alike"}),
        ("the bell of wardnig", {"Bell of Warding": "alike"}),
        ("Who is Wolv?", {}),  # too short to be taken for another word
        ("What is a gutter?", {}),
    ],
)
def test_longer_names_are_found_misspelt(text: str, names: Mapping[str, str]):
    assert found(text) == names


def test_a_misspelt_name_is_less_sure_than_one_that_is_written_right():
    right, wrong = (NAMES.find(text)[0].confidence for text in ("Gutterflame", "Gutterflmae"))
    assert wrong < right == 1.0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What did Jory say?", {"Jory Pell": "part"}),
        ("What did Prawle's boat cost?", {"Ottoline Prawle": "part"}),
        ("the warding bell", {"Bell of Warding": "part"}),  # both words together are nobody else's
        ("What did the Bell say?", {}),  # which of two?
        ("a bell rings", {}),
        ("what did jory say", {}),  # it may be any word, for all that is known
    ],
)
def test_a_part_of_one_name_alone_finds_it(text: str, names: Mapping[str, str]):
    assert found(text) == names


def test_a_part_that_is_written_small_counts_where_passages_have_it_only_as_the_name():
    passages = {"jory": 4, "warding": 90}
    names = KnownNames([Filed("Jory Pell", 3), Filed("Bell of Warding", 3)], counts=lambda word: passages.get(word, 0))
    assert found("what did jory say", names) == {"Jory Pell": "part"}
    assert found("what is a warding?", names) == {}


def test_a_word_that_passages_have_is_not_taken_for_a_misspelt_name():
    texts = {"marsh": 12}
    names = KnownNames([Filed("Larsh", 2)], counts=lambda word: texts.get(word, 0))
    assert found("Is the Marsh deep?", names) == {}
    assert found("Is Larsch deep?", names) == {"Larsh": "alike"}


def test_frequent_words_are_names_only_where_they_are_written_large():
    assert found("i hope it will do") == {}
    assert found("Will it do?") == {}
    assert found("Did Hope or Will come?") == {"Hope": "exact", "Will": "exact"}
    assert found("my persuasion bonus") == {"Persuasion": "exact"}


def test_a_word_of_every_day_is_a_name_written_small_only_where_a_declaration_gives_it():
    texts = {"rest": 40, "dazed": 40, "hesper": 4}
    filed = [Filed("Rest", 3), Filed("Dazed", 3, given=True), Filed("Hesper", 3)]
    names = KnownNames(filed, counts=lambda word: texts.get(word, 0))
    assert found("may i rest while dazed, hesper?", names) == {"Dazed": "exact", "Hesper": "exact"}
    assert found("Rest?", names) == {}  # its capital only begins the sentence
    assert found("What is a Rest?", names) == {"Rest": "exact"}


def test_an_alias_that_describes_has_no_parts_that_are_names():
    names = KnownNames([], [("Stillness", ("the still realm",))], counts=lambda word: 1)
    assert found("in the still realm", names) == {"Stillness": "alias"}
    assert found("in another realm", names) == {}


def test_a_misspelt_longer_name_hides_what_is_written_right_inside_of_it():
    names = KnownNames([Filed("Reeve", 9), Filed("Reeve Barrowgate", 4), Filed("Barrowgate", 1)])
    assert found("Remind me about Reeve Barowgate.", names) == {"Reeve Barrowgate": "alike"}


def test_a_longer_name_hides_those_inside_of_it():
    names = KnownNames([Filed("Bell", 9), Filed("Bell of Warding", 2), Filed("Warding", 2)])
    assert found("Ring the Bell of Warding!", names) == {"Bell of Warding": "exact"}
    assert found("Ring the Bell, by Warding!", names) == {"Bell": "exact", "Warding": "exact"}


def test_what_one_alias_stands_for_is_all_found():
    names = KnownNames([], [("Ysolt Karr", ("the Captain",)), ("Marl Quenby", ("the Captain",))])
    assert found("Where is the captain?", names) == {"Ysolt Karr": "alias", "Marl Quenby": "alias"}


def test_a_filed_name_that_is_declared_to_be_anothers_alias_is_that_other():
    names = KnownNames([Filed("Tollwife", 5), Filed("The Tollwife", 1), Filed("Ottoline Prawle", 1)], ALIASES)
    assert found("The Tollwife's price", names) == {"Ottoline Prawle": "alias"}


def test_spellings_of_one_name_are_one_as_most_passages_have_it():
    names = KnownNames([Filed("MINNOW", 1), Filed("Minnow", 7), Filed("minnow", 2)])
    assert len(names) == 1
    assert found("minnow?", names) == {"Minnow": "exact"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ミラ・オークはどこですか", {"ミラ・オーク": "exact"}),
        ("ミラオークと汐見さん", {"ミラ・オーク": "exact", "汐見": "exact"}),
        ("ポルミラ・オークス", {}),  # a longer foreign name
        ("灯をともす", {}),  # a single character stands inside of too many words
        ("PX-210ポンプを止める", {"PX-210ポンプ": "exact"}),
        ("Wolfと汐見", {"汐見": "exact", "Wolf": "exact"}),
    ],
)
def test_names_of_scripts_without_spaces_are_found_as_they_are_written(text: str, names: Mapping[str, str]):
    assert found(text) == names


def test_what_matched_is_the_texts_own_words():
    (one,) = NAMES.find("Is it true, the bell of warding's gone?")
    assert (one.matched, one.start) == ("bell of warding", 16)
    (one,) = NAMES.find("昔、ミラ・オークが")
    assert (one.matched, one.start) == ("ミラ・オーク", 2)


def test_a_name_that_somebody_gives_is_spelt_as_it_is_filed():
    def spelt(name: str) -> str | None:
        known = NAMES.spelling_of(name)
        return None if known is None else known.name

    assert [spelt(name) for name in ("jory", "the silent bel", "hope", "汐見", "Ottoline's")] == [
        "Jory Pell",
        None,
        "Hope",
        "汐見",
        "Ottoline Prawle",
    ]
    assert spelt("Ottoline and the sea") is None
    assert spelt("") is None


def test_likeness_counts_edits_as_a_share_of_the_longer_word():
    like = LikeWords(["gutterflame", "prawle", "karr"])
    assert like.like("gutterflmae") == (("gutterflame", 1 - 1 / 11),)
    assert like.like("prowle") == (("prawle", 1 - 1 / 6),)
    assert like.like("prowls") == ()
    assert like.like("prawle") == ()
    assert like.like("kar") == like.like("karl") == ()
    assert LikeWords([]).like("anything") == ()


@given(
    st.sampled_from(["gutterflame", "ottoline", "persuasion", "marrowby", "fenpilot"]),
    st.integers(0, 20),
    st.sampled_from("abcxyzéж"),
    st.sampled_from(["replace", "insert", "drop", "swap"]),
)
@settings(max_examples=150)
def test_one_edit_of_a_long_word_is_always_found(word: str, at: int, letter: str, edit: str):
    at %= len(word) - 1
    edited = {
        "replace": word[:at] + letter + word[at + 1 :],
        "insert": word[:at] + letter + word[at:],
        "drop": word[:at] + word[at + 1 :],
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[edit]
    found_words = [known for known, _ in LikeWords(["gutterflame", "ottoline", "persuasion", "marrowby"]).like(edited)]
    assert (word in found_words) == (edited != word and word != "fenpilot")


@given(st.lists(st.sampled_from(FILED[:9]), max_size=4), st.sampled_from([" and ", ", ", " or "]))
@settings(max_examples=60)
def test_names_between_other_words_are_all_found_as_they_are_written(names: list[str], between: str):
    assert found(f"What about {between.join(names)}?").keys() == set(names)


def test_a_text_without_spaces_may_end_with_a_name_that_begins_a_longer_one():
    known = KnownNames([Filed("図書館", 1), Filed("図書館員", 1)])
    assert [one.name for one in known.find("今日は図書館")] == ["図書館"]
    assert [one.name for one in known.find("今日は図書館員")] == ["図書館員"]


@given(st.lists(st.text(min_size=1, max_size=12), max_size=6), st.text(max_size=80))
@settings(max_examples=80)
def test_any_names_and_any_text_can_be_read(names: Sequence[str], text: str):
    filed = [name.encode("utf-8", "ignore").decode() for name in names]
    known = KnownNames([Filed(name, 1) for name in dict.fromkeys(filed)], [(name, (text,)) for name in filed[:1]])
    for one in known.find(text):
        assert one.name in filed
        assert 0 < one.confidence <= 1


# --- over an index ---


def extract(reader: object, question: str, catalogue: Catalogue = CATALOGUE) -> list[tuple[str, str]]:
    source = IndexNames(reader)  # type: ignore[arg-type]
    return [(one.name, one.matched) for one in Gazetteer(source).extract(question, catalogue, UNLIMITED)]


def test_the_indexs_entities_of_the_catalogues_collections_and_the_aliases_are_known():
    store = stored(
        naming(1, "Hask Undermill", collection="diary"),
        naming(2, "Gutterflame", collection="sheet"),
        naming(3, "Fenna Drosk", collection="other"),
    )
    with reading(store) as reader:
        question = "Did Hask Undermill or Fenna Drosk take the burning axe to the Tollwife?"
        assert extract(reader, question) == [
            ("Hask Undermill", "Hask Undermill"),
            ("Gutterflame", "the burning axe"),
            ("Ottoline Prawle", "the Tollwife"),
        ]
        assert extract(reader, question, Catalogue("v1", (SHEET,), readable=EVERYTHING)) == [
            ("Gutterflame", "the burning axe")
        ]


def test_what_has_an_entry_of_its_own_is_a_name_written_small_as_well():
    entry = DocumentLocator(source="rules.md", title="Rules", section="Conditions > Dazed")
    passages = [
        naming(1, "Dazed", collection="sheet", section="entries").model_copy(update={"locator": entry}),
        naming(2, "Held", collection="sheet"),
    ]
    passages += [
        naming(number, collection="sheet").model_copy(update={"context": "One is dazed, or held."})
        for number in range(3, 12)
    ]
    with reading(stored(*passages)) as reader:
        assert extract(reader, "can a spell be held while one is dazed") == [("Dazed", "dazed")]


def test_the_indexs_words_tell_parts_and_misspellings_from_words_of_every_day():
    passages = [naming(1, "Wren Marsh", collection="diary").model_copy(update={"context": "Wren Marsh rowed."})]
    passages += [
        naming(number, collection="diary").model_copy(update={"context": "A marsh, and the march over it."})
        for number in range(2, 8)
    ]
    with reading(stored(*passages)) as reader:
        assert extract(reader, "how did wren row") == [("Wren Marsh", "wren")]
        assert extract(reader, "how deep is the marsh") == []
        assert extract(reader, "who led the march") == []


def test_without_an_index_there_are_no_names():
    with reading(InMemoryStore()) as reader, pytest.raises(IndexMissing):
        extract(reader, "Who is Hask?")


def test_what_is_less_sure_than_the_threshold_is_dropped():
    class Few:
        def names(self, catalogue: Catalogue, limits: SearchLimits) -> KnownNames:
            return NAMES

    strict = Gazetteer(Few(), min_confidence=0.95)
    assert [one.name for one in strict.extract("Gutterflame, or guterflame?", CATALOGUE, UNLIMITED)] == ["Gutterflame"]
    assert strict.extract("guterflame", CATALOGUE, UNLIMITED) == ()


def test_of_a_question_that_names_everything_the_surest_names_are_followed():
    class Many:
        def names(self, catalogue: Catalogue, limits: SearchLimits) -> KnownNames:
            return KnownNames([Filed(f"Fen{letter}ara", 1) for letter in "bcdfghjklmnpqrst"])

    question = " ".join(f"Fen{letter}ara," for letter in "bcdfghjklmnpqrst")
    assert len(Gazetteer(Many()).extract(question, CATALOGUE, UNLIMITED)) == MAX_NAMES
