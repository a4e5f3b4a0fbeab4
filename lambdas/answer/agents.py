"""The agents of the answer worker: their tools, and the adapter that the settings name.

Adapters and profiles are imported only if there are agents, so that other deployments do not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import boto3

from cicada.agents.instructions import AgentKind
from cicada.agents.ports import Agent
from cicada.answering.judge import CitationJudge
from cicada.attempts.strategy import Strategy
from cicada.breakers.dependencies import INDEX, agent_breaker, model_breaker
from cicada.breakers.guards import GuardedAgent, GuardedForms
from cicada.breakers.registry import BreakerRegistry
from cicada.delivery.record import RequestHead
from cicada.models.factory import ModelFactory
from cicada.protocol.events import ProfileChanged, StrategyName
from cicada.retrieval.ports import Retriever
from cicada.settings import AnswerSettings


class Agents(NamedTuple):
    """The agents of a worker."""

    strategies: Mapping[StrategyName, Strategy] = MappingProxyType({})
    changes: Callable[[RequestHead], Iterable[ProfileChanged]] = lambda _: ()
    """The profile changes of a request so far."""


def build_agents(
    settings: AnswerSettings,
    retriever: Retriever,
    models: ModelFactory,
    breakers: BreakerRegistry,
    judge: CitationJudge | None,
    *,
    bedrock: Callable[[], Any],
) -> Agents:
    """The agents' strategies by name; none if the settings name no adapter."""
    if settings.agents_adapter == "none":
        return Agents()
    from cicada.agents.limits import AgentCaps
    from cicada.agents.receipts import told_changes
    from cicada.agents.tools import tools_for
    from cicada.agents.tools.evidence import JUDGE_MAX_TOKENS, EvidenceJudge
    from cicada.answering.agent import AgentStrategy, ProfileOpening, TheoryOpening
    from cicada.profiles.dynamodb import PROFILES_CONFIG, DynamoDbProfiles
    from cicada.profiles.service import ProfileService

    caps = AgentCaps(
        max_turns=settings.agents_max_turns,
        max_tool_calls=settings.agents_max_tool_calls,
        max_tokens=settings.agents_max_tokens,
        max_turn_tokens=settings.agents_max_turn_tokens,
        time_s=settings.agents_time_s,
    )
    store = DynamoDbProfiles(boto3.client("dynamodb", config=PROFILES_CONFIG), settings.requests_table)
    profile_service = ProfileService(store, limits=settings.profile_limits)
    sorting = models.structured(settings.generation_model_id, max_tokens=JUDGE_MAX_TOKENS)
    sides = EvidenceJudge(GuardedForms(sorting, breakers))
    breaker = _breaker(settings)

    def theories(subject: str) -> Sequence[Any]:
        return profile_service.list(subject, "theory")

    def agent(kind: AgentKind) -> GuardedAgent:
        return GuardedAgent(_checked(settings, _agent(settings, kind, bedrock, models), models), breakers, breaker)

    strategies: dict[StrategyName, Strategy] = {
        "profile_agent": AgentStrategy(
            "profile_agent",
            agent("profile"),
            retriever=retriever,
            tools=lambda watched: tools_for("profile", profile_service, watched),
            opening=ProfileOpening(profile_service.list),
            needs=(breaker,),
            caps=caps,
            judge=judge,
        ),
        "theory_agent": AgentStrategy(
            "theory_agent",
            agent("theory"),
            retriever=retriever,
            tools=lambda watched: tools_for("theory", profile_service, watched, sides),
            opening=TheoryOpening(theories),
            needs=(INDEX, breaker),
            caps=caps,
            judge=judge,
        ),
    }
    return Agents(strategies, lambda head: told_changes(profile_service, head))


def _breaker(settings: AnswerSettings) -> str:
    """The breaker of the service or model that runs the agents."""
    adapter = settings.agents_adapter
    return model_breaker(_model_id(settings)) if adapter == "converse" else agent_breaker(adapter)


def _model_id(settings: AnswerSettings) -> str:
    return settings.agents_model_id or settings.generation_model_id


def _checked(settings: AnswerSettings, agent: Agent, models: ModelFactory) -> Agent:
    """An agent behind the guardrail's checks that its service does not make itself."""
    checks = models.checks()
    if checks is None or settings.agents_adapter == "classic":
        return agent
    from cicada.agents.checked import CheckedAgent

    return CheckedAgent(agent, checks, answers=settings.agents_adapter == "harness")


def _agent(settings: AnswerSettings, kind: AgentKind, bedrock: Callable[[], Any], models: ModelFactory) -> Agent:
    """The adapter of one agent."""
    deployed, model_id = settings.agents_deployed.get(kind, {}), _model_id(settings)
    match settings.agents_adapter:
        case "classic":
            from cicada.agents.classic.agent import ClassicAgent, DeployedAgent
            from cicada.agents.classic.invocation import Invocations, agent_client_config

            client = boto3.client("bedrock-agent-runtime", config=agent_client_config())
            return ClassicAgent(
                Invocations(client),
                DeployedAgent(deployed["agentId"], deployed["aliasId"], model_id),
                DeployedAgent(deployed["readingAgentId"], deployed["readingAliasId"], model_id),
                max_turn_tokens=settings.agents_max_turn_tokens,
                guardrail=models.guardrail,
            )
        case "harness":
            from cicada.agents.harness.agent import HarnessAgent
            from cicada.agents.harness.invocation import Harness
            from cicada.agents.limits import SERVICE_READ_TIMEOUT_S
            from cicada.models.bedrock import bedrock_client_config

            config = bedrock_client_config(read_timeout_s=SERVICE_READ_TIMEOUT_S)
            return HarnessAgent(
                boto3.client("bedrock-agentcore", config=config),
                Harness(deployed["harnessArn"], deployed["endpoint"]),
                model_id,
                max_turn_tokens=settings.agents_max_turn_tokens,
                temperature=settings.temperature,
                top_p=settings.top_p,
            )
        case _:
            from cicada.agents.converse.agent import ConverseAgent

            return ConverseAgent(
                bedrock(),
                model_id,
                guardrail=models.guardrail,
                max_turn_tokens=settings.agents_max_turn_tokens,
                temperature=settings.temperature,
                top_p=settings.top_p,
            )
