"""The strategies of the profile and theory agents: their budget, and the tool calls that code makes first."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

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
from cicada.attempts.budgets import AttemptBudget, Purpose, SubBudget
from cicada.attempts.strategy import Answered, AskedQuestion, Retrieved, Step
from cicada.citations import check_citations, not_attributed
from cicada.errors import AnswerIncomplete, DependencyDown, IndexFailure, ModelError, StreamBroken
from cicada.models.ports import ModelUse, TextDelta, Usage
from cicada.profiles.heads import StoredHead
from cicada.profiles.rules import MAX_STATEMENT_CHARS, clipped
from cicada.request_trace import log_fault
from cicada.retrieval.ports import Retriever
from cicada.routing.changes import asks_for_change
from cicada.text.words import quotes

logger = logging.getLogger(__name__)

MAX_NAMED = 3
"""Profiles that are shown because the question names them."""
MOST_PASSAGES = 4
"""Passages of the first search; the model may search for more."""


class AgentLimits(AttemptLimits):
    """The limits of an agent's turns, one after the other: what a turn does not use is left for the next."""

    purpose: ClassVar[Purpose] = "agent"

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
        super().note(use)


Opening = Callable[[ToolRunner, AskedQuestion], tuple[Done, ...]]
"""Makes the tool calls that come before the model. Raises CicadaError if one fails that the answer needs."""


@dataclass(frozen=True)
class ProfileOpening:
    """The profiles that the question names, else the list of all; and a search of the corpus."""

    stored: Callable[[str], Sequence[StoredHead]]

    def __call__(self, runner: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
        """Make the calls. If the search fails, the stored profiles still make an answer."""
        named = named_in(asked.query, self.stored(asked.key.subject))
        done = [runner.open("show_profile", {"id": one.id}) for one in named[:MAX_NAMED]]
        if not done:
            done.append(runner.open("list_profiles", {}))
        try:
            done.append(runner.open("search_script", {"query": asked.query[:MAX_QUERY_CHARS], "limit": MOST_PASSAGES}))
        except (IndexFailure, ModelError, DependencyDown) as error:
            log_fault(logger, "answered without a search", error)
        return tuple(done)


@dataclass(frozen=True)
class TheoryOpening:
    """The user's theories, and the evidence on the theory that the question names, else on the question itself."""

    stored: Callable[[str], Sequence[StoredHead]]

    def __call__(self, runner: ToolRunner, asked: AskedQuestion) -> tuple[Done, ...]:
        """Make the calls. A verdict needs evidence, so a failed search fails the attempt."""
        named = next(iter(named_in(asked.query, self.stored(asked.key.subject))), None)
        about = {"statement": clipped(asked.query, MAX_STATEMENT_CHARS)} if named is None else {"id": named.id}
        return (runner.open("list_theories", {}), runner.open("gather_evidence", about))


def named_in(query: str, stored: Sequence[StoredHead]) -> tuple[StoredHead, ...]:
    """The profiles whose name or statement is in a question word by word; the longest match first."""
    found: list[tuple[int, StoredHead]] = []
    for one in stored:
        length = max((len(text) for text in (one.name, one.statement or "") if quotes(query, text)), default=0)
        if length:
            found.append((length, one))
    return tuple(one for _, one in sorted(found, key=lambda named: -named[0]))


AgentName = Literal["profile_agent", "theory_agent"]

_KINDS: dict[AgentName, AgentKind] = {"profile_agent": "profile", "theory_agent": "theory"}


@dataclass(frozen=True)
class AgentStrategy:
    """:class:`cicada.attempts.strategy.Strategy` over an agent and its tools.

    Code makes the opening calls, and the acting user comes from the request only. The tools' passages are the answer's
    sources: they are shown before its first text, and again if others were added.
    """

    name: AgentName
    agent: Agent
    _: KW_ONLY
    retriever: Retriever
    tools: Callable[[Retriever], Sequence[Tool[Any]]]
    """Makes the tools of one run, over a retriever."""
    opening: Opening
    needs: tuple[str, ...]
    """See the port."""
    caps: AgentCaps = field(default_factory=AgentCaps)
    may_change: Callable[[str], bool] = asks_for_change
    """Whether a message asks for a change; tools that change anything are only offered then."""
    judge: CitationJudge | None = None
    """Checks the citations that code cannot check; without it they stay unchecked."""

    def answer(self, asked: AskedQuestion, attempt_budget: AttemptBudget) -> Generator[Step, None, None]:
        """See the port.

        Raises:
            AgentCapReached: a cap was reached.
            AnswerIncomplete: the agent wrote nothing.
        """
        run = self._begin(asked, attempt_budget)
        shown: int | None = None
        with closing(self.agent.run(run.task, run.runner, run.limits)) as steps:
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
        """The run, after its opening calls."""
        sub_budget = attempt_budget.agent_sub_budget()
        limits = CappedLimits(AgentLimits(attempt_budget, sub_budget), self.caps, clock=attempt_budget.monotonic)
        registry = NumberedSources()
        index = WatchedRetriever(self.retriever)
        understood = asked.query if asked.in_own_words else ""
        actor = Actor.asking(asked.key, asked.question, asked.at_ms, understood, readable=asked.readable())
        runner = ToolRunner(
            self._offered(index, actor),
            actor=actor,
            registry=registry,
            limits=AttemptLimits(attempt_budget, sub_budget, limits.time_left_s),
            caps=self.caps,
            may_write=asked.may_write,
            on_change=asked.on_change,
            clock=attempt_budget.monotonic,
        )
        started = attempt_budget.monotonic()
        with timed(limits):
            done = self.opening(runner, asked)
        task = AgentTask(INSTRUCTIONS[_KINDS[self.name]], asked.query, done, conversation_of(asked))
        took_ms = round((attempt_budget.monotonic() - started) * 1000)
        return _Run(task, runner, registry, index, limits, attempt_budget, took_ms)

    def _offered(self, retriever: Retriever, actor: Actor) -> list[Tool[Any]]:
        """The tools of a run; those that change anything only if the user's own words ask for a change."""
        may_change = any(map(self.may_change, actor.said))
        return [tool for tool in self.tools(retriever) if may_change or not tool.writes]

    def _end(self, run: _Run, shown: int | None) -> Generator[Step, None, None]:
        """The steps after the agent's text: added sources, the verdict, and the checked citations."""
        text = "".join(run.pieces)
        if not text.strip():
            raise AnswerIncomplete("the agent wrote nothing")
        sources = run.registry.sources
        verdict = run.runner.verdict or not_given(sources)
        if shown is None or len(sources) > shown:
            yield self._retrieved(run)
        if verdict is not None:
            yield TextDelta(f"\n\n{verdict_line(verdict)}")
        citations = check_citations(text, sources, self.judge.within(run.attempt_budget) if self.judge else None)
        yield Answered(
            run.stop_reason or "",
            self.agent.model_id,
            citations,
            not_attributed(text, sources),
            run.runner.changes if any(tool.writes for tool in run.runner.tools) else None,
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
    runner: ToolRunner
    registry: NumberedSources
    index: WatchedRetriever
    limits: CappedLimits
    attempt_budget: AttemptBudget
    opening_ms: int
    pieces: list[str] = field(default_factory=list)
    stop_reason: str | None = None


def conversation_of(asked: AskedQuestion) -> str:
    """The id of a request's conversation for an agent service: a digest that includes the user and what they may read.

    The service remembers what its tools showed, so a change of rights begins another conversation.
    """
    within = asked.question.session_id or asked.key.request_id
    return hashlib.sha256(f"{asked.key.subject}\0{within}\0{asked.readable().key}".encode()).hexdigest()
