"""The functions that answer, and the workflow that runs them."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import Stack
from constructs import Construct

from stacks import guardrail
from stacks.answer_states import CLOSING_TIMEOUT_S, WORKER_TIMEOUT_S
from stacks.bedrock import invoke_statements
from stacks.corpus import Corpus
from stacks.data import INDEX_PREFIX, DataStack
from stacks.endpoints import allow_keys, endpoint_environment
from stacks.function import CicadaFunction, Functions
from stacks.keys import TABLE_WRITER
from stacks.layers import Layers
from stacks.maintenance import IndexMaintenance
from stacks.recovery import SWEEP_TIMEOUT_S, RecoverySweep
from stacks.settings import DAY_S, Settings
from stacks.workflow import AnswerWorkflow

PROCESSOR_TIMEOUT_S = 25
"""Below the 29 s that API Gateway waits for an integration, so that a hanging message processor is reported."""


class AnsweringStack(Stack):
    """Message processor, answer worker, what closes exhausted requests and takes up lost ones, the answer workflow, the
    function for the corpus, the index's upkeep."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, **stack: Any) -> None:
        """Make the stack; ``stack`` are the CDK's own properties."""
        super().__init__(scope, id, description="Cicada: answer functions and workflow", **stack)
        self._settings = settings
        self._data = data
        layers = Layers(self, "Layers", local=settings.local)
        # They read or write the requests' logs, and post to their subscribers.
        self._functions = Functions(
            self,
            settings,
            layers,
            data.encryption_key,
            {
                "REQUESTS_TABLE": data.table.table_name,
                # boto3's own variable: the client for posting to connections takes its endpoint from it.
                "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": data.address("https"),
            },
        )
        self.guardrail = guardrail.of(self, settings)
        self.answer = self._answer()
        self.exhausted = self._functions.make("Exhausted", "exhausted", timeout_s=CLOSING_TIMEOUT_S, memory_mb=512)
        self._allow_log(self.exhausted, "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
        self.workflow = AnswerWorkflow(
            self,
            "Workflow",
            settings=settings,
            answer=self.answer.function,
            exhausted=self.exhausted.function,
            key=data.encryption_key,
        )
        self.message_processor = self._functions.make(
            "MessageProcessor",
            "message_processor",
            timeout_s=PROCESSOR_TIMEOUT_S,
            memory_mb=1024,
            environment={
                "STATE_MACHINE_ARN": self.workflow.machine.state_machine_arn,
                "REQUEST_TIME_S": str(settings.budget.request_time_s),
                "REQUEST_TOKENS": str(settings.budget.request_tokens),
                "REQUEST_COST_USD": str(settings.budget.request_cost_usd),
                "RETENTION_S": str(settings.retention_days * DAY_S),
                "OPEN_PARTITIONS": str(settings.recovery.open_partitions),
                "KNOWLEDGE_ENABLED": str(settings.knowledge.enabled).lower(),
                "AGENTS_ENABLED": str(settings.agents.adapter != "none").lower(),
                "CONVERSATION_ENABLED": str(settings.conversation.enabled).lower(),
                "CONVERSATION_MAX_AGE_S": str(settings.conversation.max_age_hours * 3600),
                "FEEDBACK_ENABLED": str(settings.feedback.enabled).lower(),
                "FEEDBACK_RETENTION_S": str(settings.feedback.retention_days * DAY_S),
                "AUTH": "none" if settings.auth.mode == "none" else "jwt",
                **settings.profiles.environment(),
                **settings.usage_limits.environment(),
            },
        )
        reads = ("BatchGetItem", "ConditionCheckItem", "GetItem", "Query")
        self._allow_log(self.message_processor, *reads, "DeleteItem", "PutItem", "UpdateItem")
        self.message_processor.allow(("states:StartExecution",), self.workflow.machine.state_machine_arn)
        self.corpus = Corpus(self, "Corpus", settings=settings, data=data, layers=layers)
        self.recovery = RecoverySweep(self, "Recovery", settings=settings, worker=self._recovery_sweep())
        self.maintenance = IndexMaintenance(self, "IndexMaintenance", settings=settings, data=data, layers=layers)
        if settings.agents.adapter == "classic":
            from stacks.agents_classic import ClassicAgents

            agents = ClassicAgents(
                self, "Agents", settings=settings, data=data, layers=layers, guardrail=self.guardrail
            )
            agents.serve(self.answer)
        elif settings.agents.adapter == "harness":
            from stacks.agents_harness import HarnessAgents

            HarnessAgents(self, "Agents", settings=settings).serve(self.answer)

    def _answer(self) -> CicadaFunction:
        models = self._settings.models
        answer = self._functions.make(
            "Answer",
            "answer",
            *("search", "sdk") if self._needs_sdk() else ("search",),
            timeout_s=WORKER_TIMEOUT_S,
            memory_mb=self._settings.answer_memory_mb,
            concurrency=self._settings.limits.answer_concurrency,
            environment=self._answer_environment(),
        )
        self._allow_engine(answer)
        # The table holds the semantic cache, the conversations and the circuit breakers too.
        self._allow_log(answer, "BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
        answer.allow(
            ("s3:GetObject",),
            self._data.index_arn,
            because="The index's objects are named by their content.",
        )
        self._data.allow_list(answer, INDEX_PREFIX)
        for model_id in dict.fromkeys((*models.writers(), *self._agents_models())):
            answer.allow_statement(
                *invoke_statements(
                    self,
                    model_id,
                    action="bedrock:InvokeModelWithResponseStream",
                    more_regions=models.destination_regions,
                )
            )
        for model_id in dict.fromkeys((models.embedding_model_id, *self._small_models())):
            answer.allow_statement(
                *invoke_statements(
                    self,
                    model_id,
                    action="bedrock:InvokeModel",
                    more_regions=models.destination_regions,
                )
            )
        allow_keys(answer, models, self._text_models())
        if self.guardrail is not None:
            answer.allow_statement(self.guardrail.use())
        return answer

    def _needs_sdk(self) -> bool:
        """Whether the answer worker calls a service that the runtime's own boto3 may be too old for."""
        return self._data.vector_index_arn is not None or self._settings.agents.adapter == "harness"

    def _text_models(self) -> list[str]:
        """The models that the answer worker calls, without the embedding model."""
        return [*self._settings.models.writers(), *self._small_models()]

    def _agents_models(self) -> tuple[str, ...]:
        """The model whose turns the answer worker streams itself, where it runs the agents."""
        model_id = self._settings.agents.runs_on(self._settings.models.generation_model_id)
        return (model_id,) if model_id is not None and self._settings.agents.adapter == "converse" else ()

    def _small_models(self) -> list[str]:
        """The models that are called for no text: by retrieval, beside the embedding's, and to judge."""
        settings, models = self._settings, self._settings.models
        sorting = [] if settings.agents.adapter == "none" else [models.generation_model_id]
        direct = models.direct_model_id
        return [
            *settings.retrieval.model_ids(direct),
            *settings.knowledge.model_ids(direct),
            *settings.citations.model_ids(direct),
            *sorting,
        ]

    def _answer_environment(self) -> dict[str, str]:
        """The answer worker's settings; what is not set is left to its defaults."""
        settings, models, retrieval = self._settings, self._settings.models, self._settings.retrieval
        budget, cache, conversation = settings.budget, settings.cache, settings.conversation
        knowledge, agents = settings.knowledge, settings.agents
        values: dict[str, object | None] = {
            "INDEX_BUCKET": self._data.bucket_name,
            "GENERATION_MODEL_ID": models.generation_model_id,
            "DIRECT_MODEL_ID": models.direct_model_id,
            "STRATEGY_MODEL_IDS": json.dumps(models.per_strategy) if models.per_strategy else None,
            "EMBEDDING_MODEL_ID": models.embedding_model_id,
            "EMBEDDING_DIMENSIONS": models.embedding_dimensions,
            "MAX_TOKENS": models.max_tokens,
            "DIRECT_MAX_TOKENS": models.direct_max_tokens,
            "TEMPERATURE": models.temperature,
            "TOP_P": models.top_p,
            "TOP_K": retrieval.top_k,
            "MIN_SCORE": retrieval.min_score,
            "PROMPT_PASSAGES": retrieval.prompt_passages,
            "RETRIEVAL_PIPELINE": retrieval.pipeline,
            "RERANKER_MODEL_ID": retrieval.reranker_model_id,
            "EXPANSION_MODEL_ID": retrieval.expansion_model_id,
            "PIPELINE_BUDGET_S": retrieval.pipeline_budget_s,
            "KNOWLEDGE_ENABLED": str(knowledge.enabled).lower(),
            "SELECTOR_MODEL_ID": knowledge.selector_model_id,
            "EXTRACTOR_MODEL_ID": knowledge.extractor_model_id,
            "KNOWLEDGE_EXTRACTOR": knowledge.extractor,
            "MIN_INTENTION_CONFIDENCE": knowledge.min_intention_confidence,
            "MIN_ENTITY_CONFIDENCE": knowledge.min_entity_confidence,
            "CONTEXT_TOKENS": knowledge.context_tokens,
            "PASSAGES_PER_COLLECTION": knowledge.passages_per_collection,
            "KNOWLEDGE_BUDGET_S": knowledge.budget_s,
            "AGENTS_ADAPTER": agents.adapter,
            "AGENTS_MODEL_ID": agents.model_id,
            "AGENTS_MAX_TURNS": agents.max_turns,
            "AGENTS_MAX_TOOL_CALLS": agents.max_tool_calls,
            "AGENTS_MAX_TOKENS": agents.max_tokens,
            "AGENTS_MAX_TURN_TOKENS": agents.max_turn_tokens,
            "AGENTS_TIME_S": agents.time_s,
            "RETRIEVAL_ENGINE": retrieval.engine,
            "ENGINE_BUDGET_S": retrieval.engine_budget_s,
            "S3_VECTORS_INDEX_ARN": self._data.vector_index_arn,
            "KENDRA_INDEX_ID": retrieval.kendra_index_id,
            "REQUEST_TIME_S": budget.request_time_s,
            "REQUEST_TOKENS": budget.request_tokens,
            "REQUEST_COST_USD": budget.request_cost_usd,
            "CITATIONS_JUDGE": settings.citations.judge,
            "CITATIONS_JUDGE_MODEL_ID": settings.citations.judge_model_id,
            "CITATIONS_JUDGE_TIME_S": settings.citations.judge_time_s,
            "CITATIONS_JUDGE_COST_USD": settings.citations.judge_cost_usd,
            "CACHE_ENABLED": str(cache.enabled).lower(),
            "CACHE_SHARING": cache.sharing,
            "CACHE_TTL_S": cache.ttl_days * DAY_S,
            "CACHE_MAX_ENTRIES": cache.max_entries,
            "CACHE_CONFIRM": cache.confirm,
            "CACHE_REPLAY_THRESHOLD": cache.replay_threshold,
            "CACHE_NEAR_THRESHOLD": cache.near_threshold,
            "CONVERSATION_ENABLED": str(conversation.enabled).lower(),
            "CONVERSATION_MAX_TURNS": conversation.max_turns,
            "CONVERSATION_MAX_TOKENS": conversation.max_tokens,
            "CONVERSATION_MAX_AGE_S": conversation.max_age_hours * 3600,
            **settings.profiles.environment(),
            **settings.access.environment(),
            **endpoint_environment(models, self._text_models()),
            **({} if self.guardrail is None else self.guardrail.environment()),
            "OPENBLAS_NUM_THREADS": 1,  # numpy's own threads contend for the function's one processor
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def _recovery_sweep(self) -> CicadaFunction:
        machine_arn = self.workflow.machine.state_machine_arn
        sweep = self._functions.make(
            "RecoverySweep",
            "recovery_sweep",
            timeout_s=SWEEP_TIMEOUT_S,
            memory_mb=512,
            quiet=True,
            environment={
                "STATE_MACHINE_ARN": machine_arn,
                "REQUEST_TIME_S": str(self._settings.budget.request_time_s),
            },
        )
        self._allow_log(sweep, "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem")
        sweep.allow(("dynamodb:Scan",), self._data.open_requests_arn)
        sweep.allow(("states:StartExecution",), machine_arn)
        return sweep

    def _allow_engine(self, answer: CicadaFunction) -> None:
        """Allow searches by the managed engine that was chosen."""
        if self._data.vector_index_arn is not None:
            # A query that filters, searches by words or wants metadata back needs GetVectors too.
            answer.allow(("s3vectors:GetVectors", "s3vectors:QueryVectors"), self._data.vector_index_arn)
        kendra = self._settings.retrieval.kendra_index_id
        if kendra is not None:
            arn = f"arn:{self.partition}:kendra:{self.region}:{self.account}:index/{kendra}"
            answer.allow(("kendra:Retrieve",), arn)

    def _allow_log(self, function: CicadaFunction, *operations: str) -> None:
        """Allow operations of DynamoDB on the requests' table, and posts to connections."""
        function.allow([f"dynamodb:{operation}" for operation in operations], self._data.table.table_arn)
        if self._data.key is not None:
            function.allow(TABLE_WRITER, self._data.key.key_arn)
        function.allow(
            ("execute-api:ManageConnections",),
            f"{self._data.stage_arn}/POST/@connections/*",
            because="Connections come and go; the ARN allows posts to those of this API's stage only.",
        )
