"""Chooses among described options what a question needs: collections and intentions, as the selector's prompt has them.

The prompt describes each option in a line below its collection. A question is taken apart, each part compared with
every option's description and examples, by meaning where there is an embedder and by words, and the best options of
each part get a confidence. What tells collections apart: who is asked about (the asker, the asker's company, nobody of
them), the names that a collection lists, and whether the question speaks of episodes.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local.bedrock.extractive.relevance import shared_words
from cicada_local.bedrock.extractive.small_talk import small_talk
from cicada_local.bedrock.extractive.text import STOP_WORDS
from cicada_local.bedrock.minilm import SentenceEmbedder

LEAST_CONFIDENCE = 0.3
"""What is less sure is not mentioned."""
MAX_CHOSEN = 6
OF_EXAMPLES, OF_DESCRIPTION, OF_KIND, OF_WORDS = 0.37, 0.69, 0.13, 0.5
"""What counts in an option's likeness to a part of a question: its likest example, its description, the description
beside the kind of question that it is, and the description's words."""
OF_PERSON, OF_NAMES, OF_EPISODES = 0.17, 0.21, 0.2
"""What counts for all options of a collection beside that: whether it is about the person who is asked about; that it
lists what the part names, or only others do; and whether it has episodes, where the question speaks of them."""
A_PART_OF_A_NAME = 0.3
"""Beside a whole name, which is 1."""
EVEN_LIKENESS, EVEN_LIKENESS_OF_WORDS, STEEPNESS = 0.11, -0.1, 4.3
"""The likeness at which an option is as likely meant as not, by meaning and by words alone, and how fast that changes
around it."""
RIVALRY, RIVALRY_OF_COLLECTIONS = 15, 25
"""How fast an option's confidence falls with how much less like it is than its collection's best, and that with how
much less it is than the best of all."""

_COLLECTION = re.compile(r'<collection name="([^"]++)"[^>]*+>([^<]*+)</collection>')
_OPTION = re.compile(r"^- (\w++): (.*)$", re.MULTILINE)
_EXAMPLES = " E.g. "
_BETWEEN_EXAMPLES = " | "
_ASKS = (
    r"(?:what|how|who|whom|whose|where|when|why|which|do|does|did|is|are|was|were|can|could|should|may|tell|remind|list|"
    r"explain|compare|show|give)"
)
_PARTS = re.compile(
    rf"[?!.;]\s+|,?\s+(?:and|but|or)\s+(?:also\s+)?(?={_ASKS}\b)|[:,]\s+(?=(?:what|how|why)\b)", re.IGNORECASE
)
_ASKER = re.compile(r"\b(?:i|me|my|mine|myself|i'm|i've|i'd)\b", re.IGNORECASE)
_WHO = r"^(?:so )?who(?:'s| is| was| are| were)\b|^who .* (?:is|was|are|were)\b"
_COMPANY = re.compile(r"\b(?:we|us|our|ours|party|last time|last session|session|so far)\b", re.IGNORECASE)
_TOLD = re.compile(rf"{_WHO}|\b(?:did|was|were)\b", re.IGNORECASE)
_EPISODES = re.compile(r"\b(?:episodes?|drafts?|retellings?|ep\.?\s?\d+)\b", re.IGNORECASE)
_OF_ASKER = re.compile(r"\basker", re.IGNORECASE)
_OF_COMPANY = re.compile(r"\b(?:party|sessions?)\b", re.IGNORECASE)
_OF_STORY = re.compile(r"\b(?:script|episodes?)\b", re.IGNORECASE)
_NAMES = "Names: "
_NAME_WORD = re.compile(r"[^\W\d_][\w'’]{2,}")
_KINDS = tuple(
    (re.compile(asks, re.IGNORECASE), meant)
    for asks, meant in (
        (rf"{_WHO}|^about\b|\bwhat (?:do we know|is \S+ part)", "who a person is"),
        (
            r"\bwhere did we|^where\b|\bplace|\bwhat did we find|\bas we saw\b|\bchanged since",
            "a place that was visited",
        ),
        (r"^why\b|\bideas?\b|\brefuse|\bg[ai]ve up\b", "what was decided and why"),
        (r"\bhow did (?:we|i) (?:get|come)|\bwhat happened|\bsum up|\bstory\b|\bsession", "what happened in a session"),
        (r"\bbeat\b|\bfight|\bfought|\bbattle|\bwent down|\bworked against|\blose\b", "how a fight went and who won"),
        (
            r"\bquest|\bpromised|\breward|\bstill open|\bfinished\b|\bdebt\b",
            "quests, what is promised, what is to be done",
        ),
        (
            r"\bwhen did|\bchanged since|\bbecome\b|\bquarrel|\blearn(?:t|ed)? it",
            "how somebody changed and what they learnt",
        ),
        (r"\bdifference|\bbetter\b|\bcompare|\bor an? \b", "compare, the difference, which is better"),
        (r"^(?:list|which)\b.*\b(?:every|all|have|has|could|are)\b", "a list of all things that meet a condition"),
        (r"\bwhat(?:'s| is| are) an? |\bdescribe\b|\bwhat sort\b", "describe a thing, what it is like"),
        (r"\bcost|\bprice|\bpaid\b|\bwage", "coins, costs and wages"),
        (r"\bcarry|\bcarrying|\bbag\b|\bpack\b|\bchest\b|\bowns?\b|\blocked away", "what is owned, carried or stored"),
        (r"\bbonus|\btrained|\bskill|\battribute|\btalent", "attributes, skills and talents"),
        (r"\bcan (?:an? \w+|i|\w+s)\b.*\blearn\b|\bopen to\b", "who can learn what"),
    )
)
"""What kinds of question ask for, in words that descriptions have."""
_POLITE = re.compile(r"^(?:please\s+)?(?:remind|tell|show|give)\s+me\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """Something that can be chosen."""

    value: str
    collection: str
    about: str
    """The collection's description."""
    names: tuple[str, ...]
    """That the collection lists."""
    texts: tuple[str, ...]
    """Its own description, and examples."""


def options_of(system: str, values: Sequence[str]) -> list[Option]:
    """The options that a prompt describes, of those that a form allows."""
    found: list[Option] = []
    allowed = set(values)
    for name, body in _COLLECTION.findall(system):
        about, _, _ = body.strip().partition("\n- ")
        about, _, listed = about.partition(f"\n{_NAMES}")
        names = tuple(map(html.unescape, listed.split(", "))) if listed else ()
        for intention, told in _OPTION.findall(body):
            description, _, examples = told.partition(_EXAMPLES)
            texts = (description, *(examples.split(_BETWEEN_EXAMPLES) if examples else ()))
            value = f"{name}/{intention}"
            if value in allowed:
                found.append(Option(value, name, html.unescape(about), names, tuple(map(html.unescape, texts))))
    return found


def choose(question: str, options: Sequence[Option], embedder: SentenceEmbedder | None) -> list[tuple[str, float]]:
    """The options that a question needs, surest first, each with a confidence in [0, 1]; none for small talk."""
    if not options or small_talk(question):
        return []
    even = EVEN_LIKENESS_OF_WORDS if embedder is None else EVEN_LIKENESS
    surest: dict[str, float] = {}
    for part in parts_of(question):
        likeness = _likeness(part, question, options, embedder)
        best: dict[str, float] = {}
        for option, like in zip(options, likeness, strict=True):
            best[option.collection] = max(like, best.get(option.collection, like))
        most = max(best.values())
        meant = 1 / (1 + math.exp(-STEEPNESS * (most - even)))
        for option, like in zip(options, likeness, strict=True):
            of_collection = best[option.collection]
            behind = RIVALRY * (of_collection - like) + RIVALRY_OF_COLLECTIONS * (most - of_collection)
            surest[option.value] = max(meant * math.exp(-behind), surest.get(option.value, 0.0))
    ranked = sorted(surest.items(), key=lambda item: -item[1])[:MAX_CHOSEN]
    return [(value, round(confidence, 2)) for value, confidence in ranked if confidence >= LEAST_CONFIDENCE]


def parts_of(question: str) -> list[str]:
    """The parts of a question, each of which asks something."""
    return [part for part in (_POLITE.sub("", part.strip()) for part in _PARTS.split(question)) if part] or [question]


def choices_field(schema: Mapping[str, Any]) -> tuple[str, str, Sequence[str]] | None:
    """Of a list's items, the field that is chosen, the one for the confidence, and what can be chosen; None if it is no
    list of choices."""
    fields = schema.get("properties", {})
    chosen = [name for name, field in fields.items() if field.get("type") == "string" and "enum" in field]
    sure = [name for name, field in fields.items() if field.get("type") == "number" and "confidence" in name]
    return (chosen[0], sure[0], fields[chosen[0]]["enum"]) if len(chosen) == len(sure) == 1 else None


def _likeness(part: str, question: str, options: Sequence[Option], embedder: SentenceEmbedder | None) -> list[float]:
    """How much each option is like a part of a question; an option that nothing speaks for has 0 or less."""
    kind = " ".join(meant for asks, meant in _KINDS if asks.search(part))
    texts = [text for option in options for text in option.texts]
    words = shared_words(f"{part} {kind}", texts)
    alike = of_kind = words
    if embedder is not None:
        asked, meant, *vectors = embedder.embed([part, kind or part, *texts])
        alike = [float(asked @ vector) for vector in vectors]
        of_kind = [float(meant @ vector) for vector in vectors]
    of_collection = _of_collections(part, question, options)
    likeness: list[float] = []
    at = 0
    for option in options:
        examples = max(alike[at + 1 : at + len(option.texts)], default=0.0)
        likeness.append(
            OF_EXAMPLES * examples
            + OF_DESCRIPTION * alike[at]
            + OF_KIND * of_kind[at]
            + OF_WORDS * words[at]
            + of_collection[option.collection]
        )
        at += len(option.texts)
    return likeness


def _of_collections(part: str, question: str, options: Sequence[Option]) -> dict[str, float]:
    """What speaks for each collection, whatever is wanted of it, and against it."""
    each = {option.collection: option for option in options}
    named = {name: _named(part, one.names) for name, one in each.items()}
    most = max(named.values())
    episodes = _EPISODES.search(question) is not None
    return {
        name: OF_PERSON * _about(part, one.about)
        + OF_NAMES * (named[name] or -most)
        + (OF_EPISODES * (1 if _OF_STORY.search(one.about) else -1) if episodes else 0.0)
        for name, one in each.items()
    }


def _named(text: str, names: Sequence[str]) -> float:
    """How surely a text names one of these, in [0, 1]: all words of one, or one that is written large."""
    written = set(_NAME_WORD.findall(text.replace("’", "'").replace("'s", "")))
    lowered = {word.lower() for word in written}
    surest = 0.0
    for name in names:
        words = [word for word in _NAME_WORD.findall(name) if word.lower() not in STOP_WORDS]
        if words and all(word.lower() in lowered for word in words):
            return 1.0
        if any(word[0].isupper() and word in written for word in words):
            surest = A_PART_OF_A_NAME
    return surest


def _about(part: str, collection: str) -> float:
    """Whether a part and a collection are about the same person, in [-1, 1]."""
    asker, company = _ASKER.search(part) is not None, _COMPANY.search(part) is not None
    told = _TOLD.search(part) is not None
    if _OF_ASKER.search(collection):
        return 1.0 if asker else -1.0
    if _OF_STORY.search(collection):
        return -1.0 if asker or company else 0.5 if told else -0.1
    if _OF_COMPANY.search(collection):
        return 1.0 if company else -0.3 if told else -0.5
    return -0.6 if asker or company or told else 0.6
