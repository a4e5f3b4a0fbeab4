"""The turns of an agent's exchange with a model, as ConverseStream takes them, and a harness too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from cicada.agents.instructions import user_turn
from cicada.agents.ports import AgentTask, Tool, ToolReply
from cicada.models.converse import StreamedTurn
from cicada.models.guardrail import GuardrailUse
from cicada.models.ports import Prompt, Usage
from cicada.models.structured_output import form_schema
from cicada.text.tokens import estimated_tokens

_CHARS_A_TOKEN = 3
"""Of JSON in ASCII: tokenizers join its punctuation, which :mod:`cicada.text.tokens` counts one by one."""


class AgentExchange:
    """A task, the tools that are offered, and what was said so far."""

    def __init__(self, task: AgentTask, tools: Sequence[Tool[Any]], guard: GuardrailUse | None = None) -> None:
        """Calls that were made already appear as if the model had made them. ``guard`` checks the question."""
        self.guard = guard or GuardrailUse(None)
        self.system = task.instructions
        asked = Prompt(self.system, user_turn(task.question), checked=escape(task.question))
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": self.guard.content(asked)}]
        specs = [
            {"name": tool.name, "description": tool.description, "inputSchema": {"json": form_schema(tool.form)}}
            for tool in tools
        ]
        self.tool_config = {"tools": [{"toolSpec": spec} for spec in specs]} if specs else None
        if task.done:
            uses = [
                {"toolUse": {"toolUseId": done.call.call_id, "name": done.call.name, "input": done.call.given}}
                for done in task.done
            ]
            self.messages.append({"role": "assistant", "content": uses})
            self.messages.append({"role": "user", "content": [_result(done.reply) for done in task.done]})
        self.input_tokens = estimated_tokens(self.system) + json_tokens([self.tool_config, *self.messages])
        """An estimate for the next turn, based on the last turn's report where there is one."""

    def replied(self, turn: StreamedTurn, usage: Usage, replies: Sequence[ToolReply]) -> None:
        """Add a turn that uses tools, and their replies: all of them in one turn, as the service wants it."""
        said = {"role": "assistant", "content": turn.content}
        results = {"role": "user", "content": [_result(reply) for reply in replies]}
        self.messages += [said, results]
        if usage.reported and usage.input_tokens:
            self.input_tokens = usage.input_tokens + usage.output_tokens + json_tokens(results)
        else:
            self.input_tokens += json_tokens(said) + json_tokens(results)


def _result(reply: ToolReply) -> dict[str, Any]:
    """A reply as text, which is what the model reads of JSON either way."""
    status = "error" if reply.failed else "success"
    return {"toolResult": {"toolUseId": reply.call_id, "content": [{"text": reply.text}], "status": status}}


def json_tokens(value: object) -> int:
    """An upper estimate of the tokens of some JSON. Digits and characters beyond ASCII count as one each."""
    written = json.dumps(value, ensure_ascii=False, default=len)
    single = sum(not one.isascii() or one.isdigit() for one in written)
    return single + (len(written) - single) // _CHARS_A_TOKEN
