"""Answering every question of a set with every generator, over every way to search, and measuring what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from cicada.errors import CicadaError
from cicada.models.ports import TextModel
from cicada_evaluation.answers.cases import Case, Unanswerable, cases_of
from cicada_evaluation.answers.finding import FoundPassages, Searching, find, without_relevant
from cicada_evaluation.answers.judging import AnswerJudgement, Judge
from cicada_evaluation.answers.scoring import score
from cicada_evaluation.answers.summing import MeasuredAnswer, summed
from cicada_evaluation.answers.writing import QuestionOutcome, write_answer
from cicada_evaluation.embedding import QueryEmbedder
from cicada_evaluation.judged import JudgedSet, Query, judged_id
from cicada_evaluation.report import AnswerResult, AnswersResult, SetResult
from cicada_evaluation.running import EvaluationListener, Searched


@dataclass(frozen=True)
class AnswersPlan:
    """What to measure."""

    modes: tuple[str, ...]  # ways to search, pipelines among them
    generators: tuple[TextModel, ...]
    judge: Judge | None = None
    unanswerable: tuple[Unanswerable, ...] = ()  # where questions without anything relevant come from
    limit: int | None = None
    searching: Searching = field(default_factory=Searching)
    at_once: int = 1
    """Answers that are written at the same time: with more than one, latencies are those of a busy system."""
    seed: int = 0


def evaluate_answers(
    judged: JudgedSet, plan: AnswersPlan, searched: Searched, embedder: QueryEmbedder, told: EvaluationListener
) -> SetResult:
    """Answer and measure. What goes wrong with one question is counted, and the others go on.

    Args:
        judged: the set.
        plan: what to measure.
        searched: the index.
        embedder: the model that the index is embedded with.
        told: is told how it goes.

    Raises:
        CorpusInvalid: a file of unanswerable questions cannot be read.
    """
    cases = cases_of(judged, plan.unanswerable, plan.limit)
    texts = {item.passage.id: item.passage.text for item in judged.corpus}
    answers: list[AnswersResult] = []
    with _at_once(plan.at_once) as mapped:
        for mode in plan.modes:
            found = _find(mode, cases, plan, searched, embedder, texts, told)
            for model in plan.generators:
                stage = f"{mode}+{model.model_id}"

                def answer(at: int, model: TextModel = model, found: Sequence[FoundPassages] = found) -> MeasuredAnswer:
                    return _answer(cases[at], found[at], model, plan, searched)

                written: list[MeasuredAnswer] = []
                for one in mapped(answer, range(len(cases))):
                    written.append(one)
                    told(stage, len(written), len(cases))
                answers.append(summed(mode, model.model_id, found, written, plan.judge, plan.seed))
    return SetResult(
        name=judged.name,
        kind=judged.kind,
        judgements_digest=judged.judgements_digest(),
        corpus_digest=judged.corpus_digest,
        left_out=judged.left_out,
        notes=judged.notes,
        indexing=searched.indexing,
        embedding=None,
        modes=(),
        answers=tuple(answers),
    )


@contextmanager
def _at_once(
    count: int,
) -> Iterator[Callable[[Callable[[int], MeasuredAnswer], Sequence[int]], Iterator[MeasuredAnswer]]]:
    """A ``map`` that keeps the order, over so many threads; what has not begun when the block is left never does."""
    pool = ThreadPoolExecutor(count, thread_name_prefix="answer")
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _find(
    mode: str,
    cases: Sequence[Case],
    plan: AnswersPlan,
    searched: Searched,
    embedder: QueryEmbedder,
    texts: Mapping[str, str],
    told: EvaluationListener,
) -> list[FoundPassages]:
    """What is found for each question: one after the other, as a warm function searches."""
    retriever = searched.retriever_of(mode)

    def search(query: Query) -> FoundPassages:
        return find(query, retriever, embedder, mode=mode, collections=searched.collections, searching=plan.searching)

    search(cases[0].query)  # the first search of a process pays for connections and imports
    known: dict[tuple[str, tuple[str, ...]], FoundPassages] = {}
    found = []
    for case in cases:
        key = case.query.text, case.query.filters.episodes
        if key not in known:
            known[key] = search(case.query)
        relevant = {name for name, gain in case.relevant.items() if gain > 0}
        found.append(without_relevant(known[key], relevant, texts.get) if case.kind == "removed" else known[key])
        told(mode, len(found), len(cases))
    return found


def _answer(
    case: Case, found: FoundPassages, model: TextModel, plan: AnswersPlan, searched: Searched
) -> MeasuredAnswer:
    written = write_answer(case, found, model, plan.searching, collections=searched.collections)
    try:
        return _measured(case, found, written, plan.judge)
    except Exception as error:  # as in writing: a bug in a measure must not cost the answers that are paid for
        failed = QuestionOutcome(
            sources=written.sources,
            text=written.text,
            failure=CicadaError.code,
            reason=f"{type(error).__name__}: {error}",
            spent=written.spent,
        )
        return _measured(case, found, failed, None)


def _measured(case: Case, found: FoundPassages, written: QuestionOutcome, judge: Judge | None) -> MeasuredAnswer:
    gains = _gains(case, found, written)
    values, reading = score(case, written, {passage: gain for passage, (_, gain) in gains.items()})
    judgement = _judgement(case, written, judge)
    judged = judgement.judged if judgement else None
    if judged is not None:
        values |= {
            "judge_faithfulness": judged.faithfulness / 10,
            "judge_relevance": judged.relevance / 10,
            "judge_completeness": judged.completeness / 10,
        }
    spent = written.spent
    result = AnswerResult(
        id=case.query.id,
        kind=case.kind,
        question=case.query.text,
        answer=None if written.answered is None else written.text,
        failure=written.failure,
        reason=written.reason,
        refused=reading.refuses if reading else None,
        sources=tuple(name for name, _ in gains.values()),
        values=values,
        not_attributed=bool(written.answered and written.answered.not_attributed),
        usd=spent.usd,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        first_piece_ms=written.first_piece_ms,
        answer_ms=written.answer_ms,
        judged=judged,
    )
    nothing_relevant = case.answerable and not any(gain > 0 for _, gain in gains.values())
    return MeasuredAnswer(result, judgement, nothing_relevant)


def _gains(case: Case, found: FoundPassages, written: QuestionOutcome) -> dict[str, tuple[str, int]]:
    """By passage of the prompt: what the judgements call it, and its gain."""
    if found.result is None:
        return {}
    names = {hit.passage.id: judged_id(hit.passage, found.result.engine) for hit in found.result.hits}
    return {
        source.passage_id: (names[source.passage_id], case.relevant.get(names[source.passage_id], 0))
        for source in written.sources
    }


def _judgement(case: Case, written: QuestionOutcome, judge: Judge | None) -> AnswerJudgement | None:
    if judge is None or written.answered is None or not case.answerable or not written.sources:
        return None
    return judge.judge(case.query.text, written.text, written.sources, case.gold)
