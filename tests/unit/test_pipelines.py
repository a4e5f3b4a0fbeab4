"""The pipelines: what each stage adds, and what is left when one fails or is late."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from cicada.corpus.passages import ScriptLocator
from cicada.errors import IndexMissing, IndexUnavailable, ModelBusy, ModelUnavailable
from cicada.models.embedding_cache import CachingEmbedder
from cicada.retrieval.facets import FacetCounts, FieldCounts
from cicada.retrieval.pipelines.api import ErrorBody, RetrieveResponse
from cicada.retrieval.pipelines.expansion import HypotheticalPassage, Wordings
from cicada.retrieval.pipelines.pipeline import MAX_RERANKED
from cicada.retrieval.ports import Filters
from cicada.text.tokens import estimated_tokens
from tests.support.embedding import WordEmbedder
from tests.support.passages import make_passage
from tests.support.pipelines import (
    MODEL_ID,
    ScriptedModel,
    ScriptedReranker,
    ScriptedRetriever,
    degraded,
    document,
    pipelines_over,
    result,
    run,
    writing,
)

A, B, C, D = (document(name) for name in "abcd")
MADE_UP = "The made-up passage."


def error_of(response: RetrieveResponse) -> ErrorBody:
    assert response.error is not None
    return response.error


def ids(response):
    return [one.id for one in response.documents]


def lacks(response):
    return [(one.stage, one.code) for one in response.degraded]


@pytest.fixture
def held():
    """What a late model or search waits for; let go at the end, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


# --- standard ---


def test_standard_is_one_search_with_what_was_asked_for():
    retriever = ScriptedRetriever({"fog bell": (A, B)})
    response = run(pipelines_over(retriever), pipeline="standard", top_k=7, min_score=0.3, workflow_id="w1")
    (asked,) = retriever.asked
    assert (asked.top_k, asked.min_score, asked.mode) == (7, 0.3, "hybrid")
    assert asked.filters == Filters(metadata={"workflow_id": ("w1",)})
    assert (response.success, ids(response), response.count) == (True, ["a", "b"], 2)
    assert (response.queries_used, response.total, response.index_version) == (("fog bell",), 41, "v1")
    assert (response.reranked, response.hyde_used, response.degraded) == (False, False, ())
    assert list(response.timings_ms) == ["search", "captions", "answers"]


@pytest.mark.parametrize(
    ("search_type", "mode"), [("vector", "dense"), ("keyword", "keyword"), ("hybrid", "hybrid"), ("semantic", "hybrid")]
)
def test_a_search_type_is_a_mode_of_the_search(search_type, mode):
    retriever = ScriptedRetriever({"fog bell": (A,)})
    assert run(pipelines_over(retriever), pipeline="standard", search_type=search_type).success
    assert retriever.asked[0].mode == mode


def test_a_document_says_where_it_comes_from_and_what_is_known_of_it():
    passage = document(
        "a",
        "The fog bell rings twice.",
        metadata={"workflow_id": "w1", "doc_type": "pdf", "author": "Ines"},
        summary="Of the bell.",
        entities=("Ines",),
        codes=("FB-2",),
    )
    (found,) = run(pipelines_over(ScriptedRetriever({"fog bell": (passage,)})), pipeline="standard").documents
    assert (found.id, found.title, found.content, found.doc_type) == ("a", "About a", passage.text, "pdf")
    about = found.metadata
    assert (about.source, about.page, about.chunk_id, about.workflow_id) == ("a.pdf", 2, "a", "w1")
    assert (about.summary, about.entities, about.entity_codes) == ("Of the bell.", ("Ines",), ("FB-2",))
    assert about.extra == {"author": "Ines"}
    (caption,) = about.captions
    assert caption.text == "The fog bell rings twice."
    assert [caption.text[one.start : one.end] for one in caption.highlights] == ["fog", "bell"]


def test_a_line_of_a_script_is_a_document_too():
    line = make_passage(3)
    assert isinstance(line.locator, ScriptLocator)
    (found,) = run(pipelines_over(ScriptedRetriever({"fog bell": (line,)})), pipeline="standard").documents
    assert (found.doc_type, found.title) == ("script", line.locator.label())
    assert (found.metadata.source, found.metadata.page, found.metadata.section) == ("ep1", None, "Episode ep1 > ep1-c1")


def test_the_sentences_of_captions_are_accounted_for():
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A, B)})), pipeline="standard")
    (use,) = response.model_uses
    assert (use.stage, use.model_id, use.calls) == ("captions", "test.words", 2)
    assert use.input_tokens == sum(estimated_tokens(one.text) for one in (A, B))


def test_captions_leave_the_queries_that_are_remembered():
    embedder = WordEmbedder()
    remembering = CachingEmbedder(embedder, size=4)
    remembering.embed(["fog bell"], time_budget_s=1)
    documents = tuple(document(f"d{n}", f"The fog bell {n} rings.") for n in range(10))
    over = pipelines_over(ScriptedRetriever({"fog bell": documents}), embedder=remembering)
    assert run(over, pipeline="standard").documents[9].metadata.captions
    remembering.embed(["fog bell"], time_budget_s=1)
    assert embedder.asked.count("fog bell") == 1


def test_captions_can_be_switched_off():
    embedder = WordEmbedder()
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,)}), embedder=embedder)
    response = run(over, pipeline="standard", enable_captions=False)
    assert (response.documents[0].metadata.captions, list(response.timings_ms)) == ((), ["search"])
    assert embedder.asked == []


def test_semantic_ranking_puts_the_passage_with_the_nearest_sentence_first():
    far, near = document("far", "Nobody knows the tides. Bread is baked."), document("near", "Oats. The fog bell.")
    over = pipelines_over(ScriptedRetriever({"fog bell": (far, near)}))
    plain, semantic = (run(over, pipeline="standard", search_type=kind) for kind in ("hybrid", "semantic"))
    assert ids(plain) == ["far", "near"]
    assert plain.documents[0].reranker_score is None
    assert ids(semantic) == ["near", "far"]
    first, second = (document.reranker_score for document in semantic.documents)
    assert first is not None
    assert second is not None
    assert 1 >= first > second >= 0
    assert first == semantic.documents[0].metadata.captions[0].score
    assert (semantic.documents[0].score, semantic.documents[1].score) == (0.89, 0.9)


def test_a_caption_that_is_near_enough_answers_by_itself_unless_it_asks():
    asks, tells = document("asks", "Fog bell?"), document("tells", "Fog bell.")
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (asks, tells)})), pipeline="standard")
    (answer,) = response.semantic_answers
    assert (answer.document_id, answer.text) == ("tells", "Fog bell.")


def test_captions_that_cannot_be_made_are_left_out_and_named():
    class Throttled(WordEmbedder):
        def embed(self, texts, *, time_budget_s):
            raise ModelBusy("later")

    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A,)}), embedder=Throttled()), pipeline="standard")
    assert (response.success, ids(response), lacks(response)) == (True, ["a"], [("captions", "model_busy")])


def test_what_the_search_says_of_itself_is_passed_on():
    retriever = ScriptedRetriever({"fog bell": (A,)}, degraded=degraded("words_only"))
    assert lacks(run(pipelines_over(retriever), pipeline="standard")) == [("search", "words_only")]


def test_an_engine_that_returns_fewer_than_are_wanted_is_named_and_one_that_gives_fewer_to_choose_from_is_not():
    capped = degraded("top_k_capped")
    over = pipelines_over(ScriptedRetriever({"fog bell": (A, B)}, degraded=capped), reranker=ScriptedReranker(len))
    assert lacks(run(over, pipeline="standard", top_k=3)) == [("search", "top_k_capped")]
    assert lacks(run(over, pipeline="rerank", top_k=2)) == []


def test_without_its_search_a_pipeline_fails_and_says_why():
    response = run(pipelines_over(ScriptedRetriever({"fog bell": IndexMissing("nothing there")})), pipeline="standard")
    assert (response.success, response.documents, response.count) == (False, (), 0)
    assert (error_of(response).code, error_of(response).retryable) == ("index_missing", False)
    assert "search" in response.timings_ms


def test_a_search_that_is_late_fails_the_pipeline(held):
    response = run(pipelines_over(ScriptedRetriever({"fog bell": held})), pipeline="standard", time_budget_s=0.05)
    assert (response.success, error_of(response).code, error_of(response).retryable) == (False, "out_of_time", True)


@pytest.mark.parametrize("query", ["  ", "\u200d", "\u3164 \ufe0f"])
def test_a_blank_query_is_refused_by_its_field(query):
    response = run(pipelines_over(ScriptedRetriever({})), query=query)
    assert (error_of(response).code, error_of(response).message) == ("invalid_request", "query: must not be blank")


def test_a_filter_that_nothing_can_pass_is_refused_not_dropped():
    retriever = ScriptedRetriever({"fog bell": (A,)})
    request: dict[str, Any] = {"workflow_id": "w1", "filters": {"metadata": {"workflow_id": ("w2",)}}}
    response = run(pipelines_over(retriever), **request)
    assert (error_of(response).code, retriever.asked) == ("invalid_request", [])
    narrowed = run(pipelines_over(retriever), workflow_id="w1", filters={"metadata": {"workflow_id": ("w1", "w2")}})
    assert narrowed.success
    assert retriever.asked[0].filters.metadata == {"workflow_id": ("w1",)}


def test_a_bug_is_no_response():
    with pytest.raises(ZeroDivisionError):
        run(pipelines_over(ScriptedRetriever({"fog bell": ZeroDivisionError()})))


# --- rerank ---


def test_rerank_chooses_among_three_times_as_many():
    retriever = ScriptedRetriever({"fog bell": (A, B, C)})
    reranker = ScriptedReranker({A.text: 0.1, B.text: 0.3, C.text: 0.9}.__getitem__)
    response = run(pipelines_over(retriever, reranker=reranker), pipeline="rerank", top_k=2)
    assert retriever.asked[0].top_k == 6
    assert reranker.asked == [("fog bell", (A.text, B.text, C.text))]
    assert (ids(response), response.reranked) == (["c", "b"], True)
    assert [(one.rerank_score, one.score) for one in response.documents] == [(0.9, 0.88), (0.3, 0.89)]
    use = response.model_uses[0]
    assert (use.stage, use.model_id, use.calls, use.cost_usd) == ("rerank", "amazon.rerank-v1:0", 1, 0.001)


def test_a_re_ranking_that_is_switched_off_needs_no_more_passages_than_are_returned():
    retriever, reranker = ScriptedRetriever({"fog bell": (A, B)}), ScriptedReranker(lambda _: 1.0)
    response = run(pipelines_over(retriever, reranker=reranker), pipeline="rerank", top_k=2, enable_rerank=False)
    assert (retriever.asked[0].top_k, reranker.asked) == (2, [])
    assert (response.reranked, response.degraded, response.documents[0].rerank_score) == (False, (), None)


def test_without_a_re_ranker_the_order_stays_and_that_is_said():
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A, B)})), pipeline="rerank")
    assert (ids(response), response.reranked) == (["a", "b"], False)
    assert lacks(response) == [("rerank", "not_configured")]


def test_a_re_ranker_that_fails_is_named_and_its_cost_is_not_known():
    reranker = ScriptedReranker(lambda _: 1.0, error=ModelUnavailable("down"))
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A, B)}), reranker=reranker), pipeline="rerank")
    assert (ids(response), response.reranked) == (["a", "b"], False)
    assert lacks(response) == [("rerank", "model_unavailable")]
    assert (response.model_uses[0].calls, response.model_uses[0].cost_usd) == (1, None)


def test_a_re_ranker_that_has_used_up_its_time_was_late_whatever_it_says():
    now_s = [0.0]

    class Slow(ScriptedReranker):
        def rerank(self, query, texts, *, time_budget_s, call_scope):
            now_s[0] += time_budget_s
            return super().rerank(query, texts, time_budget_s=time_budget_s, call_scope=call_scope)

    reranker = Slow(lambda _: 1.0, error=ModelUnavailable("the passages were not marked in time"))
    over = pipelines_over(ScriptedRetriever({"fog bell": (A, B)}), reranker=reranker, clock=lambda: now_s[0])
    response = run(over, pipeline="rerank", enable_captions=False)
    assert (ids(response), response.reranked) == (["a", "b"], False)
    assert lacks(response) == [("rerank", "out_of_time")]


def test_a_model_that_had_no_time_is_not_unavailable():
    now_s = [0.0]

    def without_time(prompt):
        now_s[0] += 0.001
        return ModelUnavailable("no time left to call the model")

    over = pipelines_over(
        ScriptedRetriever({"fog bell": (A,)}), model=ScriptedModel({Wordings: without_time}), clock=lambda: now_s[0]
    )
    response = run(over, enable_rerank=False, enable_hyde=False, enable_captions=False, time_budget_s=0.002)
    assert lacks(response) == [("query_expansion", "out_of_time")]


def test_passages_that_could_not_be_judged_keep_their_places():
    reranker = ScriptedReranker({A.text: 0.1, B.text: 0.5, C.text: 0.2, D.text: 0.9}.__getitem__, unscored=(1,))
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A, B, C, D)}), reranker=reranker), pipeline="rerank")
    assert ids(response) == ["d", "b", "c", "a"]
    assert [one.rerank_score for one in response.documents] == [0.9, None, 0.2, 0.1]
    assert lacks(response) == [("rerank", "answer_malformed")]
    assert "1 of 4 passages" in response.degraded[0].message


def test_of_very_many_candidates_the_first_are_re_ranked():
    many = [document(f"d{number}") for number in range(MAX_RERANKED + 5)]
    reranker = ScriptedReranker(lambda text: 0.5 + 0.4 * (text == many[MAX_RERANKED - 1].text))
    over = pipelines_over(ScriptedRetriever({"fog bell": many}), reranker=reranker)
    response = run(over, pipeline="rerank", top_k=1000, enable_captions=False)
    assert len(reranker.asked[0][1]) == MAX_RERANKED
    assert (ids(response)[0], ids(response)[-1]) == (many[MAX_RERANKED - 1].id, many[-1].id)
    assert response.documents[-1].rerank_score is None


# --- advanced ---


def test_advanced_searches_for_other_wordings_and_a_made_up_passage_and_fuses_them():
    retriever = ScriptedRetriever({"fog bell": (A, B), "foghorn": (C, B), "mist signal": (B,), MADE_UP: (D,)})
    model = writing("foghorn", "mist signal")
    response = run(pipelines_over(retriever, model=model), enable_rerank=False, top_k=5)
    assert response.queries_used == ("fog bell", "foghorn", "mist signal")
    assert response.hyde_used
    assert ids(response)[0] == "b"  # all wordings have found it
    assert sorted(ids(response)) == ["a", "b", "c", "d"]
    assert all(0 < one.score <= 1 for one in response.documents)
    assert {query.mode for query in retriever.asked if query.text != MADE_UP} == {"hybrid"}
    assert retriever.query(MADE_UP).mode == "dense"
    assert len({query.filters.metadata.get("workflow_id") for query in retriever.asked}) == 1
    assert {(use.stage, use.calls, use.input_tokens) for use in response.model_uses} == {
        ("query_expansion", 1, 100),
        ("hyde", 1, 100),
        ("captions", 4, 20),
    }
    writers = [use for use in response.model_uses if use.model_id == MODEL_ID]
    assert [use.cost_usd for use in writers] == [pytest.approx(100 * 0.035e-6 + 10 * 0.14e-6)] * 2


def test_every_search_of_a_request_has_its_filters():
    retriever = ScriptedRetriever({})
    run(pipelines_over(retriever, model=writing("foghorn")), workflow_id="w1", filters={"collections": ("shelf",)})
    assert len(retriever.asked) == 3
    assert all(one.filters == Filters(("shelf",), metadata={"workflow_id": ("w1",)}) for one in retriever.asked)


def test_a_made_up_passage_is_never_shown():
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,), MADE_UP: (B,)}), model=writing("foghorn"))
    assert MADE_UP not in run(over).model_dump_json()


def test_where_no_wording_finds_anything_a_made_up_passage_does_not_either():
    response = run(pipelines_over(ScriptedRetriever({MADE_UP: (A, B)}), model=writing("foghorn")))
    assert (response.success, response.documents) == (True, ())


def test_a_search_by_words_has_no_use_for_a_made_up_passage():
    model = writing("foghorn")
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A,)}), model=model), search_type="keyword")
    assert (response.hyde_used, len(model.prompts)) == (False, 1)
    assert ("hyde", "not_configured") not in lacks(response)


def test_what_goes_by_vectors_alone_is_left_out_in_a_language_that_the_model_does_not_know():
    embedder, question = WordEmbedder("local.all-minilm-l6-v2"), "谁锁上了船屋的门"
    over = pipelines_over(ScriptedRetriever({question: (A, B)}), model=writing(), embedder=embedder)
    response = run(over, question, search_type="semantic", enable_query_expansion=False, enable_rerank=False)
    assert (ids(response), response.hyde_used, response.documents[0].reranker_score) == (["a", "b"], False, None)
    assert lacks(response) == [("hyde", "unknown_language"), ("semantic_ranking", "unknown_language")]


def test_each_writing_stage_can_be_switched_off():
    model = writing("foghorn")
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,)}), model=model)
    response = run(over, enable_hyde=False, enable_query_expansion=False, enable_rerank=False)
    assert (model.prompts, response.degraded, response.documents[0].score) == ([], (), 0.9)
    assert list(response.timings_ms) == ["search", "captions", "answers"]


def test_without_its_models_advanced_is_the_search_and_names_what_it_lacks():
    response = run(pipelines_over(ScriptedRetriever({"fog bell": (A,)})))
    assert (response.success, ids(response), response.queries_used) == (True, ["a"], ("fog bell",))
    assert lacks(response) == [
        ("query_expansion", "not_configured"),
        ("hyde", "not_configured"),
        ("rerank", "not_configured"),
    ]


def test_a_writing_stage_that_fails_leaves_the_other_standing():
    retriever = ScriptedRetriever({"fog bell": (A,), "foghorn": (B,)})
    over = pipelines_over(retriever, model=writing("foghorn", passage=ModelBusy("later")))
    response = run(over, enable_rerank=False, enable_captions=False)
    assert (response.queries_used, response.hyde_used) == (("fog bell", "foghorn"), False)
    assert lacks(response) == [("hyde", "model_busy")]
    assert {use.stage: use.cost_usd is None for use in response.model_uses} == {"query_expansion": False, "hyde": True}


def test_a_late_model_is_stopped_left_out_and_named(held):
    model = ScriptedModel({Wordings: held, HypotheticalPassage: HypotheticalPassage(passage=MADE_UP)})
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,), MADE_UP: (B,)}), model=model)
    response = run(over, time_budget_s=0.6, enable_rerank=False)
    assert model.stopped.is_set()
    assert (response.queries_used, response.hyde_used) == (("fog bell",), True)
    assert lacks(response) == [("query_expansion", "out_of_time")]
    late = next(use for use in response.model_uses if use.stage == "query_expansion")
    assert (late.calls, late.cost_usd) == (1, None)


def test_a_search_beside_the_querys_own_can_fail():
    retriever = ScriptedRetriever({"fog bell": (A,), "foghorn": IndexUnavailable("gone"), MADE_UP: (B,)})
    response = run(pipelines_over(retriever, model=writing("foghorn")), enable_rerank=False)
    assert (response.queries_used, sorted(ids(response))) == (("fog bell",), ["a", "b"])
    assert lacks(response) == [("search", "index_unavailable")]


def test_a_search_beside_the_querys_own_can_be_late(held):
    retriever = ScriptedRetriever({"fog bell": (A,), "foghorn": held})
    over = pipelines_over(retriever, model=writing("foghorn"))
    response = run(over, enable_rerank=False, enable_hyde=False, time_budget_s=0.6)
    assert (ids(response), lacks(response)) == (["a"], [("search", "out_of_time")])


def test_one_response_is_of_one_version():
    retriever = ScriptedRetriever({"fog bell": (A,), "foghorn": result(B, version="v2")})
    response = run(pipelines_over(retriever, model=writing("foghorn")), enable_rerank=False, enable_hyde=False)
    assert (ids(response), response.index_version) == (["a"], "v1")
    assert lacks(response) == [("search", "index_changed")]


def test_an_engine_without_a_search_by_meaning_is_not_given_a_made_up_passage_for_an_answer():
    by_words = result(B, degraded=degraded("mode_fallback"))
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,), MADE_UP: by_words}), model=writing("foghorn"))
    response = run(over, enable_rerank=False)
    assert (ids(response), response.hyde_used) == (["a"], False)
    assert ("search", "mode_fallback") in lacks(response)


# --- facets ---


class Counter:
    def __init__(self, degraded=()):
        self.asked = []
        self.degraded = degraded

    def count(self, fields, filters, *, readable, limit):
        self.asked.append((tuple(fields), filters, limit))
        counts = tuple(FieldCounts(field, 3, (("FB-2", 5), ("FB-1", 2))) for field in fields)
        return FacetCounts("v1", 9, counts, self.degraded)


def test_facets_are_counts_without_documents():
    counter, retriever = Counter(degraded("partial_index")), ScriptedRetriever({})
    response = run(pipelines_over(retriever, facets=counter), query="", pipeline="facets", workflow_id="w1")
    assert counter.asked == [(("entity_codes",), Filters(metadata={"workflow_id": ("w1",)}), 1000)]
    (facet,) = response.facets
    assert (facet.field, facet.unique, [(one.value, one.count) for one in facet.values]) == (
        "entity_codes",
        3,
        [("FB-2", 5), ("FB-1", 2)],
    )
    assert (response.success, response.documents, response.total, response.queries_used) == (True, (), 9, ())
    assert (lacks(response), retriever.asked) == ([("facets", "partial_index")], [])


def test_facets_need_something_that_counts():
    response = run(pipelines_over(ScriptedRetriever({})), query="", pipeline="facets")
    assert (response.success, error_of(response).code) == (False, "settings_invalid")


def test_the_model_that_is_named_in_a_use_is_the_one_that_was_called():
    over = pipelines_over(ScriptedRetriever({"fog bell": (A,)}), model=writing("foghorn"))
    uses = run(over, enable_rerank=False).model_uses
    assert {use.stage: use.model_id for use in uses} == {
        "query_expansion": MODEL_ID,
        "hyde": MODEL_ID,
        "captions": "test.words",
    }
