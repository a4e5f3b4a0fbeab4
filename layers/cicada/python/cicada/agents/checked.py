"""An agent whose texts a guardrail checks where its service does not."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from cicada.agents.ports import (
    Actor,
    Agent,
    AgentFinished,
    AgentStep,
    AgentTask,
    RunLimits,
    SourceRegistry,
    Tool,
    ToolCall,
    ToolReply,
    Tools,
)
from cicada.models.guardrail_checks import GuardrailChecks, PieceChecker
from cicada.models.guardrail_checks import Source as CheckedSource


class CheckedAgent:
    """An agent whose tools' results are checked, which no service does; the port's contract is
    :class:`cicada.agents.ports.Agent`."""

    def __init__(self, agent: Agent, checks: GuardrailChecks, *, answers: bool) -> None:
        """``answers``: the question and the answer are checked too, as the agent's service checks nothing."""
        self._agent = agent
        self._checks = checks
        self._answers = answers
        self.model_id = agent.model_id

    def run(self, task: AgentTask, tools: Tools, limits: RunLimits) -> Generator[AgentStep, None, None]:
        """See the port. Raises AnswerBlocked and GuardrailUnavailable too."""

        def check(text: str, source: CheckedSource = "OUTPUT") -> str:
            return self._checks.check(text, source, call_scope=limits, time_left_s=limits.time_left_s())

        def reply(given: ToolReply) -> ToolReply:
            return replace(given, text=check(given.text, "INPUT"))

        done = tuple(replace(one, reply=reply(one.reply)) for one in task.done)
        question = check(task.question, "INPUT") if self._answers else task.question
        pieces = PieceChecker(check, waits=self._checks.guardrail.stream == "sync")
        run = self._agent.run(replace(task, done=done, question=question), _CheckedTools(tools, reply), limits)
        with closing(run) as steps:
            for step in steps:
                if not self._answers:
                    yield step
                elif isinstance(step, AgentFinished):
                    yield from pieces.end()
                    yield step
                else:
                    yield from pieces.feed(step.text)


class _CheckedTools:
    """The tools of a run, whose replies are checked."""

    def __init__(self, tools: Tools, reply: Callable[[ToolReply], ToolReply]) -> None:
        self._tools = tools
        self._reply = reply

    @property
    def tools(self) -> Sequence[Tool[Any]]:
        """See the port."""
        return self._tools.tools

    @property
    def actor(self) -> Actor:
        """See the port."""
        return self._tools.actor

    @property
    def registry(self) -> SourceRegistry:
        """See the port."""
        return self._tools.registry

    def call(self, call: ToolCall) -> ToolReply:
        """See the port. Raises AnswerBlocked and GuardrailUnavailable too."""
        return self._reply(self._tools.call(call))

    def ran(self, call: ToolCall, reply: ToolReply) -> None:
        """See the port."""
        self._tools.ran(call, reply)

    def turn(self) -> None:
        """See the port."""
        self._tools.turn()
