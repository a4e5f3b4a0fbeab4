"""The deployer's settings: what they are, what they may be, and what they default to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from cicada.attempts.budgets import RequestBudget, retrieval_share
from cicada.attempts.chain import MAX_MODEL_CALLS
from cicada.models.model_ids import read_endpoint_id
from cicada.models.ports import Usage
from cicada.models.prices import cost
from stacks.access_settings import AccessSettings
from stacks.agents_settings import AgentsSettings
from stacks.answer_settings import (
    Budget,
    Cache,
    CitationsSettings,
    ConversationSettings,
    FeedbackSettings,
    Group,
    KnowledgeSettings,
    ModelsSettings,
    RecoverySweepSettings,
    Retrieval,
)
from stacks.auth_settings import RESERVED_IN_DOMAINS, AuthSettings
from stacks.bedrock_regions import why_not_from
from stacks.guardrail_settings import GuardrailSettings
from stacks.http_settings import HttpAccessSettings
from stacks.ingest_settings import Ingest
from stacks.objectives_settings import ObjectivesSettings
from stacks.page_settings import PageSettings
from stacks.profiles_settings import ProfilesSettings
from stacks.replication_settings import Replication
from stacks.uploads_settings import UploadsSettings
from stacks.usage_settings import UsageLimitsSettings

LOCAL_ACCOUNT = "123456789012"
"""The account of the local cloud: AWS's own example, which nobody has. Stacks made with ``local`` are bound to it, so
that they can be deployed nowhere else."""

DAY_S = 24 * 3600

LOG_RETENTION = {
    1: "ONE_DAY",
    3: "THREE_DAYS",
    5: "FIVE_DAYS",
    7: "ONE_WEEK",
    14: "TWO_WEEKS",
    30: "ONE_MONTH",
    60: "TWO_MONTHS",
    90: "THREE_MONTHS",
    120: "FOUR_MONTHS",
    150: "FIVE_MONTHS",
    180: "SIX_MONTHS",
    365: "ONE_YEAR",
    400: "THIRTEEN_MONTHS",
    545: "EIGHTEEN_MONTHS",
    731: "TWO_YEARS",
}
"""The days that CloudWatch Logs offers, up to two years, and what the CDK calls them."""


PROMPT_TOKENS = 5_000
"""Tokens that a call needs in addition to its answer: instructions, a long question, and the best passages."""


class ContextInvalid(Exception):
    """A setting is missing, unknown or out of range; the message names each and says what to do."""


def _log_days(value: int) -> int:
    if value not in LOG_RETENTION:
        raise ValueError(f"must be one of {', '.join(map(str, LOG_RETENTION))}")
    return value


class Throttling(Group):
    """What the WebSocket API takes, over all clients."""

    rate_per_s: Annotated[float, Field(gt=0, le=10_000)] = Field(
        100, description="frames and new connections per second"
    )
    burst: Annotated[int, Field(ge=1, le=5_000)] = Field(200, description="burst of frames and new connections")


class DeploymentLimits(Group):
    """Hard caps on what the deployment can consume. Without one, the account's quotas hold."""

    answer_concurrency: Annotated[int, Field(ge=0, le=1_000)] | None = Field(
        None,
        description="concurrent answers (reserved concurrency; 0 stops answering); the account must keep 100 "
        "unreserved",
    )
    table_read_units: Annotated[int, Field(ge=1, le=40_000)] | None = Field(
        None, description="maximum read units per second of the table"
    )
    table_write_units: Annotated[int, Field(ge=1, le=40_000)] | None = Field(
        None, description="maximum write units per second of the table"
    )


class Settings(Group):
    """Everything a deployer decides."""

    stack_prefix: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,39}$")] = Field(
        "Cicada",
        description="prefix of the stack names: `<prefix>-Data`, `<prefix>-Page`, `<prefix>-SignIn`, "
        "`<prefix>-Answering`, `<prefix>-Ingest`, `<prefix>-Integrators`, `<prefix>-Gateway`",
    )
    auth: AuthSettings = AuthSettings()
    access: AccessSettings = AccessSettings()
    models: ModelsSettings = ModelsSettings()
    retrieval: Retrieval = Retrieval()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    agents: AgentsSettings = AgentsSettings()
    profiles: ProfilesSettings = ProfilesSettings()
    page: PageSettings = PageSettings()
    http: HttpAccessSettings = HttpAccessSettings()
    budget: Budget = Budget()
    citations: CitationsSettings = CitationsSettings()
    guardrail: GuardrailSettings = GuardrailSettings()
    cache: Cache = Cache()
    conversation: ConversationSettings = ConversationSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    recovery: RecoverySweepSettings = RecoverySweepSettings()
    ingest: Ingest = Ingest()
    uploads: UploadsSettings = UploadsSettings()
    throttling: Throttling = Throttling()
    limits: DeploymentLimits = DeploymentLimits()
    usage_limits: UsageLimitsSettings = UsageLimitsSettings()
    retention_days: Annotated[int, Field(ge=1, le=365)] = Field(
        7, description="how long an answer can be resumed before it is deleted"
    )
    log_retention_days: Annotated[int, AfterValidator(_log_days)] = Field(
        30, description="log retention in days, one of the values that CloudWatch Logs supports"
    )
    log_level: Literal["DEBUG", "INFO", "WARN", "ERROR"] = Field(
        "INFO", description="minimum log level; metrics are recorded at every level"
    )
    answer_memory_mb: Annotated[int, Field(ge=512, le=10_240)] = Field(
        1769, description="memory of the answer worker, which loads the index; 1,769 MB give one full vCPU"
    )
    # 3,008 MB is the most that a new account may ask for: with more, the stack could not be deployed there. A merge
    # needs about 2 bytes for each stored byte of vectors and 32 for each of texts and postings, and the function counts
    # on three quarters of what the runtime leaves, here 2.06 GiB. A row of 1,024 dimensions and 150 words is stored in
    # 3,200 + 650 bytes and takes 27 KB: 81,000 rows are merged into one segment.
    maintenance_memory_mb: Annotated[int, Field(ge=512, le=10_240)] = Field(
        3008, description="memory of the index maintenance function; limits the size of segments that it can merge"
    )
    on_delete: Literal["retain", "destroy"] = Field(
        "retain",
        description="what happens to the buckets, the table and the user pool when their stack is deleted; "
        "`retain` also enables deletion protection of the table and the user pool",
    )
    point_in_time_recovery: bool = Field(
        False,
        description="continuous backups of the table (billed by its size), used by `cicada restore table`",
    )
    replication: Replication = Replication()
    customer_managed_key: Literal[True, False, "retiring"] = Field(
        False,
        description="encrypt bucket, table and logs with a customer managed KMS key (billed monthly). "
        '`"retiring"` stops encrypting with it but keeps read access; before `false`, see '
        "`docs/upgrading.md`",
    )
    alarm_email: Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = Field(
        None, description="e-mail address for alarms; creates the alarms (billed monthly)"
    )
    objectives: ObjectivesSettings = ObjectivesSettings()
    dashboard: bool = Field(
        True,
        description="create the dashboard `<prefix>-<Region>`; an account has three free dashboards, further "
        "ones are billed monthly",
    )
    runbooks: Annotated[str, StringConstraints(pattern=r"^[^\s]+[^/\s]$", max_length=200)] = Field(
        "docs/runbooks",
        description="location of the runbooks in alarm descriptions: a folder, or the URL of your copy",
    )
    create_api_logging_role: bool = Field(
        True,
        description="set API Gateway's logging role for the account and Region; use `false` if another stack "
        "manages it",
    )
    tags: dict[str, str] = Field({}, description="tags on every resource")
    local: bool = Field(False, description="settings for the local cloud; `true` prevents a deployment to AWS")

    @model_validator(mode="after")
    def _a_tenant_is_known_where_it_is_shared_with(self) -> Settings:
        if self.cache.sharing == "tenant" and self.auth.tenant_claim is None:
            raise ValueError('cache.sharing: "tenant" needs auth.tenantClaim, which says whose tenant an asker is')
        return self

    @model_validator(mode="after")
    def _a_sign_in_domain_can_be_named(self) -> Settings:
        if self.auth.mode == "cognito" and self.auth.domain_prefix is None:
            found = [word for word in RESERVED_IN_DOMAINS if word in self.stack_prefix.lower()]
            if found:
                raise ValueError(
                    f"auth.domainPrefix: give one. It cannot be made of stackPrefix, which contains {found[0]!r}: "
                    "Amazon Cognito reserves it"
                )
        return self

    @model_validator(mode="after")
    def _every_call_has_room_for_its_answer(self) -> Settings:
        budget = RequestBudget(
            tokens=self.budget.request_tokens,
            cost_usd=self.budget.request_cost_usd,
            retrieval_share=retrieval_share(
                self.retrieval.pipeline, knowledge=self.knowledge.enabled, confirms=self.cache.confirm == "model"
            ),
        )
        parts = round(MAX_MODEL_CALLS / (1 - budget.retrieval_share))
        part = {4: "a quarter", 8: "an eighth"}[parts]
        writers = self.models.writers()
        longest = max(writers.values())
        if budget.tokens_a_call < longest + PROMPT_TOKENS:
            raise ValueError(
                f"budget.requestTokens: must be at least {parts * (longest + PROMPT_TOKENS)}. A call may "
                f"use {part} of it, for a prompt of {PROMPT_TOKENS} tokens and the longest answer of {longest}"
            )
        for model_id, max_tokens in writers.items():
            usd = self._most_usd(model_id, Usage(PROMPT_TOKENS, max_tokens))
            if usd is not None and usd > budget.cost_usd_a_call:
                raise ValueError(
                    f"budget.requestCostUsd: must be at least {parts * usd:.3f}. A call may cost "
                    f"{part} of it, and one of {model_id} can cost {usd:.4f}"
                )
        return self

    @model_validator(mode="after")
    def _groups_and_limits_fit_the_rest(self) -> Settings:
        self.access.check(self.auth)
        self.uploads.check(self.auth)
        self.usage_limits.check(self.auth, self.budget)
        self.replication.check_key(self.customer_managed_key is not False)
        return self

    def _most_usd(self, model_id: str, usage: Usage) -> float | None:
        """What a call costs; None if the price is not known."""
        told = self.models.served().prices().get(model_id)
        if told is not None:
            return told.usd(usage)
        price = cost(model_id, usage)
        return None if price is None else price.usd

    @model_validator(mode="after")
    def _every_other_model_is_served(self) -> Settings:
        for name in ("reranker_model_id", "expansion_model_id"):
            model_id = getattr(self.retrieval, name)
            if model_id is not None:
                self.models.check_served(f"retrieval.{to_camel(name)}", model_id)
        for name in ("selector_model_id", "extractor_model_id"):
            model_id = getattr(self.knowledge, name)
            if model_id is not None:
                self.models.check_served(f"knowledge.{to_camel(name)}", model_id)
        if self.ingest.enrichment_model_id is not None:
            self.models.check_served("ingest.enrichmentModelId", self.ingest.enrichment_model_id)
        return self

    @model_validator(mode="after")
    def _every_quota_is_of_a_model_of_bedrock(self) -> Settings:
        known = self.models_of_bedrock()
        for model_id in self.objectives.model_tokens_minute:
            if model_id not in known:
                raise ValueError(
                    f"objectives.modelTokensMinute: {model_id} is called by nothing here. These are: {', '.join(known)}"
                )
        return self

    @model_validator(mode="after")
    def _agents_have_a_model_of_bedrock(self) -> Settings:
        model_id = self.agents.runs_on(self.models.generation_model_id)
        if model_id is not None and read_endpoint_id(model_id) is not None:
            raise ValueError(
                f"agents.modelId: agents call models on Amazon Bedrock, and models.generationModelId, {model_id}, is "
                'none. Name one here, or set agents.adapter to "none"'
            )
        return self

    @model_validator(mode="after")
    def _nothing_weak_leaves_the_laptop(self) -> Settings:
        if self.local:
            return self
        if self.auth.mode == "none":
            raise ValueError(
                'auth.mode: "none" would let anybody use this deployment at your cost. It exists for the local cloud '
                'only. Use "cognito", or "oidc" with an issuer and an audience'
            )
        if self.auth.mode == "cognito" and self.auth.issuer is not None:
            raise ValueError('auth.issuer: is for mode "oidc". A user pool has an issuer of its own')
        for name, url in (("issuer", self.auth.issuer), ("jwksUrl", self.auth.jwks_url)):
            if url is not None and not url.startswith("https://"):
                raise ValueError(f"auth.{name}: must begin with https://")
        for name, endpoint in self.models.endpoints.items():
            if not endpoint.base_url.startswith("https://"):
                raise ValueError(f"models.endpoints.{name}.baseUrl: must begin with https://")
        return self

    def for_environment(self, *, account: str | None, region: str | None) -> Settings:
        """These settings, if they suit the account and Region that the CDK is about to deploy to.

        Raises:
            SettingsInvalid: settings of the local cloud aimed at an AWS account, a model or a secret of elsewhere.
        """
        if self.local and account not in (None, LOCAL_ACCOUNT):
            raise ContextInvalid(f"local: these settings are for the local cloud and not for AWS account {account}")
        if self.local:
            return self
        for name, model_id in self.named_models().items():
            if (why := why_not_from(region, model_id)) is not None:
                raise ContextInvalid(f"{name}: {why}")
        for name, endpoint in self.models.endpoints.items():
            if region is not None and endpoint.secret_arn is not None and endpoint.secret_arn.split(":")[3] != region:
                raise ContextInvalid(
                    f"models.endpoints.{name}.secretArn: the secret must lie in {region}, where the functions are"
                )
        return self

    def named_models(self) -> dict[str, str]:
        """The models that the settings name, by setting."""
        named = {
            "models.generationModelId": self.models.generation_model_id,
            "models.directModelId": self.models.direct_model_id,
            "models.embeddingModelId": self.models.embedding_model_id,
            **{f"models.perStrategy.{strategy}": model_id for strategy, model_id in self.models.per_strategy.items()},
            "retrieval.rerankerModelId": self.retrieval.reranker_model_id,
            "retrieval.expansionModelId": self.retrieval.expansion_model_id,
            "knowledge.selectorModelId": self.knowledge.selector_model_id,
            "knowledge.extractorModelId": self.knowledge.extractor_model_id,
            "citations.judgeModelId": self.citations.judge_model_id,
            "agents.modelId": self.agents.model_id,
            "ingest.enrichmentModelId": self.ingest.enrichment_model_id,
        }
        return {name: model_id for name, model_id in named.items() if model_id is not None}

    def models_of_bedrock(self) -> tuple[str, ...]:
        """The models that Amazon Bedrock serves of those that the settings name, those that write answers first."""
        named = (*self.models.writers(), *self.named_models().values())
        return tuple(dict.fromkeys(model_id for model_id in named if read_endpoint_id(model_id) is None))
