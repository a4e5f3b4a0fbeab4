"""What is asked of a model with tools, what it knows, and what it can call; and what it does where no rule fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cicada.text.words import quotes
from cicada_local.agents.brain_answers import evidence_told, nothing_on, quotations, verdict_given
from cicada_local.agents.brain_facts import fields_of
from cicada_local.agents.brain_memory import Memory
from cicada_local.agents.brain_words import Wish, wish_of
from cicada_local.agents.turns import BrainCall, BrainTool, Step
from cicada_local.bedrock.extractive.text import content_stems

MOST_TRIES = 2
"""Of one tool that fails: once more after another look, and no third time."""
_NAME_KEYS = ("name", "field", "key", "label")
_VALUE_KEYS = ("value", "text", "content")
_QUOTE_KEY = "quote"
_CITING_KEYS = ("citations", "passages", "sources", "numbers", "citation", "passage", "source", "n")


class Situation:
    """What is asked, what is known, and what can be called."""

    def __init__(self, tools: Sequence[BrainTool], memory: Memory) -> None:
        """Read what is asked."""
        self._tools = {tool.name: tool for tool in tools}
        self.memory = memory
        self.wish: Wish = wish_of(memory.question, theories="gather_evidence" in self._tools)

    def offers(self, name: str) -> bool:
        """Whether a tool can be called."""
        return name in self._tools

    def call(self, tool: str, **wanted: Any) -> Step:
        """A call with as much of what is wanted as the tool takes."""
        schema = self._tools[tool].schema
        taken = schema.get("properties", {})
        given = {name: value for name, value in wanted.items() if name in taken and value not in (None, "", ())}
        return Step(calls=(BrainCall(tool, given),))

    def facts(self, tool: str, argument: str, known: Collection[str] = ()) -> list[dict[str, Any]]:
        """The facts that are to be noted as the tool takes them, with passages that say the same; empty without any."""
        item = self._item(self._tools[tool].schema, argument)
        taken = item.get("properties", {})
        keys = [next((key for key in keys if key in taken), None) for keys in (_NAME_KEYS, _VALUE_KEYS, _CITING_KEYS)]
        made = []
        for name, value in self.told(known):
            numbers: Any = self._saying(value)
            if keys[2] is not None and taken[keys[2]].get("type") == "integer":
                numbers = numbers[0] if numbers else None
            fact = {key: part for key, part in zip(keys, (name, value, numbers), strict=True) if key and part}
            if _QUOTE_KEY in taken:
                fact[_QUOTE_KEY] = value
            made.append(fact)
        return made

    def told(self, known: Collection[str] = ()) -> list[tuple[str, str]]:
        """What is to be noted, as fields with their values; ``known``: the names of those that are there."""
        return fields_of(self.wish.fact, self.wish.name, known) if self.wish.fact else []

    def _item(self, schema: Mapping[str, Any], argument: str) -> Mapping[str, Any]:
        items: Mapping[str, Any] = schema.get("properties", {}).get(argument, {}).get("items", {})
        while "$ref" in items:
            items = schema.get("$defs", {}).get(str(items["$ref"]).rsplit("/", 1)[-1], {})
        return items

    def _saying(self, fact: str) -> list[int]:
        """The numbers of passages that say a fact word by word, and have the name that it is about."""
        name = content_stems(self.wish.name)
        return [
            found.passage.number
            for found in self.memory.passages
            if quotes(found.passage.text, fact)
            and name <= content_stems(f"{found.passage.speaker} {found.passage.text}")
        ][:2]

    def tries(self, name: str) -> int:
        """How often a tool was called."""
        return len(self.memory.calls(name))

    def succeeded(self, name: str) -> bool:
        """Whether a tool has done what it was called for."""
        return any(not made.result.failed for made in self.memory.calls(name))

    def stale(self, *changing: str) -> bool:
        """Whether a change has failed since anything was last shown."""
        last = self.memory.made[-1] if self.memory.made else None
        return last is not None and last.result.failed and last.use.name in changing


def weighed(situation: Situation, statement: str) -> Step:
    """Give the verdict on what was gathered, and then tell the evidence."""
    memory = situation.memory
    sided = any(found.side for found in memory.gathered)
    if sided and situation.offers("give_verdict") and not memory.calls("give_verdict", "record_verdict"):
        return situation.call("give_verdict", **verdict_given(memory.gathered))
    return Step(evidence_told(statement, memory.gathered))


def ask(situation: Situation) -> Step:
    """Answer from what the results say; look for it first if nothing has been looked for."""
    memory, question = situation.memory, situation.memory.question
    sided = any(found.side for found in memory.gathered)
    if not sided and situation.offers("gather_evidence") and not memory.calls("gather_evidence"):
        return situation.call("gather_evidence", statement=question)
    if sided:
        return weighed(situation, question)
    if not memory.passages and situation.offers("search_script") and not memory.calls("search_script"):
        return situation.call("search_script", query=question)
    return Step(quotations(question, memory.passages) or nothing_on(question, noted=bool(memory.records)))
