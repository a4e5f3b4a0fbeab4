"""The turns of a Converse exchange in which a model fills in a form by calling a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

from cicada.models.converse_events import NORMAL_STOPS, incomplete, read_usage
from cicada.models.forms import FormMisfit, correction, form_description, form_name, form_schema, read_form
from cicada.models.ports import Form, Prompt, Usage

_TOOL_STOPS = NORMAL_STOPS | {"tool_use"}
_MALFORMED_STOPS = frozenset({"malformed_model_output", "malformed_tool_use"})
"""Stop reasons of an answer that the service itself could not read: there is nothing in it to correct."""


class Exchange(Generic[Form]):
    """A question, the answers to it so far, and what was said of them."""

    def __init__(self, prompt: Prompt, form: type[Form]) -> None:
        """Begin with a prompt. Raises ValueError for a form that cannot be given to a model."""
        self.prompt = prompt
        self._form = form
        self.tool = form_name(form)
        self.tool_spec = {
            "name": self.tool,
            "description": form_description(form),
            "inputSchema": {"json": form_schema(form)},
        }
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": prompt.user}]}]
        self.usage = Usage()
        """Of all answers; not reported if the service did not say for one of them."""

    def read(self, response: Mapping[str, Any]) -> Form:
        """Read an answer.

        Args:
            response: as boto3 gives it.

        Raises:
            FormMisfit: it holds no value that fits.
            AnswerIncomplete: it stopped for another reason than a normal finish.
        """
        self.usage = self.usage + read_usage(response)
        reason = str(response.get("stopReason", ""))
        if reason in _MALFORMED_STOPS:
            raise FormMisfit((reason,))
        if reason not in _TOOL_STOPS:
            raise incomplete(reason, None)
        for use in _tool_uses(_content(response)):
            if use.get("name") == self.tool:
                return read_form(self._form, use.get("input"))
        raise FormMisfit((f"{self.tool} was not called",))

    def correct(self, response: Mapping[str, Any], misfit: FormMisfit) -> None:
        """Answer a response that does not fit with what is wrong; to one that says nothing, nothing is added."""
        said = _repeatable(_content(response))
        if not said or response.get("stopReason") in _MALFORMED_STOPS:
            return
        text = [{"text": correction(self.tool, misfit)}]
        results = [
            {"toolResult": {"toolUseId": use["toolUseId"], "content": text if n == 0 else [{"text": "Not used."}]}}
            for n, use in enumerate(_tool_uses(said))
        ]
        self.messages += [{"role": "assistant", "content": said}, {"role": "user", "content": results or text}]


def _content(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    message = (response.get("output") or {}).get("message") or {}
    return list(message.get("content") or ())


def _tool_uses(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block["toolUse"] for block in content if "toolUse" in block]


def _repeatable(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the service takes back of its own answer: no kind that is not known here, no blank text, and no text at all
    beside a tool's use, which some models refuse."""
    text = not _tool_uses(content)
    return [
        block
        for block in content
        if "toolUse" in block or "reasoningContent" in block or (text and block.get("text", "").strip())
    ]
