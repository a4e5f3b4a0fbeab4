"""The function that lists, searches and reads the corpus for clients."""

from __future__ import annotations

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cicada.ingest.incoming.places import INCOMING
from stacks.bedrock import invoke_statements
from stacks.data import INDEX_PREFIX, DataStack
from stacks.function import CicadaFunction
from stacks.keys import OBJECT_READER, TABLE_READER
from stacks.layers import Layers
from stacks.settings import Settings

TIMEOUT_S = 25
"""Below the 29 s that API Gateway waits for an integration, so that a hanging function is reported."""


class Corpus(Construct):
    """A function that holds the index in memory, and reads nothing but the index, uploaded files and limits."""

    def __init__(self, scope: Construct, id: str, *, settings: Settings, data: DataStack, layers: Layers) -> None:
        """Make the function.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            data: has the bucket and the table.
            layers: the stack's.
        """
        super().__init__(scope, id)
        self._settings = settings
        self._data = data
        self.worker = CicadaFunction(
            self,
            "Reader",
            settings=settings,
            folder="corpus",
            layers=layers.of("base", "search", *(() if data.vector_index_arn is None else ("sdk",))),
            timeout_s=TIMEOUT_S,
            memory_mb=settings.answer_memory_mb,
            key=data.encryption_key,
            environment=self._environment(),
        )
        self._allow_objects()
        self._allow_search()
        self.worker.allow(("dynamodb:BatchGetItem", "dynamodb:GetItem"), data.table.table_arn)
        if data.key is not None:
            self.worker.allow(tuple(dict.fromkeys((*OBJECT_READER, *TABLE_READER))), data.key.key_arn)

    @property
    def function(self) -> lambda_.Function:
        """The function."""
        return self.worker.function

    def _environment(self) -> dict[str, str]:
        settings, retrieval = self._settings, self._settings.retrieval
        values: dict[str, object | None] = {
            "REQUESTS_TABLE": self._data.table.table_name,
            "INDEX_BUCKET": self._data.bucket_name,
            "EMBEDDING_MODEL_ID": settings.models.embedding_model_id,
            "EMBEDDING_DIMENSIONS": settings.models.embedding_dimensions,
            "TOP_K": retrieval.top_k,
            "MIN_SCORE": retrieval.min_score,
            "RETRIEVAL_ENGINE": retrieval.engine,
            "ENGINE_BUDGET_S": retrieval.engine_budget_s,
            "S3_VECTORS_INDEX_ARN": self._data.vector_index_arn,
            "KENDRA_INDEX_ID": retrieval.kendra_index_id,
            "AUTH": "none" if settings.auth.mode == "none" else "jwt",
            **settings.access.environment(),
            **settings.usage_limits.environment(),
            **settings.uploads.uploaders_environment(settings.auth),
            "OPENBLAS_NUM_THREADS": 1,  # numpy's own threads contend for the function's one processor
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    def _allow_objects(self) -> None:
        self.worker.allow(
            ("s3:GetObject",), self._data.index_arn, because="The index's objects are named by their content."
        )
        self.worker.allow(
            ("s3:GetObject",),
            f"{self._data.bucket_arn}/{INCOMING}*",
            because="Uploaded files have the names that their owners gave them.",
        )
        self._data.allow_list(self.worker, INDEX_PREFIX, INCOMING)

    def _allow_search(self) -> None:
        models, kendra = self._settings.models, self._settings.retrieval.kendra_index_id
        self.worker.allow_statement(
            *invoke_statements(
                Stack.of(self),
                models.embedding_model_id,
                action="bedrock:InvokeModel",
                more_regions=models.destination_regions,
            )
        )
        if self._data.vector_index_arn is not None:
            # A query that filters, searches by words or wants metadata back needs GetVectors too.
            self.worker.allow(("s3vectors:GetVectors", "s3vectors:QueryVectors"), self._data.vector_index_arn)
        if kendra is not None:
            stack = self._data
            self.worker.allow(
                ("kendra:Retrieve",), f"arn:{stack.partition}:kendra:{stack.region}:{stack.account}:index/{kendra}"
            )
