"""The answer worker: one attempt of one strategy at one request."""

from __future__ import annotations

import os
from typing import Any

import boto3
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from cicada.answering.attempt import AttemptRunner
from cicada.answering.direct import DirectStrategy
from cicada.answering.rag import RagStrategy
from cicada.answering.workflow import AttemptTask
from cicada.delivery.connections import POST_CONFIG, ApiGatewayConnections
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.index.reader import IndexReader
from cicada.index.s3direct.store import store_for_answers
from cicada.models.bedrock import bedrock_client_config
from cicada.models.bedrock_embeddings import BedrockEmbedder
from cicada.models.bedrock_text import BedrockTextModel
from cicada.retrieval.engine import EngineSettings, build_retriever
from cicada.retrieval.shards import ShardRetriever
from cicada.settings import AnswerSettings
from cicada.telemetry import logger, metrics

settings = AnswerSettings.read(os.environ)
store = store_for_answers(settings.index_bucket)
reader = IndexReader(
    store,
    embedding_model_id=settings.embedding_model_id,
    dimensions=settings.embedding_dimensions,
)
reader.refresh_soon()  # the index is read while the rest of this function starts
bedrock = boto3.client("bedrock-runtime", config=bedrock_client_config())
embedder = BedrockEmbedder(
    boto3.client("bedrock-runtime", config=bedrock_client_config(read_timeout_s=4)),
    settings.embedding_model_id,
    dimensions=settings.embedding_dimensions,
)
retriever = build_retriever(
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


def _writer(model_id: str) -> BedrockTextModel:
    return BedrockTextModel(
        bedrock,
        model_id,
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
    )


runner = AttemptRunner(
    DynamoDbLog(boto3.client("dynamodb", config=STORE_CONFIG), settings.requests_table),
    ApiGatewayConnections(boto3.client("apigatewaymanagementapi", config=POST_CONFIG)),
    {
        "rag": RagStrategy(
            retriever,
            _writer(settings.generation_model_id),
            top_k=settings.top_k,
            min_score=settings.min_score,
            prompt_passages=settings.prompt_passages,
        ),
        "direct": DirectStrategy(_writer(settings.direct_model_id)),
    },
)


@metrics.log_metrics(capture_cold_start_metric=True)
@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, str]:
    """Run one attempt; a strategy that fails fails the invocation, and the workflow goes on to the next."""
    task = AttemptTask.model_validate(event)
    logger.append_keys(request_id=task.request_id, strategy=task.strategy)
    metrics.add_dimension(name="Strategy", value=task.strategy)
    try:
        ended = runner.run(
            task, worker=context.aws_request_id, remaining_s=context.get_remaining_time_in_millis() / 1000
        )
    except Exception:
        metrics.add_metric(name="AttemptsFailed", unit=MetricUnit.Count, value=1)
        logger.exception("attempt failed")
        raise
    if ended.metrics is not None:
        metrics.add_metric(name="AnswersComplete", unit=MetricUnit.Count, value=1)
        metrics.add_metric(name="AnswerLatency", unit=MetricUnit.Milliseconds, value=ended.metrics.latency_ms)
        metrics.add_metric(name="FirstChunk", unit=MetricUnit.Milliseconds, value=ended.metrics.first_chunk_ms)
    return {"outcome": ended.outcome}
