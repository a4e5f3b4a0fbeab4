"""Wires the answer worker: the one place that chooses implementations."""

from __future__ import annotations

from typing import Any, Literal, get_args
from uuid import uuid4

import boto3
from agents import build_agents

from cicada.answering.attempt import AttemptRunner
from cicada.answering.cag import CagStrategy
from cicada.answering.direct import DirectStrategy
from cicada.answering.hybrid import HybridStrategy
from cicada.answering.judge import CitationJudge
from cicada.answering.knowledge import build_knowledge_of, knowledge_shape
from cicada.answering.names import QuestionNames
from cicada.answering.prompt import PROMPT_VERSION
from cicada.answering.rag import RagStrategy
from cicada.attempts.budgets import RequestBudget, retrieval_share
from cicada.attempts.strategy import AnswerSink
from cicada.breakers.dynamodb import BREAKER_CONFIG, DynamoDbBreakerStore
from cicada.breakers.guards import (
    GuardedCache,
    GuardedEmbedder,
    GuardedForms,
    GuardedModel,
    GuardedReranker,
    GuardedRetriever,
)
from cicada.breakers.registry import BreakerRegistry, Happening
from cicada.citations.judging import JUDGE_MAX_TOKENS
from cicada.conversation.conversation import Conversation
from cicada.conversation.sessions import SESSION_CONFIG, DynamoDbSessions
from cicada.conversation.turns import Bounds
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestSpend
from cicada.index.access_rules import StoredAccessRules
from cicada.index.reader import IndexReader
from cicada.index.s3_direct import RULES_PATIENCE, store_for_answers
from cicada.metrics import BREAKER_OPENED, CACHE_HITS, COST_USD, GUARDRAIL_FAILURES, POSTS_REJECTED
from cicada.models.bedrock import QUERY_READ_TIMEOUT_S, bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.embedding_cache import CachingEmbedder
from cicada.models.factory import ModelFactory
from cicada.models.guardrail import Guardrail, GuardrailWatch
from cicada.models.ports import Embedder, TextModel
from cicada.models.retries import QUERY
from cicada.retrieval.engine import EngineSettings, build_retriever
from cicada.retrieval.names import NameChecker
from cicada.retrieval.ports import Retriever
from cicada.retrieval.shards import ShardRetriever
from cicada.semantic_cache.cache import NoEarlierAnswers, SemanticCache
from cicada.semantic_cache.decision import CONFIRM_MAX_TOKENS, Confirm, Thresholds, confirming
from cicada.semantic_cache.dynamodb import CACHE_CONFIG, DynamoDbCacheStore
from cicada.settings import AnswerSettings
from cicada.telemetry import report

GroundedStrategy = Literal["hybrid", "rag", "cag"]


LOOK_PATIENCE_S = 1.0
"""Longest wait for a look that is due. It runs while the question is embedded, so it seldom costs time; without the
wait, a function that was idle would answer from the version that it held before."""


def build(settings: AnswerSettings) -> AttemptRunner:
    """The runner of a worker's attempts."""
    watch = GuardrailWatch(lambda: report({GUARDRAIL_FAILURES: 1}))
    store = store_for_answers(settings.index_bucket)
    reader = IndexReader(
        store,
        embedding_model_id=settings.embedding_model_id,
        dimensions=settings.embedding_dimensions,
        patience_s=LOOK_PATIENCE_S,
    )
    reader.refresh_soon()  # the index is read while the rest of this function starts
    breakers = BreakerRegistry(
        DynamoDbBreakerStore(boto3.client("dynamodb", config=BREAKER_CONFIG), settings.requests_table),
        worker_id=uuid4().hex,
        on_happening=_report_happening,
    )
    breakers.refresh_soon()
    dynamodb = boto3.client("dynamodb", config=STORE_CONFIG)
    embedder = _embedder(settings, breakers)
    searches = build_retriever(
        EngineSettings(
            settings.retrieval_engine,
            settings.s3_vectors_index_arn,
            settings.kendra_index_id,
            settings.engine_budget_s,
        ),
        shards=lambda model: ShardRetriever(reader, model),
        embedder=embedder,
        store=store,
        client=boto3.client,
    )
    models = _models(settings, watch)
    # One permit covers all searches of a pipeline: separate ones would compete for the breaker's probe.
    retriever = GuardedRetriever(_retriever(settings, searches, embedder, models, breakers), breakers)
    kept = _kept_answers(settings, embedder, models, breakers) if settings.cache_enabled else None
    cache = NoEarlierAnswers() if kept is None else GuardedCache(kept, breakers)
    writers = _Writers(settings, models, breakers)
    judge = _judge(settings, models, breakers)
    top_k, min_score, prompt_passages = settings.top_k, settings.min_score, settings.prompt_passages
    conversation = Conversation(
        DynamoDbSessions(boto3.client("dynamodb", config=SESSION_CONFIG), settings.requests_table),
        writers.small(),
        bounds=Bounds(
            turns=settings.conversation_max_turns,
            tokens=settings.conversation_max_tokens,
            age_s=settings.conversation_max_age_s,
        ),
    )
    sinks: list[AnswerSink] = [conversation] if settings.conversation_enabled else []
    if kept is not None:
        sinks.append(kept)
    agents = build_agents(settings, retriever, models, breakers, judge, bedrock=_bedrock)
    return AttemptRunner(
        DynamoDbLog(dynamodb, settings.requests_table),
        ApiGatewayConnections(
            boto3.client("apigatewaymanagementapi", config=POST_CONFIG), on_rejected=lambda: report({POSTS_REJECTED: 1})
        ),
        {
            "hybrid": HybridStrategy(
                retriever,
                cache,
                writers.of("hybrid"),
                top_k=top_k,
                min_score=min_score,
                prompt_passages=prompt_passages,
                knowledge=build_knowledge_of(settings, reader, ShardRetriever(reader, embedder), models, breakers),
                judge=judge,
            ),
            "rag": RagStrategy(
                retriever,
                cache,
                writers.of("rag"),
                top_k=top_k,
                min_score=min_score,
                prompt_passages=prompt_passages,
                judge=judge,
            ),
            "cag": CagStrategy(retriever, cache, writers.of("cag"), prompt_passages=prompt_passages, judge=judge),
            "direct": DirectStrategy(writers.last_resort()),
            **agents.strategies,
        },
        access=StoredAccessRules(store_for_answers(settings.index_bucket, patience=RULES_PATIENCE), settings.access),
        names=QuestionNames(NameChecker(reader)) if settings.retrieval_engine != "kendra" else None,
        conversation=conversation if settings.conversation_enabled else None,
        breakers=breakers,
        sinks=sinks,
        changes=agents.changes,
        unchecked=watch.take_unchecked,
        on_spent=_report_spent,
        budget=RequestBudget(
            settings.request_time_s,
            settings.request_tokens,
            settings.request_cost_usd,
            retrieval_share=retrieval_share(
                settings.retrieval_pipeline,
                knowledge=settings.knowledge_enabled,
                confirms=settings.cache_confirm == "model",
            ),
        ),
    )


def _kept_answers(
    settings: AnswerSettings, embedder: Embedder, models: ModelFactory, breakers: BreakerRegistry
) -> SemanticCache:
    return SemanticCache(
        DynamoDbCacheStore(boto3.client("dynamodb", config=CACHE_CONFIG), settings.requests_table),
        embedder,
        sharing=settings.cache_sharing,
        by_groups=settings.retrieval_engine == "kendra",
        thresholds=_thresholds(settings),
        confirm=_confirm(settings, models, breakers),
        generation_model_id=_version_of_writers(settings, models),
        prompt_version=_version_of_answers(settings),
        ttl_s=settings.cache_ttl_s,
        max_entries=settings.cache_max_entries,
        on_look_up=lambda use: report({CACHE_HITS: int(use != "miss")}),
    )


def _report_happening(_: str, happening: Happening) -> None:
    if happening == "opened":
        report({BREAKER_OPENED: 1})


def _report_spent(spent: RequestSpend) -> None:
    if spent.calls:
        report({COST_USD: spent.known_usd})


def _judge(settings: AnswerSettings, models: ModelFactory, breakers: BreakerRegistry) -> CitationJudge | None:
    """The judge of citations; None if only code checks them."""
    if settings.citations_judge == "rules":
        return None
    model_id = settings.citations_judge_model_id or settings.direct_model_id
    model = GuardedForms(models.structured(model_id, max_tokens=JUDGE_MAX_TOKENS), breakers)
    return CitationJudge(model, settings.citations_judge_time_s, settings.citations_judge_cost_usd)


def _confirm(settings: AnswerSettings, models: ModelFactory, breakers: BreakerRegistry) -> Confirm | None:
    if settings.cache_confirm == "off":
        return None
    model = models.structured(settings.direct_model_id, max_tokens=CONFIRM_MAX_TOKENS)
    return confirming(GuardedForms(model, breakers))


def _version_of_writers(settings: AnswerSettings, models: ModelFactory) -> str:
    """The models that write grounded answers: cached answers are replayed only under the same models."""
    by_strategy = {name: models.version(_writer(settings, name)) for name in get_args(GroundedStrategy)}
    if len(set(by_strategy.values())) == 1:
        return by_strategy["rag"]
    return ",".join(f"{name}={version}" for name, version in by_strategy.items())


def _version_of_answers(settings: AnswerSettings) -> str:
    """The settings that shape a grounded answer: cached answers are replayed only under the same settings."""
    shape: tuple[object, ...] = (
        PROMPT_VERSION,
        settings.retrieval_engine,
        settings.top_k,
        settings.min_score,
        settings.prompt_passages,
    )
    pipeline = settings.retrieval_pipeline
    if pipeline != "standard":
        shape = (*shape, pipeline, settings.reranker_model_id, settings.expansion_model_id, settings.direct_model_id)
    shape = (*shape, *knowledge_shape(settings))
    if settings.guardrail_id:
        checks = (settings.guardrail_version, settings.guardrail_stream, settings.guardrail_grounding)
        shape = (*shape, settings.guardrail_id, *checks)
    return "/".join(map(str, shape))


def _models(settings: AnswerSettings, watch: GuardrailWatch) -> ModelFactory:
    return ModelFactory(
        bedrock=_bedrock,
        secrets=_secrets,
        endpoints=settings.model_endpoints,
        temperature=settings.temperature,
        top_p=settings.top_p,
        guardrail=_guardrail(settings, watch),
    )


def _guardrail(settings: AnswerSettings, watch: GuardrailWatch) -> Guardrail | None:
    if not settings.guardrail_id:
        return None
    return Guardrail(
        settings.guardrail_id,
        settings.guardrail_version,
        stream=settings.guardrail_stream,
        grounding=settings.guardrail_grounding,
        on_failure=settings.guardrail_on_failure,
        message=settings.guardrail_message,
        watch=watch,
    )


def _bedrock() -> Any:
    return boto3.client("bedrock-runtime", config=bedrock_client_config())


def _secrets() -> Any:
    from cicada.models.endpoint_keys import SECRETS_CONFIG

    return boto3.client("secretsmanager", config=SECRETS_CONFIG)


def _retriever(
    settings: AnswerSettings, searches: Retriever, embedder: Embedder, models: ModelFactory, breakers: BreakerRegistry
) -> Retriever:
    """The strategies' retriever: the search itself, or a pipeline over it."""
    pipeline = settings.retrieval_pipeline
    if pipeline == "standard":
        return searches
    from cicada.retrieval.pipelines.retriever import PipelineRetriever
    from cicada.retrieval.pipelines.wiring import PipelineModels, build_pipelines

    pipelines = build_pipelines(
        PipelineModels(
            settings.reranker_model_id or settings.direct_model_id,
            settings.expansion_model_id or settings.direct_model_id,
        ),
        retriever=searches,
        embedder=embedder,
        models=models,
        bedrock=_bedrock,
        guard_reranker=lambda reranker: GuardedReranker(reranker, breakers),
        guard_model=lambda model: GuardedForms(model, breakers),
    )
    return PipelineRetriever(pipelines, pipeline, time_budget_s=settings.pipeline_budget_s)


def _embedder(settings: AnswerSettings, breakers: BreakerRegistry) -> Embedder:
    """An embedder whose memory is in front of its breaker: remembered vectors need no model."""
    client = boto3.client("bedrock-runtime", config=bedrock_client_config(read_timeout_s=QUERY_READ_TIMEOUT_S))
    model = BedrockEmbedder(
        client, settings.embedding_model_id, settings.embedding_dimensions, purpose="query", retry=QUERY
    )
    return CachingEmbedder(GuardedEmbedder(model, breakers))


class _Writers:
    """Makes the text models, each behind its breaker."""

    def __init__(self, settings: AnswerSettings, models: ModelFactory, breakers: BreakerRegistry) -> None:
        self._settings = settings
        self._models = models
        self._breakers = breakers

    def of(self, strategy: GroundedStrategy) -> GuardedModel:
        """The model of a strategy's grounded answers."""
        model_id = _writer(self._settings, strategy)
        return GuardedModel(self._models.text(model_id, max_tokens=self._settings.max_tokens), self._breakers)

    def small(self) -> GuardedModel:
        """The model that completes questions."""
        return GuardedModel(self._small(self._settings.direct_model_id), self._breakers)

    def last_resort(self) -> GuardedModel:
        """The model of the last resort."""
        model_id = self._settings.strategy_model_ids.get("direct", self._settings.direct_model_id)
        return GuardedModel(self._small(model_id), self._breakers, last_resort=True)

    def _small(self, model_id: str) -> TextModel:
        return self._models.text(model_id, max_tokens=self._settings.direct_max_tokens)


def _writer(settings: AnswerSettings, strategy: GroundedStrategy) -> str:
    """The model that writes a strategy's grounded answers."""
    return settings.strategy_model_ids.get(strategy, settings.generation_model_id)


def _thresholds(settings: AnswerSettings) -> Thresholds | None:
    replay, near = settings.cache_replay_threshold, settings.cache_near_threshold
    return None if replay is None or near is None else Thresholds(replay, near)
