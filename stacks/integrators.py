"""The functions that other systems call: retrieval, documents, citations, entities, and schemas for SQL agents."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cicada.ingest.contracts import ENRICHED, PREPARED
from stacks.bedrock import invoke_statements
from stacks.data import INDEX_PREFIX, DataStack
from stacks.endpoints import allow_keys, endpoint_environment
from stacks.function import CicadaFunction, Functions
from stacks.ingest import BY_NAME, loading_plan
from stacks.keys import object_key_actions
from stacks.layers import Layers
from stacks.settings import Settings

TIMEOUT_S = 120
"""Of calls that take some model calls at most."""
DOCUMENT_TIMEOUT_S = 900
"""Lambda's longest: a document is read, embedded and published in one call."""
SUMMARY_TIMEOUT_S = 660
LIGHT_TIMEOUT_S = 30


class IntegratorsStack(Stack):
    """One function a task, each with the rights that it needs, and a policy for those who call them."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, **stack: Any) -> None:
        """Make the stack; ``stack`` are the CDK's own properties."""
        super().__init__(scope, id, description="Cicada: functions for other systems", **stack)
        self._settings = settings
        self._data = data
        self._functions = Functions(
            self,
            settings,
            Layers(self, "Layers", local=settings.local),
            data.encryption_key,
            {
                "INDEX_BUCKET": data.bucket_name,
                "EMBEDDING_MODEL_ID": settings.models.embedding_model_id,
                "EMBEDDING_DIMENSIONS": str(settings.models.embedding_dimensions),
                "OPENBLAS_NUM_THREADS": "1",
            },
        )
        self.functions = {
            "retrieve": self._retrieve(),
            "index_document": self._index_document(),
            "get_document_summary": self._summary(),
            "extract_citations": self._function(
                "ExtractCitations", "extract_citations", "search", timeout_s=LIGHT_TIMEOUT_S, memory_mb=1024
            ),
            "graph_query": self._of_the_index("GraphQuery", "graph_query"),
            "facets": self._of_the_index("Facets", "facets"),
            "enrich_schema": self._enrich_schema(),
        }
        callers = iam.ManagedPolicy(
            self,
            "Callers",
            managed_policy_name=f"{settings.stack_prefix}-integrators-{self.region}",
            description="May call Cicada's functions for integrators",
            statements=[
                iam.PolicyStatement(
                    actions=["lambda:InvokeFunction"],
                    resources=[function.function.function_arn for function in self.functions.values()],
                )
            ],
        )
        CfnOutput(self, "CallersPolicyArn", value=callers.managed_policy_arn)

    def _retrieve(self) -> CicadaFunction:
        retrieve = self._function(
            "Retrieve", "retrieve", "search", *self._engine_layers(), environment=self._search_environment()
        )
        self._allow_index(retrieve)
        self._allow_engine(retrieve)
        self._allow_models(retrieve, *self._pipeline_models(), self._settings.models.embedding_model_id)
        return retrieve

    def _enrich_schema(self) -> CicadaFunction:
        models = self._settings.models
        explain = self._function(
            "EnrichSchema",
            "enrich_schema",
            "search",
            *self._engine_layers(),
            timeout_s=SUMMARY_TIMEOUT_S,
            environment=self._search_environment(),
        )
        self._allow_index(explain)
        self._allow_engine(explain)
        self._allow_models(explain, models.direct_model_id, models.embedding_model_id)
        return explain

    def _index_document(self) -> CicadaFunction:
        models = self._settings.models
        loading = loading_plan(self._settings)
        index = self._function(
            "IndexDocument",
            "index_document",
            "search",
            "documents",
            "yaml",
            timeout_s=DOCUMENT_TIMEOUT_S,
            memory_mb=self._settings.ingest.memory_mb,
            environment={
                "LOADING": loading.model_dump_json(by_alias=True, exclude_defaults=True),
                **self._model_environment(),
            },
        )
        self._allow_index(index, "s3:PutObject")
        index.deny(("s3:PutObject",), self._data.access_arn)  # it adds documents, and declares no readers
        self._data.allow_records(index)
        self._allow_objects(index, ("s3:GetObject", "s3:PutObject"), ENRICHED)
        self._allow_objects(index, ("s3:DeleteObject", "s3:GetObject", "s3:PutObject"), PREPARED)
        self._allow_models(index, models.embedding_model_id, *loading.model_ids())
        return index

    def _summary(self) -> CicadaFunction:
        summary = self._function(
            "DocumentSummary",
            "get_document_summary",
            "search",
            timeout_s=SUMMARY_TIMEOUT_S,
            environment=self._model_environment() | self._settings.access.environment(),
        )
        self._allow_index(summary)
        self._allow_objects(summary, ("s3:GetObject", "s3:PutObject"), ENRICHED)
        self._allow_models(summary, self._settings.models.direct_model_id)
        return summary

    def _of_the_index(self, id: str, folder: str) -> CicadaFunction:
        function = self._function(id, folder, "search", environment=self._settings.access.environment())
        self._allow_index(function)
        return function

    def _function(
        self,
        id: str,
        folder: str,
        *vendor: str,
        timeout_s: int = TIMEOUT_S,
        memory_mb: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> CicadaFunction:
        return self._functions.make(
            id,
            folder,
            *vendor,
            timeout_s=timeout_s,
            memory_mb=memory_mb or self._settings.answer_memory_mb,
            environment=environment,
            name=f"{self._settings.stack_prefix}-{folder.replace('_', '-')}",
        )

    def _model_environment(self) -> dict[str, str]:
        retrieval, models = self._settings.retrieval, self._settings.models
        values = {
            "WRITING_MODEL_ID": models.direct_model_id,
            "RERANKER_MODEL_ID": retrieval.reranker_model_id,
            "EXPANSION_MODEL_ID": retrieval.expansion_model_id,
        }
        known = {name: value for name, value in values.items() if value is not None}
        return known | endpoint_environment(models, (*known.values(), *loading_plan(self._settings).model_ids()))

    def _search_environment(self) -> dict[str, str]:
        retrieval = self._settings.retrieval
        values: dict[str, object | None] = {
            "RETRIEVAL_ENGINE": retrieval.engine,
            "ENGINE_BUDGET_S": retrieval.engine_budget_s,
            "S3_VECTORS_INDEX_ARN": self._data.vector_index_arn,
            "KENDRA_INDEX_ID": retrieval.kendra_index_id,
        }
        known = {name: str(value) for name, value in values.items() if value is not None}
        return self._model_environment() | known | self._settings.access.environment()

    def _pipeline_models(self) -> tuple[str, ...]:
        retrieval, direct = self._settings.retrieval, self._settings.models.direct_model_id
        return tuple(
            dict.fromkeys((direct, retrieval.reranker_model_id or direct, retrieval.expansion_model_id or direct))
        )

    def _engine_layers(self) -> tuple[str, ...]:
        return () if self._data.vector_index_arn is None else ("sdk",)

    def _allow_engine(self, function: CicadaFunction) -> None:
        if self._data.vector_index_arn is not None:
            function.allow(("s3vectors:GetVectors", "s3vectors:QueryVectors"), self._data.vector_index_arn)
        if (kendra := self._settings.retrieval.kendra_index_id) is not None:
            function.allow(
                ("kendra:Retrieve",), f"arn:{self.partition}:kendra:{self.region}:{self.account}:index/{kendra}"
            )

    def _allow_models(self, function: CicadaFunction, *model_ids: str) -> None:
        allow_keys(function, self._settings.models, model_ids)
        for model_id in dict.fromkeys(model_ids):
            function.allow_statement(
                *invoke_statements(
                    self,
                    model_id,
                    action="bedrock:InvokeModel",
                    more_regions=self._settings.models.destination_regions,
                )
            )

    def _allow_index(self, function: CicadaFunction, *more: str) -> None:
        self._allow_objects(function, ("s3:GetObject", *more), INDEX_PREFIX)
        self._data.allow_list(function, INDEX_PREFIX, ENRICHED, PREPARED)

    def _allow_objects(self, function: CicadaFunction, actions: tuple[str, ...], prefix: str) -> None:
        function.allow(actions, f"arn:{self.partition}:s3:::{self._data.bucket_name}/{prefix}*", because=BY_NAME)
        if self._data.key is not None:
            function.allow(object_key_actions(actions), self._data.key.key_arn)
