"""Hybrid scores: what words and meaning say, added up as far as each can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cicada.retrieval.calibration import (
    FOREIGN_TRUST,
    NEIGHBOUR_TRUST,
    Calibration,
    calibration_of,
    query_language,
    trust_in,
)
from cicada.retrieval.ranking import (
    KEYWORD_MIDPOINT,
    Candidates,
    QueryEvidence,
    dense_score,
    fuse,
    keyword_score,
)

ENGLISH_MODEL = "local.all-minilm-l6-v2"
MULTILINGUAL_MODEL = "amazon.titan-embed-text-v2:0"
ENGLISH = {"eng": 1000}
CHINESE = {"zho": 240}

cosines = st.floats(-1, 1, width=32)
shares = st.floats(0, 1, width=32)


def evidence(text="What is the name of the ferry?", model_id=ENGLISH_MODEL, ideal=10.0, languages=ENGLISH):
    return QueryEvidence(text, model_id, ideal, languages)


def candidates(*pairs):
    """Candidates of (cosine, BM25) pairs."""
    cosine, bm25 = np.array(pairs, np.float32).T
    return Candidates(cosine, bm25)


def ranking(found, of):
    return np.argsort(-fuse(found, of)).tolist()


class TestFusing:
    def test_words_and_meaning_that_agree_say_more_than_either(self):
        both, meaning, words = fuse(candidates((0.5, 4.0), (0.5, 0.0), (0.0, 4.0)), evidence())
        assert both > meaning
        assert both > words

    def test_a_whole_match_of_the_words_outweighs_a_middling_cosine(self):
        assert ranking(candidates((0.45, 0.5), (0.3, 6.0)), evidence()) == [1, 0]

    def test_a_few_of_a_long_query_s_words_leave_the_choice_to_meaning(self):
        assert ranking(candidates((0.6, 1.0), (0.3, 3.0)), evidence(ideal=20.0)) == [0, 1]

    def test_a_query_without_words_is_scored_by_meaning_alone(self):
        found = candidates((0.1, 0.0), (0.6, 0.0))
        alone = fuse(found, evidence(text="?!", ideal=0.0))
        assert alone.tolist() == dense_score(found.cosine, ENGLISH_MODEL).tolist()

    def test_passages_without_any_of_the_words_need_to_mean_more(self):
        midpoint = calibration_of(ENGLISH_MODEL).midpoint
        (score,) = fuse(candidates((midpoint, 0.0)), evidence())
        assert score < 0.5

    def test_evidence_that_speaks_neither_for_nor_against_is_one_half(self):
        midpoint = calibration_of(ENGLISH_MODEL).midpoint
        (score,) = fuse(candidates((midpoint, 10 * KEYWORD_MIDPOINT)), evidence())
        assert score == pytest.approx(0.5, abs=1e-6)

    def test_a_calibration_can_be_given(self):
        (score,) = fuse(candidates((0.8, 10 * KEYWORD_MIDPOINT)), evidence(), Calibration(midpoint=0.8, slope=30.0))
        assert score == pytest.approx(0.5, abs=1e-6)

    def test_no_candidates_give_no_scores(self):
        nothing = np.zeros(0, np.float32)
        assert fuse(Candidates(nothing, nothing), evidence()).shape == (0,)

    @given(st.lists(st.tuples(cosines, shares), min_size=1, max_size=8), st.sampled_from(["", "Wo ist der?", "渡し船"]))
    def test_scores_are_numbers_between_0_and_1(self, pairs, text):
        scores = fuse(candidates(*pairs), evidence(text=text, ideal=1.0))
        assert scores.dtype == np.float64
        assert scores.shape == (len(pairs),)
        assert np.all((scores >= 0) & (scores <= 1))

    @given(st.lists(st.tuples(cosines, shares), min_size=2, max_size=8), st.integers(0, 7))
    def test_a_score_does_not_depend_on_the_other_candidates(self, pairs, chosen):
        one = pairs[chosen % len(pairs)]
        together = fuse(candidates(*pairs), evidence(ideal=1.0))[chosen % len(pairs)]
        assert together == fuse(candidates(one), evidence(ideal=1.0))[0]

    @given(cosines, cosines, shares, shares)
    def test_more_of_both_is_never_less(self, cosine, other_cosine, share, other_share):
        low, high = fuse(
            candidates(
                (min(cosine, other_cosine), min(share, other_share)),
                (max(cosine, other_cosine), max(share, other_share)),
            ),
            evidence(ideal=1.0),
        )
        assert low <= high


class TestAModelThatDoesNotKnowTheLanguage:
    chinese = evidence(text="黑豹队的防守丢了多少分？", languages=CHINESE)

    def test_does_not_overrule_the_words(self):
        assert ranking(candidates((0.7, 1.0), (0.3, 3.0)), self.chinese) == [1, 0]

    def test_still_breaks_ties(self):
        assert ranking(candidates((0.3, 3.0), (0.5, 3.0)), self.chinese) == [1, 0]

    def test_makes_nothing_relevant_by_itself(self):
        (score,) = fuse(candidates((0.7, 0.0)), self.chinese)
        assert score < 0.5

    def test_is_no_concern_with_a_model_that_knows_it(self):
        chinese = evidence(text=self.chinese.text, model_id=MULTILINGUAL_MODEL, languages=CHINESE)
        assert ranking(candidates((0.7, 1.0), (0.3, 3.0)), chinese) == [0, 1]


class TestTrust:
    @pytest.mark.parametrize(
        ("text", "trust"),
        [
            ("Who rang the bell?", 1.0),
            ("Wer hat in der Nacht die Glocke geläutet?", NEIGHBOUR_TRUST),
            ("¿Quién fue el primero en llegar a la casa?", NEIGHBOUR_TRUST),
            ("Ai đã rung chuông trong đêm?", NEIGHBOUR_TRUST),
            ("Кто звонил в колокол?", FOREIGN_TRUST),
            ("Ποιος χτύπησε την καμπάνα;", FOREIGN_TRUST),
            ("من قرع الجرس؟", FOREIGN_TRUST),
            ("घंटी किसने बजाई?", FOREIGN_TRUST),
            ("ใครตีระฆัง", FOREIGN_TRUST),
            ("誰が鐘を鳴らした？", FOREIGN_TRUST),
            ("누가 종을 울렸나요?", FOREIGN_TRUST),
        ],
    )
    def test_follows_the_query_s_language(self, text, trust):
        assert trust_in(ENGLISH_MODEL, text, {}) == trust

    @pytest.mark.parametrize("model_id", [MULTILINGUAL_MODEL, "cohere.embed-multilingual-v3", "someone.else"])
    def test_is_whole_for_a_multilingual_model(self, model_id):
        assert trust_in(model_id, "Кто звонил в колокол?", {"rus": 10}) == 1.0

    @pytest.mark.parametrize(
        "model_id",
        ["cohere.embed-english-v3", "arn:aws:bedrock:eu-west-1::foundation-model/cohere.embed-english-v3"],
    )
    def test_knows_a_model_behind_its_prefixes(self, model_id):
        assert trust_in(model_id, "Кто звонил в колокол?", {"rus": 10}) == FOREIGN_TRUST


class TestTheLanguageOfAQuery:
    def test_is_the_passages_where_the_query_does_not_tell(self):
        assert query_language("Super Bowl 50", {"zho": 240, "eng": 3}) == "zho"

    def test_is_english_where_english_words_speak_for_it(self):
        assert query_language("Where is the Super Bowl?", {"zho": 240}) == "eng"

    def test_is_its_own_in_a_corpus_of_several(self):
        assert query_language("誰が鐘を鳴らした？", {"eng": 700, "jpn": 20}) == "jpn"

    def test_with_nothing_to_go_by_is_english(self):
        assert query_language("", {}) == "eng"

    def test_of_accented_words_among_passages_that_pass_for_english_is_undetermined(self):
        assert query_language("chuông đêm hồ nước", {"eng": 200}) == "und"


class TestThePartsAlone:
    def test_a_cosine_has_its_calibrated_score(self):
        (score,) = dense_score(np.array([0.4], np.float32), ENGLISH_MODEL)
        assert score == pytest.approx(calibration_of(ENGLISH_MODEL).score(0.4), abs=1e-6)

    def test_a_match_of_most_words_is_relevant_and_of_hardly_any_is_not(self):
        most, hardly = keyword_score(np.array([6.0, 0.1], np.float32), evidence(ideal=10.0))
        assert most > 0.9
        assert hardly < 0.5

    def test_the_same_share_of_a_longer_query_scores_the_same(self):
        short = keyword_score(np.array([3.0], np.float32), evidence(ideal=6.0))
        long = keyword_score(np.array([15.0], np.float32), evidence(ideal=30.0))
        assert short == long

    def test_a_query_without_words_finds_nothing_by_words(self):
        assert keyword_score(np.zeros(2, np.float32), evidence(ideal=0.0)).tolist() == [0.0, 0.0]
