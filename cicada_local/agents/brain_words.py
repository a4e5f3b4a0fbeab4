"""What a user wants of an agent, read from their words by rule, and in English.

Nothing here can fail: what no rule reads is a question to be answered from what the tools return.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from cicada_local.bedrock.extractive.text import sentences

Deed = Literal["create", "add", "remove", "delete", "history", "show", "list", "state", "refine", "theories", "ask"]

MAX_MESSAGE_CHARS = 4_000
_AROUND = " .?!\"'“”"
_THEORY_DEEDS = ("state", "refine", "theories")
_QUESTION = re.compile(r"<question>\s*+([^<]*+)</question>")
_POLITE = re.compile(r"^(?:(?:please|can you|could you|would you|will you|i want to|i'd like to|now)\b[\s,]*)+", re.I)
_LEADING = re.compile(
    r"^(?:.*\b(?:of|for|about|in|show|open|me|the|my|our|to|is|does|what|has|have|had|did)\s+)(?=\S)", re.I | re.S
)
_KINDS = {"place": "location", "fragment group": "fragment_group", "group": "fragment_group"}
_ARTICLE = re.compile(r"^(?:(?:an?|the|my|our)\s+)+(?=\S)", re.I)

_N = r"(?P<name>[^:,;.?!\n]{1,80}?)"
_OWN = r"(?:(?:a|an|the|my|our|another|new)\s+)*"
_KIND = r"(?P<kind>character|location|place|episode|fragment group|group|theory)"
_TITLED = re.compile(
    rf"^(?:(?:an?|the|my|our)\s+)?(?:{_KIND}\s+(?:called\s+|named\s+|(?=(?-i:[A-Z])))|(?:called|named)\s+)(?=\S)", re.I
)
"""*the character Tamsin*, *a location called the Gauge Tower*: the kind stands before the name."""
_RECORD = r"(?:profile|note|notes|entry|record)"
_OF = r"(?:of|for|about|on|called|named)"
_SAY = r"\s*(?::|,?\s+(?:saying that|that|with|saying)\b|,|\.\s|\s-\s|\bwho\b)\s*"
_WHOSE = rf"{_OWN}(?:{_N}['’]s\s+{_RECORD}|{_RECORD}\s+{_OF}\s+(?P<other>[^:,]{{1,80}}?))"
_MAKE = rf"(?:create|make|start|add|open|write|save|new)\b\s*(?:me\s+)?{_OWN}"
_PUT = r"(?:add|note|write|put|record|save)\b\s*(?:down\s+)?"
_DROP = r"(?:delete|forget|erase|remove|drop|take)\b\s*"
_CHANGED = r"\b(?:what|how)\b.{0,30}\bchanged?\b"
_PROPER = r"(?-i:[A-Z])\w[\w'’-]*(?:\s(?-i:[A-Z])[\w'’-]+)*"
_THEORY = r"(?:theory|theories|hypothesis|hypotheses)"
_MANY = r"(?:profiles|notes|entries|characters|locations)"
_ANY_KEPT = r"^(?:(?:do|did) (?:i|we) (?:have|keep|note|state)|have (?:i|we)|are there)\b.{0,20}"
_MY_THEORY = rf"(?:(?:my|our|the|that|this)\s+)*(?P<theory>{_THEORY})\b(?:\s+(?:about|of|that|on|is)\b|\s*:)?"
_WHICH_THEORY = rf"{_MY_THEORY}(?:\s+(?P<name>.+?))?"


@dataclass(frozen=True)
class Wish:
    """What is to be done."""

    deed: Deed
    name: str = ""
    """Whose profile; of a theory, the words that tell it from others."""
    kind: str = ""
    """``theory`` too, of what is done to a theory as to any profile."""
    fact: str = ""
    """What is to be noted, taken away or claimed."""


def _rules(*rules: tuple[Deed, str]) -> tuple[tuple[Deed, re.Pattern[str]], ...]:
    return tuple((deed, re.compile(pattern, re.I | re.S)) for deed, pattern in rules)


_KEPT_THEORY_RULES = _rules(
    ("theories", r"^(?:list|show|give|tell|open)\b.{0,20}\b(?:my|our|all)\b.{0,20}\b(?:theories|hypotheses)\b"),
    ("theories", r"^(?:which|what)\b.{0,20}\b(?:theories|hypotheses)\b.{0,20}\b(?:have|keep|do|did|are)\b"),
    ("theories", r"^what are (?:my|our) (?:theories|hypotheses)\b"),
    ("theories", rf"{_ANY_KEPT}\b(?:theories|hypotheses)\b[^'’]{{0,20}}$"),
    ("delete", rf"^(?!take\b){_DROP}{_WHICH_THEORY}[.!?]*$"),
    ("history", rf"{_CHANGED}(?:\s+(?:in|of|on|about|with|to|at))?\s+{_WHICH_THEORY}[?.!]*$"),
    ("history", rf"^how\b.{{0,12}}?\b{_WHICH_THEORY}\s+changed?[?.!]*$"),
    ("history", rf"\bhistory\s+of\s+{_WHICH_THEORY}[?.!]*$"),
)
"""With the tools of either agent."""
_THEORY_RULES = _rules(
    (
        "refine",
        rf"^(?:refine|change|reword|rephrase|correct|revise|sharpen|amend|update|edit|narrow)\b\s*(?:my|our|the|that|this)?\s*{_THEORY}"
        r"\s*(?:(?:about|of|that|on)\s+(?P<name>.{1,200}?))?\s*"
        r"(?:\b(?:to|into)(?: say)?(?: that)?\s*:|:|\bto(?: say)?(?: that)?\b|\binto\b)\s*(?P<fact>.+)$",
    ),
    (
        "state",
        rf"^(?:here is )?(?:my|our|a|the|new|another|this)\b.{{0,20}}?\b{_THEORY}\b[^:]{{0,30}}?"
        r"(?::|\bis that\b|\bis:?|\bthat\b)\s*(?P<fact>.+)$",
    ),
    (
        "state",
        rf"^(?:state|add|note|save|keep|test|check|weigh)\b.{{0,30}}?\b{_THEORY}\b[^:]{{0,20}}?(?::|\bthat\b)\s*"
        r"(?P<fact>.+)$",
    ),
    (
        "state",
        r"^i\s+(?:\w+ly\s+)?(?:think|believe|suspect|claim|bet|am sure|am certain|would say)\s+(?:that\s+)?"
        r"(?P<fact>(?!so\b).+)$",
    ),
)
_PROFILE_RULES = _rules(
    ("history", rf"{_CHANGED}.{{0,30}}?(?:\bin|\bof|\bon|\bto)?\s+{_OWN}{_RECORD}\s+{_OF}\s+{_N}[?.!]*$"),
    ("history", rf"{_CHANGED}(?:\s+(?:in|of|on|about|with))?\s+{_OWN}{_N}['’]s\s+{_RECORD}\b"),
    ("history", rf"\bhow\b.{{0,20}}?\b{_OWN}{_N}['’]s\s+{_RECORD}\b.{{0,20}}\bchanged?\b"),
    ("history", rf"\bhistory\s+of\s+{_OWN}{_N}(?:['’]s\s+{_RECORD})?[?.!]*$"),
    ("create", rf"^{_MAKE}(?:{_KIND}\s+)?{_RECORD}(?:\s+{_OF}\s+|\s*:\s*){_N}(?:{_SAY}(?P<fact>.+))?[.!]*$"),
    ("create", rf"^{_MAKE}{_KIND}(?:\s+(?:called|named)\s+|\s*:\s*|\s+){_N}(?:{_SAY}(?P<fact>.+))?[.!]*$"),
    ("remove", rf"^{_DROP}(?P<fact>.+?)\s+(?:from|out of)\s+{_WHOSE}[.!]*$"),
    ("delete", rf"^{_DROP}{_OWN}(?:{_KIND}\s+)?{_WHOSE}[.!?]*$"),
    ("add", rf"^{_PUT}(?:to|in|into|on)\s+{_WHOSE}{_SAY}(?P<fact>.+)$"),
    ("add", rf"^{_PUT}(?:that\s+)?(?P<fact>.+?)\s+(?:to|in|into|on)\s+{_WHOSE}[.!]*$"),
    ("add", rf"^(?:update|change|edit|correct)\b\s*{_WHOSE}\s*(?::|,|\bthat\b|\bto say that\b)\s*(?P<fact>.+)$"),
    (
        "add",
        r"^(?:change|set|update|correct)\b\s*(?P<name>[A-Z][^:,;.?!\n]{0,60}?)['’]s\s+"
        r"(?P<fact>.+?\s+(?:to|is|as)\s+.+)$",
    ),
    (
        "add",
        r"^(?:note|remember|keep in mind|write down|record)\b\s*(?:that\s+|:\s*)"
        rf"(?P<fact>(?P<name>{_PROPER})\s.+)$",
    ),
    (
        "list",
        rf"^(?:list|show|give|tell|open)\b.{{0,20}}\b(?:my|our|all|every)\b(?:\s\w+){{0,2}}\s{_MANY}\b[^'’]{{0,20}}$",
    ),
    ("list", rf"^(?:which|what|how many)\b.{{0,20}}\b{_MANY}\b.{{0,20}}\b(?:have|keep|do|did|are)\b"),
    ("list", rf"{_ANY_KEPT}\bprofiles\b[^'’]{{0,20}}$"),
    ("show", rf"\b{_OWN}{_N}['’]s\s+{_RECORD}\b"),
    ("show", rf"\b{_RECORD}\s+{_OF}\s+{_N}[?.!]*$"),
    (
        "show",
        r"^(?:what|tell me what|everything)\b.{0,30}"
        r"\b(?:know|knows|known|note|noted|saved?|kept?|have|told|wrote|written)\b.{0,20}?"
        rf"\b(?:of|about|on)\s+{_N}[?.!]*$",
    ),
)


def asked(message: str) -> str:
    """The user's words of a turn: what it wraps, unescaped, on one line."""
    wrapped = _QUESTION.findall(message)
    return " ".join(html.unescape(wrapped[-1] if wrapped else message).split())[:MAX_MESSAGE_CHARS]


def wish_of(message: str, *, theories: bool) -> Wish:
    """What a message asks for.

    Args:
        message: the user's words.
        theories: whether theories can be kept; a claim is a wish only then.
    """
    text = _POLITE.sub("", message.strip()).strip()
    for deed, pattern in (*_KEPT_THEORY_RULES, *(_THEORY_RULES if theories else ()), *_PROFILE_RULES):
        found = pattern.search(text)
        if found is not None:
            return _wish(deed, found.groupdict())
    return Wish("ask")


def _wish(deed: Deed, groups: dict[str, str | None]) -> Wish:
    name, kind = (groups.get("name") or groups.get("other") or "").strip(), (groups.get("kind") or "").lower()
    if deed in _THEORY_DEEDS or groups.get("theory"):
        kind = "theory" if groups.get("theory") else ""
        return Wish(deed, name=name.strip(_AROUND), kind=kind, fact=_claimed(groups.get("fact") or ""))
    titled = _TITLED.search(name)
    if titled is not None:
        name, kind = name[titled.end() :], kind or (titled["kind"] or "").lower()
    name = (_LEADING if deed in ("history", "show") else _ARTICLE).sub("", name)
    fact = (groups.get("fact") or "").strip().rstrip(".!")
    return Wish(deed, name=name.strip(_AROUND), kind=_KINDS.get(kind, kind), fact=fact)


def _claimed(text: str) -> str:
    """What is claimed, up to where the user begins to ask."""
    first, *others = sentences(text.strip()) or [""]
    told = " ".join((first, *takewhile(lambda sentence: not sentence.endswith("?"), others)))
    return told.rstrip(".!? ")
