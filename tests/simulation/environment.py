"""One execution environment of the answer worker, wired as ``lambdas/answer`` wires it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cicada.answering.agent import AgentName, AgentStrategy
from cicada.answering.attempt import AttemptRunner
from cicada.answering.cag import CagStrategy
from cicada.answering.direct import DirectStrategy
from cicada.answering.hybrid import HybridStrategy
from cicada.answering.judge import CitationJudge
from cicada.answering.prompt import PROMPT_VERSION
from cicada.answering.rag import RagStrategy
from cicada.attempts.strategy import Strategy
from cicada.breakers.dependencies import INDEX, model_breaker
from cicada.breakers.dynamodb import DynamoDbBreakerStore
from cicada.breakers.guards import (
    GuardedAgent,
    GuardedCache,
    GuardedEmbedder,
    GuardedForms,
    GuardedModel,
    GuardedRetriever,
)
from cicada.breakers.registry import BreakerRegistry
from cicada.citations.judging import JUDGE_MAX_TOKENS
from cicada.conversation.conversation import Conversation
from cicada.conversation.sessions import DynamoDbSessions
from cicada.semantic_cache.cache import SemanticCache
from cicada.semantic_cache.decision import Thresholds
from cicada.semantic_cache.dynamodb import DynamoDbCacheStore
from cicada.semantic_cache.scope import Sharing
from tests.simulation.agents import Agent, SearchTool, searched_first
from tests.simulation.corpus import Embedder
from tests.simulation.hearing import Heard
from tests.simulation.models import JudgingModel, Model

if TYPE_CHECKING:
    from tests.simulation.deployment import Deployment

GENERATION, DIRECT = "local.writer", "local.small"
PROMPT_PASSAGES = 4


AGENTS: tuple[AgentName, ...] = ("profile_agent", "theory_agent")


class Environment:
    """What outlives an invocation: the strategies, the view of the breakers, the cache's memory."""

    def __init__(self, house: Deployment, name: str) -> None:
        scheduler, faults, judge = house.scheduler, house.faults, house.judge
        self.busy = False
        sharing: Sharing = "tenant" if house.shares_answers else "user"
        breakers = BreakerRegistry(
            DynamoDbBreakerStore(house.table, "table"),
            worker_id=name,
            concurrency=house.concurrency,
            now_s=house.now_s,
            share=scheduler.random,
        )
        retriever = GuardedRetriever(house.index, breakers)
        writer = GuardedModel(Model(GENERATION, 512, scheduler, faults, judge.called), breakers)
        small = Model(DIRECT, 256, scheduler, faults, judge.called)
        judging = JudgingModel(DIRECT, JUDGE_MAX_TOKENS, scheduler, faults, judge.judging_called)
        self._citations = CitationJudge(GuardedForms(judging, breakers))
        conversation = Conversation(
            DynamoDbSessions(house.table, "table"), GuardedModel(small, breakers), now_s=house.now_s
        )
        kept = SemanticCache(
            DynamoDbCacheStore(house.table, "table"),
            GuardedEmbedder(Embedder(scheduler, faults), breakers),
            sharing=sharing,
            thresholds=Thresholds(replay=0.97, near=0.8),
            generation_model_id=GENERATION,
            prompt_version=PROMPT_VERSION,
            now_s=house.now_s,
            monotonic=house.monotonic,
            new_suffix=lambda: f"{int(scheduler.random() * 16**8):08x}",
        )
        cache = GuardedCache(kept, breakers)
        strategies: tuple[Strategy, ...] = (
            HybridStrategy(
                retriever,
                cache,
                writer,
                top_k=6,
                min_score=0.5,
                prompt_passages=PROMPT_PASSAGES,
                concurrency=house.concurrency,
                judge=self._citations,
            ),
            RagStrategy(
                retriever,
                cache,
                writer,
                top_k=6,
                min_score=0.5,
                prompt_passages=PROMPT_PASSAGES,
                concurrency=house.concurrency,
                judge=self._citations,
            ),
            CagStrategy(retriever, cache, writer, prompt_passages=PROMPT_PASSAGES, judge=self._citations),
            DirectStrategy(GuardedModel(small, breakers, last_resort=True)),
            *(self._agent(name, house, breakers, retriever) for name in AGENTS),
        )
        self.runner = AttemptRunner(
            house.log,
            house.connections,
            {strategy.name: Heard(strategy, judge, scheduler) for strategy in strategies},
            access=house.access,
            conversation=conversation,
            breakers=breakers,
            sinks=(conversation, kept),
            concurrency=house.concurrency,
            now_s=house.now_s,
            monotonic=house.monotonic,
        )

    def _agent(
        self, name: AgentName, house: Deployment, breakers: BreakerRegistry, retriever: GuardedRetriever
    ) -> AgentStrategy:
        model = Model(GENERATION, 512, house.scheduler, house.faults, house.judge.agent_called)
        breaker = model_breaker(GENERATION)
        return AgentStrategy(
            name,
            GuardedAgent(Agent(model, house.faults), breakers, breaker),
            retriever=retriever,
            tools=lambda watched: [SearchTool(watched)],
            opening=searched_first,
            needs=(INDEX, breaker),
            judge=self._citations,
        )
