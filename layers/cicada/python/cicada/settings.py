"""A function's environment as one object, which its handler reads once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, Json, ValidationError

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
from cicada.models.endpoints import Endpoints
from cicada.profiles.rules import ProfileLimits
from cicada.rights import ConfiguredAccess, Uploaders
from cicada.usage.limits import UsageLimits

DAY_S = 24 * 3600


class Environment(BaseModel):
    """Settings that are named like environment variables, in lower case."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read only our own variables, so that no credential gets into an error message. Raises SettingsInvalid."""
        ours = {name: environ[name.upper()] for name in cls.model_fields if environ.get(name.upper())}
        try:
            return cls.model_validate(ours)
        except ValidationError as error:
            found = (
                f"{'.'.join(str(part) for part in problem['loc']).upper()}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)
            )
            raise SettingsInvalid("; ".join(found)) from error


class DeliverySettings(Environment):
    """For functions that read or write a request's log."""

    requests_table: str


class ProfileSettings(DeliverySettings):
    """For functions that read or write profiles."""

    profile_limits: Json[ProfileLimits] = ProfileLimits()


class RecoverySettings(DeliverySettings):
    """For functions that start the answer workflow."""

    state_machine_arn: str
    request_time_s: Annotated[float, Field(gt=0, le=900)] = 300.0
    """From a request's acceptance to its terminal event; afterwards it is not restarted."""


class MessageProcessorSettings(RecoverySettings, ProfileSettings):
    """For the message processor."""

    retention_s: Annotated[int, Field(ge=3600, le=365 * DAY_S)] = 7 * DAY_S
    """How long a request's log can be resumed."""
    knowledge_enabled: bool = False
    """Whether questions that need a search enter at hybrid, which searches by what collections declare."""
    agents_enabled: bool = True
    """Without agents, their questions are answered by a search."""
    conversation_enabled: bool = True
    """Whether conversations are listed."""
    conversation_max_age_s: Annotated[int, Field(gt=0)] = 12 * 3600
    """How long a conversation is listed after its last question."""
    feedback_enabled: bool = True
    """Whether users can rate answers."""
    feedback_retention_s: Annotated[int, Field(gt=0)] = 90 * DAY_S
    """How long ratings are kept."""
    usage_limits: Json[UsageLimits] = UsageLimits()
    """The limits on use; none where it is not set."""
    request_tokens: Annotated[int, Field(gt=0)] = 120_000
    """What one request may use at most, in tokens and US dollars: it is reserved where there are limits."""
    request_cost_usd: Annotated[float, Field(gt=0)] = 0.4
    open_partitions: Annotated[int, Field(ge=4, le=1000)] = 4
    """Over how many partitions of the table's index open requests are spread."""
    auth: Literal["jwt", "none"] = "jwt"
    """``none`` is for the local cloud only; the stacks reject it elsewhere."""


class CorpusSettings(DeliverySettings):
    """For the function that lists, searches and reads the corpus."""

    index_bucket: str
    access: Json[ConfiguredAccess] = ConfiguredAccess()
    """Who may read which collections, as far as the deployment's settings say it."""
    embedding_model_id: str
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)]
    top_k: Annotated[int, Field(ge=1, le=100)] = DEFAULT_TOP_K
    min_score: Annotated[float, Field(ge=0, le=1)] = DEFAULT_MIN_SCORE
    retrieval_engine: Literal["shards", "s3vectors", "kendra"] = "shards"
    s3_vectors_index_arn: str = ""
    kendra_index_id: str = ""
    engine_budget_s: Annotated[float, Field(gt=0, le=60)] = DEFAULT_ENGINE_BUDGET_S
    usage_limits: Json[UsageLimits] = UsageLimits()
    """The limits on use; none where it is not set."""
    uploaders: Json[Uploaders] | None = None
    """Who may upload to which collections; None where nobody may."""
    auth: Literal["jwt", "none"] = "jwt"
    """``none`` is for the local cloud only; the stacks reject it elsewhere."""


class AuthorizerSettings(Environment):
    """For the authorizer."""

    jwt_issuer: str
    jwt_audience: str
    jwt_client_id: str = ""
    """The audience of ID tokens, where that of access tokens is another."""
    jwks_url: str = ""
    """Where the issuer's keys are; by default the issuer is asked."""
    tenant_claim: str = ""
    """The claim that names the tenant; without it there are no tenants."""
    groups_claim: str = ""
    """The claim that lists the user's groups; without it there are none."""
    required_groups: str = ""
    """Groups one of which a user must be in, separated by commas; all users may connect when empty."""
    token_in_url: bool = False
    """Whether a token may come in the URL."""
    allowed_origins: str = ""
    """Origins from which a browser may connect, separated by commas; any when empty."""

    def origins(self) -> frozenset[str]:
        """The allowed origins, empty for any."""
        return _listed(self.allowed_origins)

    def groups(self) -> frozenset[str]:
        """The required groups, empty for none."""
        return _listed(self.required_groups)

    def audiences(self) -> frozenset[str]:
        """The accepted audiences."""
        return _listed(f"{self.jwt_audience},{self.jwt_client_id}")


def _listed(value: str) -> frozenset[str]:
    return frozenset(one.strip() for one in value.split(",") if one.strip())


class AnswerSettings(ProfileSettings):
    """For the answer worker."""

    index_bucket: str
    access: Json[ConfiguredAccess] = ConfiguredAccess()
    """Who may read which collections, as far as the deployment's settings say it."""
    generation_model_id: str
    direct_model_id: str
    """Writes answers without retrieval, and completes questions."""
    strategy_model_ids: Json[dict[Literal["hybrid", "rag", "cag", "direct"], str]] = {}
    """Overrides of these models by strategy."""
    model_endpoints: Json[Endpoints] = Endpoints.none()
    """Serve the models whose ids contain a slash."""
    embedding_model_id: str
    embedding_dimensions: Annotated[int, Field(ge=1, le=4096)]
    max_tokens: Annotated[int, Field(ge=1, le=128_000)] = 2048
    direct_max_tokens: Annotated[int, Field(ge=1, le=128_000)] = 512
    """Of an answer without retrieval."""
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    """Not sent if None: some models reject it."""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=1, le=100)] = DEFAULT_TOP_K
    min_score: Annotated[float, Field(ge=0, le=1)] = DEFAULT_MIN_SCORE
    prompt_passages: Annotated[int, Field(ge=1, le=50)] = 10
    """How many of the hits go into the prompt."""
    retrieval_pipeline: Literal["standard", "rerank", "advanced"] = "standard"
    """How passages are retrieved; ``standard`` is one search."""
    reranker_model_id: str = ""
    """Judges passages in the other pipelines; ``direct_model_id`` when empty."""
    expansion_model_id: str = ""
    """Writes other wordings of the question; ``direct_model_id`` when empty."""
    pipeline_budget_s: Annotated[float, Field(gt=0, le=60)] = DEFAULT_PIPELINE_BUDGET_S
    """Seconds for a pipeline's stages; late results are left out."""
    knowledge_enabled: bool = False
    """Whether questions are answered from the collections, and sections of them, that declare to serve them."""
    selector_model_id: str = ""
    """Chooses collections and intentions; ``direct_model_id`` when empty."""
    extractor_model_id: str = ""
    """Finds the names in a question; ``direct_model_id`` when empty."""
    knowledge_extractor: Literal["model", "gazetteer", "both"] = "both"
    """What finds the names in a question."""
    min_intention_confidence: Annotated[float, Field(ge=0, le=1)] = MIN_INTENTION_CONFIDENCE
    min_entity_confidence: Annotated[float, Field(ge=0, le=1)] = MIN_ENTITY_CONFIDENCE
    context_tokens: Annotated[int, Field(ge=500, le=100_000)] = DEFAULT_CONTEXT_TOKENS
    passages_per_collection: Annotated[int, Field(ge=1, le=50)] = DEFAULT_PASSAGES_PER_COLLECTION
    knowledge_budget_s: Annotated[float, Field(gt=0, le=60)] = DEFAULT_KNOWLEDGE_BUDGET_S
    """After it, the plain search of ``rag`` answers."""
    retrieval_engine: Literal["shards", "s3vectors", "kendra"] = "shards"
    s3_vectors_index_arn: str = ""
    kendra_index_id: str = ""
    engine_budget_s: Annotated[float, Field(gt=0, le=60)] = DEFAULT_ENGINE_BUDGET_S
    agents_adapter: Literal["none", "converse", "classic", "harness"] = "converse"
    """What runs the agents."""
    agents_model_id: str = ""
    """The model that uses the tools; ``generation_model_id`` when empty."""
    agents_deployed: Json[dict[Literal["profile", "theory"], dict[str, str]]] = {}
    """The adapter's resources that the stacks created, by agent, such as ``agentId``."""
    agents_max_turns: Annotated[int, Field(ge=1)] = 8
    agents_max_tool_calls: Annotated[int, Field(ge=1)] = 12
    agents_max_tokens: Annotated[int, Field(ge=1)] = 48_000
    """Input and output of all turns for one question."""
    agents_max_turn_tokens: Annotated[int, Field(ge=1)] = 2_048
    """Output of one turn."""
    agents_time_s: Annotated[float, Field(gt=0)] = 45.0
    """Of one run, in seconds."""
    request_time_s: Annotated[float, Field(gt=0, le=900)] = 300.0
    """The budget of one request over all its attempts, in seconds, tokens and US dollars."""
    request_tokens: Annotated[int, Field(gt=0)] = 120_000
    request_cost_usd: Annotated[float, Field(gt=0)] = 0.4
    citations_judge: Literal["model", "rules"] = "rules"
    """Whether a model checks the citations that code cannot check."""
    citations_judge_model_id: str = ""
    """``direct_model_id`` when empty."""
    citations_judge_time_s: Annotated[float, Field(gt=0)] = 4.0
    citations_judge_cost_usd: Annotated[float, Field(gt=0)] = 0.02

    guardrail_id: str = ""
    """The id or ARN of the guardrail that checks questions and answers; none when empty."""
    guardrail_version: str = ""
    guardrail_stream: Literal["sync", "async"] = "sync"
    """Whether text is shown only after its check."""
    guardrail_grounding: bool = False
    """Whether answers are checked against their passages."""
    guardrail_on_failure: Literal["closed", "open"] = "closed"
    """Whether a text that could not be checked is used."""
    guardrail_message: str = ""
    """What the guardrail says in place of a blocked text, where that is known."""

    cache_enabled: bool = True
    """Whether grounded answers are stored in the semantic cache and reused."""
    cache_sharing: Literal["user", "tenant", "deployment"] = "user"
    """Whose earlier answers may be reused."""
    cache_ttl_s: Annotated[int, Field(gt=0)] = 7 * DAY_S
    cache_max_entries: Annotated[int, Field(gt=0)] = 1000
    """Answers per scope."""
    cache_confirm: Literal["off", "model"] = "off"
    """Whether a model decides if a near earlier question asks the same."""
    cache_replay_threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    """Similarity from which an earlier answer may be replayed; the embedding model's value when None."""
    cache_near_threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    """Similarity from which an earlier answer's passages may be reused."""
    conversation_enabled: bool = True
    """Whether the last turns of a session are stored, and questions completed from them."""
    conversation_max_turns: Annotated[int, Field(gt=0)] = 6
    conversation_max_tokens: Annotated[int, Field(gt=0)] = 2000
    """Of the kept turns together."""
    conversation_max_age_s: Annotated[int, Field(gt=0)] = 12 * 3600


class IndexMaintenanceSettings(Environment):
    """For the index maintenance function."""

    index_bucket: str
    keep_versions: Annotated[int, Field(ge=1, le=1000)] = 10
    """Versions that can be rolled back to, including the current one."""
    garbage_grace_s: Annotated[float, Field(ge=0)] = DAY_S
    """How long objects are kept after they were written or current. Writers publish within half a day of their start,
    and readers may still use a version; a shorter time is for tests only."""


class RecordSettingsSettings(Environment):
    """For the function that records changed settings."""

    index_bucket: str


class PageFilesSettings(Environment):
    """For the function that uploads the page."""

    page_bucket: str
