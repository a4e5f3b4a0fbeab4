"""How questions are answered: the deployer's settings for models, search, budgets, earlier answers and recovery."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from cicada.defaults import (
    DEFAULT_CONTEXT_TOKENS,
    DEFAULT_ENGINE_BUDGET_S,
    DEFAULT_KNOWLEDGE_BUDGET_S,
    DEFAULT_MIN_SCORE,
    DEFAULT_PASSAGES_PER_COLLECTION,
    DEFAULT_PIPELINE_BUDGET_S,
    DEFAULT_TOP_K,
    MIN_ENTITY_CONFIDENCE,
    MIN_INTENTION_CONFIDENCE,
)
from cicada.errors import SettingsInvalid
from cicada.models.embedding_models import embedding_model
from cicada.models.endpoints import BaseUrl, Endpoint, EndpointModel, EndpointName, Endpoints, OwnModelName, Usd
from cicada.models.model_ids import read_endpoint_id

ModelId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9a-z]+)*$", max_length=128)]
TextModelId = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9a-z]+)*|[a-z][a-z0-9-]{0,31}/[A-Za-z0-9@][A-Za-z0-9@._:/+-]*)$",
        max_length=160,
    ),
]
"""A model of Bedrock, or ``<endpoint>/<model>``."""
SecretArn = Annotated[
    str,
    StringConstraints(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}$",
        max_length=512,
    ),
]
"""Complete, with the six characters that Secrets Manager adds to the name."""
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]


class Group(BaseModel):
    """Strict and immutable; written in camelCase, as the rest of ``cdk.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel, validate_default=True)


class EndpointModelSettings(Group):
    """What a model of an endpoint costs, in US dollars for a million tokens; 0 where nothing is charged."""

    input_usd_per_million: Usd
    output_usd_per_million: Usd
    cached_input_usd_per_million: Usd | None = None


class EndpointSettings(Group):
    """An endpoint that speaks OpenAI's Chat Completions."""

    base_url: BaseUrl
    secret_arn: SecretArn | None = None
    models: dict[OwnModelName, EndpointModelSettings]


class ModelsSettings(Group):
    """The models, by their ids on Amazon Bedrock, or at endpoints of one's own."""

    generation_model_id: TextModelId = Field(
        "us.amazon.nova-lite-v1:0",
        description="model for grounded answers: a model ID, the ID of an inference profile of your geography, "
        "or `<endpoint>/<model>`",
    )
    direct_model_id: TextModelId = Field(
        "us.amazon.nova-micro-v1:0", description="model for answers without retrieval; choose a small, fast one"
    )
    per_strategy: dict[Literal["hybrid", "rag", "cag", "direct"], TextModelId] = Field(
        {},
        description="models that override the defaults, per strategy: `hybrid`, `rag`, `cag`, `direct`",
    )
    endpoints: dict[EndpointName, EndpointSettings] = Field(
        {}, description="OpenAI-compatible endpoints, by name, with their models and prices; see `docs/models.md`"
    )
    embedding_model_id: ModelId = Field(
        "amazon.titan-embed-text-v2:0",
        description="embedding model: Titan Text v2, Nova Multimodal, Cohere Embed v3 or v4, see "
        "`docs/models.md`; reload the corpus after a change",
    )
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)] = Field(
        1024,
        description="number of embedding dimensions, one that the model supports: Titan Text v2 supports 256, "
        "512 and 1024",
    )
    destination_regions: tuple[Region, ...] = Field(
        (),
        description="additional Regions that the inference profiles route to, besides those in "
        "`stacks/bedrock_regions.py`",
    )
    max_tokens: Annotated[int, Field(ge=1, le=128_000)] = Field(
        2048, description="maximum output tokens of a grounded answer"
    )
    direct_max_tokens: Annotated[int, Field(ge=1, le=128_000)] = Field(
        512, description="maximum output tokens of an answer without retrieval"
    )
    temperature: Annotated[float, Field(ge=0, le=1)] | None = Field(
        0.2,
        description="sampling temperature; `null` omits it, for models that reject it; Nova with tools always uses 0",
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="nucleus sampling (top-p); `null` omits it, for models that reject it"
    )

    def served(self) -> Endpoints:
        """The endpoints, as the functions know them."""
        return Endpoints(
            {
                name: Endpoint(
                    base_url=endpoint.base_url,
                    secret_arn=endpoint.secret_arn,
                    models={
                        model: EndpointModel.model_validate(prices.model_dump())
                        for model, prices in endpoint.models.items()
                    },
                )
                for name, endpoint in self.endpoints.items()
            }
        )

    def writers(self) -> dict[str, int]:
        """The models that write answers, each with its longest one in tokens."""
        writers = {self.generation_model_id: self.max_tokens}
        for strategy, model_id in {"direct": self.direct_model_id, **self.per_strategy}.items():
            longest = self.direct_max_tokens if strategy == "direct" else self.max_tokens
            writers[model_id] = max(longest, writers.get(model_id, 0))
        # What completes questions, too, is the model of direct answers.
        writers[self.direct_model_id] = max(self.direct_max_tokens, writers.get(self.direct_model_id, 0))
        return writers

    def check_served(self, setting: str, model_id: str) -> None:
        """Raise ValueError if a setting names a model that its endpoint is not said to have."""
        if read_endpoint_id(model_id) is None or self.served().find(model_id) is not None:
            return
        known = ", ".join(self.served().model_ids()) or "none"
        raise ValueError(f"{setting}: no endpoint of models.endpoints has {model_id}. Known are: {known}")

    @model_validator(mode="after")
    def _every_writer_is_served(self) -> ModelsSettings:
        self.check_served("generationModelId", self.generation_model_id)
        self.check_served("directModelId", self.direct_model_id)
        for strategy, model_id in self.per_strategy.items():
            self.check_served(f"perStrategy.{strategy}", model_id)
        return self

    @model_validator(mode="after")
    def _the_embedding_model_is_supported(self) -> ModelsSettings:
        try:
            embedding_model(self.embedding_model_id, self.embedding_dimensions)
        except SettingsInvalid as error:
            raise ValueError(f"embeddingModelId, embeddingDimensions: {error}") from error
        return self


class Retrieval(Group):
    """How much is found, and how much of it goes into the prompt."""

    top_k: Annotated[int, Field(ge=1, le=100)] = Field(
        DEFAULT_TOP_K, description="number of passages that a search returns"
    )
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(
        DEFAULT_MIN_SCORE, description="minimum similarity of a returned passage"
    )
    prompt_passages: Annotated[int, Field(ge=1, le=50)] = Field(10, description="number of top passages in the prompt")
    pipeline: Literal["standard", "rerank", "advanced"] = Field(
        "standard",
        description="retrieval pipeline: one search (`standard`), re-ranking of three times as many passages "
        "(`rerank`), or re-ranking with query expansion (`advanced`); see `docs/retrieval.md`",
    )
    reranker_model_id: TextModelId | None = Field(
        None,
        description="re-ranking model of the pipelines `rerank` and `advanced`; `null` uses `models.directModelId`",
    )
    expansion_model_id: TextModelId | None = Field(
        None, description="query expansion model; `null` uses `models.directModelId`"
    )
    pipeline_budget_s: Annotated[float, Field(ge=1, le=60)] = Field(
        DEFAULT_PIPELINE_BUDGET_S,
        description="timeout of a pipeline's stages, in seconds, shortened if less of the answer's time is left; "
        "late stages are skipped and reported",
    )
    engine: Literal["shards", "s3vectors", "kendra"] = Field(
        "shards",
        description="retrieval engine: the function's own index (`shards`), Amazon S3 Vectors (`s3vectors`), or "
        "an existing Amazon Kendra index (`kendra`); see `docs/engines.md`",
    )
    kendra_index_id: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{35}$")] | None = Field(
        None,
        description="Amazon Kendra index, required with `engine` `kendra`; the stacks never create one (it bills "
        "by the hour)",
    )
    engine_budget_s: Annotated[float, Field(ge=0.2, le=20)] = Field(
        DEFAULT_ENGINE_BUDGET_S,
        description="timeout of a managed engine, in seconds; after it the function's own index is searched",
    )

    def model_ids(self, direct_model_id: str) -> tuple[str, ...]:
        """The text models of the chosen pipeline; by default the model of direct answers."""
        reranker = self.reranker_model_id or direct_model_id
        expansion = self.expansion_model_id or direct_model_id
        match self.pipeline:
            case "standard":
                return ()
            case "rerank":
                return (reranker,)
            case "advanced":
                return tuple(dict.fromkeys((reranker, expansion)))

    @model_validator(mode="after")
    def _kendra_has_an_index(self) -> Retrieval:
        if (self.engine == "kendra") != (self.kendra_index_id is not None):
            raise ValueError('kendraIndexId: is for `"engine": "kendra"`, which needs it')
        return self


class KnowledgeSettings(Group):
    """Questions answered from the collections, and the sections of them, that declare to serve them."""

    enabled: bool = Field(
        False,
        description="route questions to collections and sections by their `collection.yaml` declarations; see "
        "`docs/knowledge.md`. Adds two calls of a small model per question if a collection has a "
        "declaration",
    )
    selector_model_id: TextModelId | None = Field(
        None, description="model that selects collections and intents; `null` uses `models.directModelId`"
    )
    extractor_model_id: TextModelId | None = Field(
        None, description="entity recognition model for questions; `null` uses `models.directModelId`"
    )
    extractor: Literal["model", "gazetteer", "both"] = Field(
        "both",
        description="entity recognition method: a model (`model`), the index's own names without a model "
        "(`gazetteer`), or both (`both`)",
    )
    min_intention_confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        MIN_INTENTION_CONFIDENCE, description="minimum confidence to select a collection and an intent"
    )
    min_entity_confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        MIN_ENTITY_CONFIDENCE, description="minimum confidence to recognise an entity"
    )
    context_tokens: Annotated[int, Field(ge=500, le=100_000)] = Field(
        DEFAULT_CONTEXT_TOKENS,
        description="maximum tokens of all passages for a question; passages about named entities come first",
    )
    passages_per_collection: Annotated[int, Field(ge=1, le=50)] = Field(
        DEFAULT_PASSAGES_PER_COLLECTION,
        description="number of passages to search in each selected collection, in addition to those about named "
        "entities",
    )
    budget_s: Annotated[float, Field(ge=1, le=60)] = Field(
        DEFAULT_KNOWLEDGE_BUDGET_S,
        description="timeout for building the context, in seconds, shortened if less of the answer's time is "
        "left; after a timeout or a failed selection the search of `rag` answers",
    )

    def model_ids(self, direct_model_id: str) -> tuple[str, ...]:
        """The models that choose collections and find names; by default the model of direct answers."""
        if not self.enabled:
            return ()
        selector = self.selector_model_id or direct_model_id
        extractor = () if self.extractor == "gazetteer" else (self.extractor_model_id or direct_model_id,)
        return tuple(dict.fromkeys((selector, *extractor)))


class Budget(Group):
    """What one question may consume, over all its attempts, retries and take-overs."""

    request_time_s: Annotated[int, Field(ge=30, le=900)] = Field(
        300, description="timeout of a question, in seconds; one workflow execution takes at most 300"
    )
    request_tokens: Annotated[int, Field(ge=1000, le=8_000_000)] = Field(
        120_000,
        description="maximum tokens, input and output, of all model calls for one question. One call can use a "
        "quarter of it; retrieval pipelines with models and collection routing get half of that",
    )
    request_cost_usd: Annotated[float, Field(gt=0, le=100)] = Field(
        0.4,
        description="maximum cost, in US dollars, of all model calls for one question. One call can use a "
        "quarter of it; retrieval pipelines with models and collection routing get half of that",
    )


class CitationsSettings(Group):
    """How an answer's citations are checked."""

    judge: Literal["model", "rules"] = Field(
        "model",
        description="verification of sentences that rules cannot verify: one short model call after the answer's "
        "text (`model`, billed), or none (`rules`), which leaves them unverified",
    )
    judge_model_id: TextModelId | None = Field(
        None, description="verification model; `null` uses `models.directModelId`"
    )
    judge_time_s: Annotated[float, Field(ge=1, le=20)] = Field(
        4.0, description="timeout of the verification call, in seconds; after it the sentences stay unverified"
    )
    judge_cost_usd: Annotated[float, Field(gt=0, le=1)] = Field(
        0.02,
        description="maximum cost of one verification call, in US dollars, by the price table; a call that could "
        "exceed it is skipped and its sentences stay unverified",
    )

    def model_ids(self, direct_model_id: str) -> tuple[str, ...]:
        """The model that judges, if one does."""
        return (self.judge_model_id or direct_model_id,) if self.judge == "model" else ()


class Cache(Group):
    """The semantic cache: earlier answers, for questions that mean the same."""

    enabled: bool = Field(True, description="cache grounded answers and reuse them for equivalent questions")
    sharing: Literal["user", "tenant", "deployment"] = Field(
        "user",
        description="scope of the cache: answers of the same user (`user`), of the tenant (`tenant`), or of all "
        "users (`deployment`)",
    )
    ttl_days: Annotated[int, Field(ge=1, le=365)] = Field(7, description="lifetime of a cached answer, in days")
    max_entries: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1000,
        description="maximum cached answers per scope. A scope is one user, tenant or deployment (see "
        "`cache.sharing`), one language, one set of filters and one version of the corpus",
    )
    confirm: Literal["off", "model"] = Field(
        "off",
        description="confirm near matches that are not identical with `models.directModelId` (a short call, billed)",
    )
    replay_threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="minimum question similarity to confirm a match with the model (with `cache.confirm`); "
        "`null` uses the embedding model's value",
    )
    near_threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="minimum question similarity to reuse the cached answer's passages; `null` uses the value "
        "measured for the embedding model",
    )

    @model_validator(mode="after")
    def _replaying_asks_for_more(self) -> Cache:
        near, replay = self.near_threshold, self.replay_threshold
        if (near is None) != (replay is None):
            raise ValueError("replayThreshold and nearThreshold: give both or neither")
        if near is not None and replay is not None and near > replay:
            raise ValueError("nearThreshold: must not be above replayThreshold")
        return self


class ConversationSettings(Group):
    """What is remembered of a conversation, to understand a question such as *and what did she say next?*"""

    enabled: bool = Field(
        True,
        description="store the last turns of each `sessionId`, rewrite follow-up questions with them, and list "
        "conversations",
    )
    max_turns: Annotated[int, Field(ge=1, le=50)] = Field(
        6, description="maximum stored turns (question and answer) per conversation"
    )
    max_tokens: Annotated[int, Field(ge=100, le=20_000)] = Field(
        2000, description="maximum tokens of all stored turns of a conversation"
    )
    max_age_hours: Annotated[int, Field(ge=1, le=720)] = Field(
        12, description="hours until an inactive conversation is deleted"
    )


class FeedbackSettings(Group):
    """What users say of answers."""

    enabled: bool = Field(True, description="let users rate answers")
    retention_days: Annotated[int, Field(ge=1, le=400)] = Field(
        90, description="retention of a rating with its question and comment, in days"
    )


class RecoverySweepSettings(Group):
    """The sweep for requests without a worker."""

    sweep_minutes: Annotated[int, Field(ge=1, le=60)] = Field(
        2, description="minutes between two sweeps for questions whose worker was lost"
    )
    open_partitions: Annotated[int, Field(ge=4, le=1000)] = Field(
        4,
        description="partitions of the table's index of open questions. Each supports 500 new questions per "
        "second; raise it only after all functions of release 0.1.0 are replaced",
    )
