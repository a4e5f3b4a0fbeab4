"""Fills in the input of a tool without a model: from the prompt's passages and question where its fields are known by
name, and with the least that its schema allows where they are not.

What is known, by a field's name and type: marks of numbered passages, other wordings of a question, a hypothetical
passage, summaries, entities and codes; the side of a theory that a passage stands on; choices among options that the
instructions describe, and names in a question, each with a confidence. The explanation of a database table is a form of
its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.bedrock.extractive.choosing import choices_field, choose, options_of
from cicada_local.bedrock.extractive.explaining import asks_to_explain, explain_table
from cicada_local.bedrock.extractive.judging import asks_to_judge, judge_sentences
from cicada_local.bedrock.extractive.naming import codes, names, sure_names
from cicada_local.bedrock.extractive.prompt import parse_prompt
from cicada_local.bedrock.extractive.relevance import relevance, shared_words
from cicada_local.bedrock.extractive.rewording import hypothetical, rewordings
from cicada_local.bedrock.extractive.siding import side_of
from cicada_local.bedrock.extractive.summary import summary
from cicada_local.bedrock.minilm import SentenceEmbedder
from cicada_local.bedrock.tools import Tool

BEST_MARK = 10.0
_NUMBERS = frozenset({"n", "number", "passage", "index", "id"})
"""Names of the field that says which passage an object is about."""
_WORDINGS = frozenset({"queries", "wordings", "rewordings", "expansions", "questions"})
_HYPOTHETICAL = frozenset({"passage", "hypothetical", "hypothetical_answer", "hypothetical_passage", "answer"})
_ENTITIES = frozenset({"entities", "names"})
_BEARING = frozenset({"n", "side", "strength"})
"""Of a passage, how it bears on a theory."""
_SURE_NAME = frozenset({"name", "confidence"})
_CODES = frozenset({"codes", "entity_codes", "identifiers"})
_WIDE = re.compile(r"complete")
_PARTICULAR = re.compile(r"\d|\b[A-Z]")


@dataclass(frozen=True)
class _About:
    """What an object is filled in about."""

    question: str
    texts: tuple[str, ...]
    number: int | None = None
    """Of the passage, where it is about one."""
    relevance: float = 0.0
    covered: float = 0.0
    place: str = ""


def fill(
    user: str, schema: Mapping[str, Any], embedder: SentenceEmbedder | None = None, *, system: str = ""
) -> dict[str, Any]:
    """The input of a tool; the same prompt and schema always give the same.

    Args:
        user: the prompt.
        schema: of an object; references lead to its ``$defs``.
        embedder: compares by meaning; words alone do without it.
        system: the instructions, which may describe what is to be chosen from.
    """
    if asks_to_explain(user, schema):
        return explain_table(user)
    if asks_to_judge(user, schema):
        return judge_sentences(user)
    prompt = parse_prompt(user)
    passages = prompt.passages
    texts = tuple(passage.text for passage in passages) or (prompt.question,)
    marks = relevance(prompt.question, texts, embedder) if passages else []
    covered = shared_words(prompt.question, texts)
    each = [
        _About(prompt.question, (passage.text,), passage.number, mark, share, passage.place)
        for passage, mark, share in zip(passages, marks, covered, strict=False)
    ]
    return _Filling(schema.get("$defs", {}), each, system, embedder).object(schema, _About(prompt.question, texts))


def fill_from_words(system: str, user: str, tool: Tool) -> dict[str, Any]:
    """As :func:`fill`, for a stand-in that has no embedder."""
    return fill(user, tool.schema, system=system)


class _Filling:
    def __init__(
        self, definitions: Mapping[str, Any], each: Sequence[_About], system: str, embedder: SentenceEmbedder | None
    ) -> None:
        self._definitions = definitions
        self._each = each
        self._system = system
        self._embedder = embedder

    def object(self, schema: Mapping[str, Any], about: _About) -> dict[str, Any]:
        """An object: the fields that are known, and those that must be there."""
        schema = self._resolved(schema)
        if about.number is not None and schema.get("properties", {}).keys() == _BEARING:
            side, strength = side_of(about.question, about.texts[0], about.place)
            return {"n": about.number, "side": side, "strength": strength}
        filled: dict[str, Any] = {}
        for name, field in schema.get("properties", {}).items():
            value = self._known(name, self._resolved(field), about)
            if value is not None:
                filled[name] = value
            elif name in schema.get("required", ()):
                filled[name] = self._least(field)
        return filled

    def _known(self, name: str, field: Mapping[str, Any], about: _About) -> Any:
        """What is known to belong into a field; None if nothing is."""
        match field.get("type"):
            case "array":
                return self._known_list(name, field, about)
            case "string" if "enum" not in field:
                text = self._known_text(name, about)
                return text[: field.get("maxLength", len(text))] if text else None
            case "integer" if name in _NUMBERS and about.number is not None:
                return about.number
            case "number" | "integer" if about.number is not None:
                mark = _mark(name, about) * float(field.get("maximum", BEST_MARK))
                return round(mark) if field["type"] == "integer" else round(mark, 2)
        return None

    def _known_list(self, name: str, field: Mapping[str, Any], about: _About) -> list[Any] | None:
        item = self._resolved(field.get("items", {}))
        numbered = _NUMBERS & item.get("properties", {}).keys()
        if item.get("type") == "object" and numbered and about.number is None and self._each:
            return [self.object(item, one) for one in self._each]
        if (choice := choices_field(item)) is not None:
            chosen, sure, values = choice
            options = options_of(self._system, values)
            return [{chosen: value, sure: much} for value, much in choose(about.question, options, self._embedder)]
        if name in _ENTITIES and item.get("properties", {}).keys() == _SURE_NAME:
            return [{"name": found, "confidence": much} for found, much in sure_names(about.question)]
        if item.get("type") != "string" or "enum" in item:
            return None
        text = " ".join(about.texts)
        made: list[str] | None = None
        if name in _WORDINGS:
            made = rewordings(about.question)
        elif name in _ENTITIES:
            made = names(text)
        elif name in _CODES:
            made = codes(text)
        if made is None or len(made) < field.get("minItems", 0):
            return None
        return made[: field.get("maxItems", len(made))]

    @staticmethod
    def _known_text(name: str, about: _About) -> str | None:
        if "summary" in name:
            return summary(about.texts, most=1 if about.number is not None else 3) or None
        if name in _HYPOTHETICAL:
            return hypothetical(about.question)
        return None

    def _least(self, schema: Mapping[str, Any]) -> Any:
        """The least value that a schema allows."""
        schema = self._resolved(schema)
        if "enum" in schema:
            return schema["enum"][0]
        if "const" in schema:
            return schema["const"]
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return None if any(option.get("type") == "null" for option in options) else self._least(options[0])
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        match kind:
            case "string":
                return "-" * schema.get("minLength", 0)
            case "integer" | "number":
                lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
                return min(lowest, schema.get("maximum", lowest))
            case "boolean":
                return False
            case "array":
                return [self._least(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
            case "object":
                return self.object(schema, _About("", ()))
        return None

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._definitions.get(str(schema["$ref"]).rsplit("/", 1)[-1], {})
        return schema


def _mark(name: str, about: _About) -> float:
    """A mark in [0, 1]: completeness is of words, specificity of particulars, all else of relevance."""
    if _WIDE.search(name):
        return about.covered
    if name == "specificity":
        return about.relevance if _PARTICULAR.search(about.texts[0][1:]) else about.relevance / 2
    return about.relevance
