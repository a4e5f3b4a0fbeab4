"""The strategies of the agents, profile and theory: what they may take, and what happens before a model is asked."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cicada.agents.instructions import INSTRUCTIONS, AgentKind
from cicada.agents.limits import AgentCaps, CappedLimits, timed
from cicada.agents.ports import Actor, Agent, AgentFinished, AgentTask, Done, Tool
from cicada.agents.source_registry import NumberedSources
from cicada.agents.tool_runner import ToolRunner
from cicada.agents.tools.inputs import MAX_QUERY_CHARS
from cicada.agents.tools.theories import not_given, verdict_line
from cicada.answering.grounding import AttemptLimits, log_retrieved
from cicada.answering.judge import CitationJudge
from cicada.answering.watched import WatchedRetriever
from cicada.attempts.budgets import AttemptBudget, ModelCall, SubBudget
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved, Step
from cicada.attempts.writing import note_call
from cicada.citations import check_citations, not_attributed
from cicada.errors import AnswerIncomplete, DependencyDown, IndexFailure, ModelError, StreamBroken
from cicada.models.ports import ModelUse, TextDelta, Usage
from cicada.profiles.rules import MAX_STATEMENT_CHARS, clipped
from cicada.request_trace import log_fault
from cicada.retrieval.ports import Retriever
from cicada.routing.changes import asks_for_change
from cicada.text.words import quotes


class AgentLimits(AttemptLimits):
    """The limits of the agent's own turns, one after the other: what a turn did not take is there for the next."""

    def __init__(self, attempt_budget: AttemptBudget, sub_budget: SubBudget) -> None:
        super().__init__(attempt_budget, sub_budget)
        self._under_way: tuple[str, Usage] | None = None

    def allow(self, model_id: str, most: Usage) -> None:
        """See the port."""
        super().allow(model_id, most)
        self._under_way = (model_id, most)

    def note(self, use: ModelUse) -> None:
        """See the port."""
        if self._under_way is not None and use.usage.reported:
            model_id, most = self._under_way
            self._sub_budget.settle(model_id, most, use.usage)
        self._under_way = None
        call = ModelCall("agent", use.model_id, use.calls, use.usage, use.took_ms, None, use.fault)
        note_call(call, self._attempt_budget)


logger = logging.getLogger(__name__)

MAX_NAMED = 3
"""Profiles that are shown because the question names them."""
MOST_PASSAGES = 4
"""Of the text, beside what is kept; the model may search for more."""


class KeptProfile(Protocol):
    """A profile that a user keeps, as far as a question can name it."""

    @property
    def id(self) -> str:
        """Of the profile."""
        ...

    @property
    def name(self) -> str:
        """As the user calls it."""
        ...

    @property
    def statement(self) -> str | None:
        """What a theory says now."""
        ...


class Opening(Protocol):
    """Makes the calls."""

    def __call__(self, box: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
        """Make them. Raises CicadaError if one fails without which there is no answer."""
        ...


class ProfileOpening:
    """The profiles that the question names, else the list of all; and a search of the corpus."""

    def __init__(self, kept: Callable[[str], Sequence[KeptProfile]]) -> None:
        self._kept = kept

    def __call__(self, box: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
        """See the port. Where the corpus cannot be searched, what the user noted is there all the same."""
        named = named_in(asked.query, self._kept(asked.key.subject))
        done = [box.open("show_profile", {"id": one.id}) for one in named[:MAX_NAMED]]
        if not done:
            done.append(box.open("list_profiles", {}))
        try:
            done.append(box.open("search_script", {"query": asked.query[:MAX_QUERY_CHARS], "limit": MOST_PASSAGES}))
        except (IndexFailure, ModelError, DependencyDown) as error:
            log_fault(logger, "answered without a search", error)
        return tuple(done)


class TheoryOpening:
    """The user's theories, and the evidence on the one that the question names, else on what it says itself."""

    def __init__(self, kept: Callable[[str], Sequence[KeptProfile]]) -> None:
        self._kept = kept

    def __call__(self, box: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
        """See the port. Without evidence gathered there is no verdict, so a failed search fails the attempt."""
        kept = next(iter(named_in(asked.query, self._kept(asked.key.subject))), None)
        about = {"statement": clipped(asked.query, MAX_STATEMENT_CHARS)} if kept is None else {"id": kept.id}
        return (box.open("list_theories", {}), box.open("gather_evidence", about))


def named_in(query: str, kept: Sequence[KeptProfile]) -> tuple[KeptProfile, ...]:
    """Those whose name, or what they say now, stands in a question word by word; the longest first."""
    found: list[tuple[int, KeptProfile]] = []
    for one in kept:
        length = max((len(text) for text in (one.name, one.statement or "") if quotes(query, text)), default=0)
        if length:
            found.append((length, one))
    return tuple(one for _, one in sorted(found, key=lambda named: -named[0]))


AgentName = Literal["profile_agent", "theory_agent"]

_KINDS: dict[AgentName, AgentKind] = {"profile_agent": "profile", "theory_agent": "theory"}


class AgentStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over an agent and its tools.

    What must happen first is done here, by code: the opening calls. Who acts comes from the request alone. What the
    tools brought are the answer's sources: they are shown before its first text, and once more if others were added.
    """

    def __init__(
        self,
        name: AgentName,
        agent: Agent,
        *,
        retriever: Retriever,
        tools: Callable[[Retriever], Sequence[Tool[Any]]],
        opening: Opening,
        needs: tuple[str, ...],
        caps: AgentCaps | None = None,
        may_change: Callable[[str], bool] = asks_for_change,
        judge: CitationJudge | None = None,
    ) -> None:
        """Wire the strategy.

        Args:
            tools: makes the tools of one run, over a retriever.
            needs: the circuit breakers of what it cannot do without.
            may_change: whether a message asks for a change: only then are tools offered that make one.
            judge: of the citations that code alone cannot check; without one they stay unchecked.
        """
        self.name: AgentName = name
        self.needs = needs
        self._agent = agent
        self._retriever = retriever
        self._tools = tools
        self._opening = opening
        self._caps = caps or AgentCaps()
        self._may_change = may_change
        self._judge = judge

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port.

        Raises:
            AgentCapReached: a cap was reached.
            AnswerIncomplete: the agent wrote nothing.
        """
        run = self._begin(asked, attempt_budget)
        shown: int | None = None
        with closing(self._agent.run(run.task, run.box, run.limits)) as steps:
            for step in steps:
                if isinstance(step, AgentFinished):
                    run.stop_reason = step.stop_reason
                    break
                if not run.pieces:
                    shown = len(run.registry.sources)
                    yield self._retrieved(run)
                run.pieces.append(step.text)
                yield step
        if run.stop_reason is None:
            raise StreamBroken("the agent ended without a finish")
        yield from self._end(run, shown)

    def _begin(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> _Run:
        """The run, with what comes before the model done."""
        sub_budget = attempt_budget.agent_sub_budget()
        limits = CappedLimits(AgentLimits(attempt_budget, sub_budget), self._caps, clock=attempt_budget.monotonic)
        registry = NumberedSources()
        index = WatchedRetriever(self._retriever)
        understood = asked.query if asked.in_own_words else ""
        actor = Actor.asking(asked.key, asked.question, asked.at_ms, understood)
        box = ToolRunner(
            self._offered(index, actor),
            actor=actor,
            registry=registry,
            limits=AttemptLimits(attempt_budget, sub_budget, limits.time_left_s),
            caps=self._caps,
            may_write=asked.may_write,
            on_change=asked.on_change,
            clock=attempt_budget.monotonic,
        )
        started = attempt_budget.monotonic()
        with timed(limits):
            done = self._opening(box, asked)
        task = AgentTask(INSTRUCTIONS[_KINDS[self.name]], asked.query, done, conversation_of(asked))
        took_ms = round((attempt_budget.monotonic() - started) * 1000)
        return _Run(task, box, registry, index, limits, attempt_budget, took_ms)

    def _offered(self, retriever: Retriever, actor: Actor) -> list[Tool[Any]]:
        """The tools of a run: those that change anything only where the user asks for a change, in their own words."""
        may_change = any(map(self._may_change, actor.said))
        return [tool for tool in self._tools(retriever) if may_change or not tool.writes]

    def _end(self, run: _Run, shown: int | None) -> Generator[Step, None, None]:
        """What follows the agent's text: sources that were added, the checked citations, and the verdict."""
        text = "".join(run.pieces)
        if not text.strip():
            raise AnswerIncomplete("the agent wrote nothing")
        sources = run.registry.sources
        verdict = run.box.verdict or not_given(sources)
        if shown is None or len(sources) > shown:
            yield self._retrieved(run)
        if verdict is not None:
            yield TextDelta(f"\n\n{verdict_line(verdict)}")
        citations = check_citations(text, sources, self._judge.within(run.attempt_budget) if self._judge else None)
        yield Answered(
            run.stop_reason or "",
            self._agent.model_id,
            citations,
            not_attributed(text, sources),
            run.box.changes if any(tool.writes for tool in run.box.tools) else None,
            verdict,
        )

    def _retrieved(self, run: _Run) -> Retrieved:
        sources = run.registry.sources
        retrieved = Retrieved(
            sources,
            found=len(sources),
            index_version=run.registry.version or run.index.seen,
            searched=run.index.searched,
            engine=run.index.engine,
            retrieval_ms=run.opening_ms,
        )
        log_retrieved(retrieved)
        return retrieved


@dataclass
class _Run:
    """One run so far."""

    task: AgentTask
    box: ToolRunner
    registry: NumberedSources
    index: WatchedRetriever
    limits: CappedLimits
    attempt_budget: AttemptBudget
    opening_ms: int
    pieces: list[str] = field(default_factory=list)
    stop_reason: str | None = None


def conversation_of(asked: AskedQuestion) -> str:
    """The name of a request's conversation for a service that keeps one: a digest, in which the user is."""
    within = asked.question.session_id or asked.key.request_id
    return hashlib.sha256(f"{asked.key.subject}\0{within}".encode()).hexdigest()
