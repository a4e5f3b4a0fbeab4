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
        description="writes the grounded answers: the id of a model, or of an inference profile of your geography, or "
        "`<endpoint>/<model>`",
    )
    direct_model_id: TextModelId = Field(
        "us.amazon.nova-micro-v1:0", description="writes the answers without retrieval: small and fast"
    )
    per_strategy: dict[Literal["hybrid", "rag", "cag", "direct"], TextModelId] = Field(
        {},
        description="another model for the answers of a strategy, by its name: `hybrid`, `rag`, `cag`, `direct`",
    )
    endpoints: dict[EndpointName, EndpointSettings] = Field(
        {}, description="OpenAI-compatible endpoints by name, with their models and prices; see `docs/models.md`"
    )
    embedding_model_id: ModelId = Field(
        "amazon.titan-embed-text-v2:0",
        description="turns text into vectors: Titan Text v2, Nova Multimodal, Cohere Embed v3 or v4, see "
        "`docs/models.md`; after a change the corpus must be loaded again",
    )
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)] = Field(
        1024, description="length of a vector, one that the model offers: Titan Text v2 has 256, 512 and 1024"
    )
    destination_regions: tuple[Region, ...] = Field(
        (), description="Regions that the inference profiles route to beside those known to `stacks/bedrock_regions.py`"
    )
    max_tokens: Annotated[int, Field(ge=1, le=128_000)] = Field(2048, description="longest answer, in tokens")
    direct_max_tokens: Annotated[int, Field(ge=1, le=128_000)] = Field(
        512, description="longest answer without retrieval, in tokens"
    )
    temperature: Annotated[float, Field(ge=0, le=1)] | None = Field(
        0.2,
        description="randomness; `null` sends none, for models that refuse it; Nova with tools always gets 0",
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="nucleus sampling; `null` sends none, for models that refuse it"
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

    top_k: Annotated[int, Field(ge=1, le=100)] = Field(DEFAULT_TOP_K, description="passages that a search returns")
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(
        DEFAULT_MIN_SCORE, description="least similarity of a returned passage"
    )
    prompt_passages: Annotated[int, Field(ge=1, le=50)] = Field(
        10, description="how many of the best go into the prompt"
    )
    pipeline: Literal["standard", "rerank", "advanced"] = Field(
        "standard",
        description="what stands between a question and its passages: one search (`standard`), re-ranking of three "
        "times as many (`rerank`), or other wordings of the question too (`advanced`); see `docs/retrieval.md`",
    )
    reranker_model_id: TextModelId | None = Field(
        None, description="judges passages in the other pipelines; `null` takes `models.directModelId`"
    )
    expansion_model_id: TextModelId | None = Field(
        None, description="writes other wordings of a question; `null` takes `models.directModelId`"
    )
    pipeline_budget_s: Annotated[float, Field(ge=1, le=60)] = Field(
        DEFAULT_PIPELINE_BUDGET_S,
        description="seconds for a pipeline's stages, less where the answer has less; what is late is left out, "
        "and said",
    )
    engine: Literal["shards", "s3vectors", "kendra"] = Field(
        "shards",
        description="what searches: the function itself (`shards`), Amazon S3 Vectors, or an Amazon Kendra index that "
        "you have; see `docs/engines.md`",
    )
    kendra_index_id: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9-]{35}$")] | None = Field(
        None, description="the index to search with `engine` `kendra`; none is ever created (it bills by the hour)"
    )
    engine_budget_s: Annotated[float, Field(ge=0.2, le=20)] = Field(
        DEFAULT_ENGINE_BUDGET_S,
        description="seconds that a managed engine may take before the shards are searched instead",
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
        description="choose collections and sections by what their `collection.yaml` declares; see "
        "`docs/knowledge.md`. Takes two calls of a small model a question where a collection declares itself",
    )
    selector_model_id: TextModelId | None = Field(
        None, description="chooses collections and intentions; `null` takes `models.directModelId`"
    )
    extractor_model_id: TextModelId | None = Field(
        None, description="finds who and what a question names; `null` takes `models.directModelId`"
    )
    extractor: Literal["model", "gazetteer", "both"] = Field(
        "both",
        description="what finds names: a model (`model`), the index's own names without a model (`gazetteer`), or both",
    )
    min_intention_confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        MIN_INTENTION_CONFIDENCE, description="least confidence with which a collection and an intention are chosen"
    )
    min_entity_confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        MIN_ENTITY_CONFIDENCE, description="least confidence with which something counts as named"
    )
    context_tokens: Annotated[int, Field(ge=500, le=100_000)] = Field(
        DEFAULT_CONTEXT_TOKENS,
        description="tokens of all passages that are chosen for a question; what is named comes first",
    )
    passages_per_collection: Annotated[int, Field(ge=1, le=50)] = Field(
        DEFAULT_PASSAGES_PER_COLLECTION,
        description="passages searched for of each chosen collection, beside those of what is named",
    )
    budget_s: Annotated[float, Field(ge=1, le=60)] = Field(
        DEFAULT_KNOWLEDGE_BUDGET_S,
        description="seconds from a question to its context, less where the answer has less; after them, or a failed "
        "choice, the plain search of `rag` answers",
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
        300, description="seconds from a question to the end of its answer; one run of the workflow takes 300 at most"
    )
    request_tokens: Annotated[int, Field(ge=1000, le=8_000_000)] = Field(
        120_000,
        description="tokens, read and written, of all model calls for one question; each may use a quarter, of "
        "which a retrieval pipeline that calls models, and the choice of collections, have half",
    )
    request_cost_usd: Annotated[float, Field(gt=0, le=100)] = Field(
        0.4,
        description="US dollars that all model calls for one question may cost; each may use a quarter, of which a "
        "retrieval pipeline that calls models, and the choice of collections, have half",
    )


class CitationsSettings(Group):
    """How an answer's citations are checked."""

    judge: Literal["model", "rules"] = Field(
        "model",
        description="who checks what code cannot tell exactly: a model, by one short call an answer after its last "
        "text (billed), or nobody (`rules`), which leaves it unchecked",
    )
    judge_model_id: TextModelId | None = Field(
        None, description="the model that judges; `null` takes `models.directModelId`"
    )
    judge_time_s: Annotated[float, Field(ge=1, le=20)] = Field(
        4.0, description="seconds that the judge may take; after them its sentences stay unchecked"
    )
    judge_cost_usd: Annotated[float, Field(gt=0, le=1)] = Field(
        0.02,
        description="US dollars that one call of the judge may cost, by the table of prices; one that could cost more "
        "is not made, and its sentences stay unchecked",
    )

    def model_ids(self, direct_model_id: str) -> tuple[str, ...]:
        """The model that judges, if one does."""
        return (self.judge_model_id or direct_model_id,) if self.judge == "model" else ()


class Cache(Group):
    """The semantic cache: earlier answers, for questions that mean the same."""

    enabled: bool = Field(True, description="keep grounded answers and reuse them for questions that mean the same")
    sharing: Literal["user", "tenant", "deployment"] = Field(
        "user", description="whose earlier answers may serve a question: the asker's own, the tenant's, or everybody's"
    )
    ttl_days: Annotated[int, Field(ge=1, le=365)] = Field(7, description="how long an answer may be reused, in days")
    max_entries: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1000,
        description="answers that are kept in one scope: those of one user, tenant or deployment (by `cache.sharing`) "
        "to questions of one language with the same filters, over one version of the corpus",
    )
    confirm: Literal["off", "model"] = Field(
        "off",
        description="whether `models.directModelId` is asked if a near earlier question, which is not the same to the "
        "word, asks the same (a short call, billed)",
    )
    replay_threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="with `cache.confirm`: similarity of two questions from which the model is asked; `null` takes the "
        "embedding model's value",
    )
    near_threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="similarity from which the earlier answer's passages are used again; `null` takes the value "
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
        True, description="keep the last turns of a `sessionId`, complete questions from them, and list conversations"
    )
    max_turns: Annotated[int, Field(ge=1, le=50)] = Field(6, description="questions and answers that are kept")
    max_tokens: Annotated[int, Field(ge=100, le=20_000)] = Field(
        2000, description="tokens that the kept turns may have together"
    )
    max_age_hours: Annotated[int, Field(ge=1, le=720)] = Field(
        12, description="hours after which a conversation is forgotten"
    )


class FeedbackSettings(Group):
    """What users say of answers."""

    enabled: bool = Field(True, description="let users rate answers")
    retention_days: Annotated[int, Field(ge=1, le=400)] = Field(
        90, description="days for which a rating is kept, with its question and comment"
    )


class RecoverySweepSettings(Group):
    """The sweep for requests without a worker."""

    sweep_minutes: Annotated[int, Field(ge=1, le=60)] = Field(
        2, description="minutes between two looks for questions whose worker was lost"
    )
    open_partitions: Annotated[int, Field(ge=4, le=1000)] = Field(
        4,
        description="partitions of the table's index of open questions: each takes 500 new questions a second; "
        "raise it when no function of release 0.1.0 runs any more",
    )
