"""Guardrails of the local cloud: what stacks create of them, and what they find in a text.

A guardrail decides by simple means, which tests can steer: a word by its letters, a topic by an example whose words all
stand in the text, e-mail addresses and telephone numbers by their form, an attack by the words "ignore … instructions",
grounding by the share of an answer's words that stand in its source, relevance by the share of the query's words that
stand in the answer.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cicada_local import service_model
from cicada_local.bedrock.errors import ValidationFailed
from cicada_local.places import ACCOUNT_ID, REGION

DRAFT = "DRAFT"
MAX_VERSIONS = 20
MAX_SOURCE_CHARS, MAX_QUERY_CHARS, MAX_RESPONSE_CHARS = 100_000, 1_000, 5_000
"""Of a check of grounding."""
UNIT_CHARS = 1_000
PROFANITIES = ("damn", "bloody hell")
"""The managed list, as far as it is known here."""
_ID_LENGTH = 12
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_ATTACK = re.compile(r"\bignore\b.{0,40}\binstructions?\b", re.IGNORECASE | re.DOTALL)
_PII = {
    "EMAIL": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "PHONE": re.compile(r"(?<![\w-])\+?\d[\d ()/-]{6,}\d\b"),
}
_WORD = re.compile(r"\w{4,}")


class GuardrailRefused(Exception):
    """The control plane does not take what it is given; the message is the service's."""


@dataclass(frozen=True)
class GuardedText:
    """A text, and what it is there for."""

    text: str
    qualifiers: tuple[str, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether the policies other than grounding look at it."""
        return not self.qualifiers or "guard_content" in self.qualifiers


@dataclass(frozen=True)
class Findings:
    """What a guardrail found in some texts."""

    assessment: Mapping[str, Any]
    blocked: bool
    masked: tuple[str, ...]
    """The guarded texts with what is masked in them, in their order."""
    changed: bool
    """Whether anything is masked."""


@dataclass(frozen=True)
class Guardrail:
    """One version of a guardrail; the members of ``config`` are CreateGuardrail's."""

    id: str
    config: Mapping[str, Any]

    @property
    def arn(self) -> str:
        """Its ARN."""
        return arn_of(self.id)

    def blocked_message(self, source: str) -> str:
        """What stands in place of a blocked text."""
        return str(self.config["blockedInputMessaging" if source == "INPUT" else "blockedOutputsMessaging"])

    def find(self, texts: Sequence[GuardedText], source: str) -> Findings:
        """What it finds. Raises ValidationFailed for a check of grounding that is too large."""
        guarded = [one.text for one in texts if one.guarded]
        whole = "\n".join(guarded)
        assessment: dict[str, Any] = {}
        for policy, found in (
            ("topicPolicy", {"topics": [*self._topics(whole)]}),
            ("contentPolicy", {"filters": self._attacks(whole) if source == "INPUT" else []}),
            ("wordPolicy", {"customWords": [*self._words(whole)], "managedWordLists": self._profanities(whole)}),
            ("contextualGroundingPolicy", {"filters": self._grounding(texts) if source == "OUTPUT" else []}),
        ):
            if any(found.values()):
                assessment[policy] = found
        masked, data = self._data(guarded)
        if any(data.values()):
            assessment["sensitiveInformationPolicy"] = data
        actions = {one["action"] for policy in assessment.values() for members in policy.values() for one in members}
        return Findings(assessment, "BLOCKED" in actions, tuple(masked), "ANONYMIZED" in actions)

    def _topics(self, text: str) -> Iterable[dict[str, Any]]:
        words = _words_of(text)
        for topic in self.config.get("topicPolicyConfig", {}).get("topicsConfig", ()):
            if any(_words_of(example) and _words_of(example) <= words for example in topic.get("examples", ())):
                yield {"name": topic["name"], "type": "DENY", "action": "BLOCKED", "detected": True}

    def _attacks(self, text: str) -> list[dict[str, Any]]:
        filters = self.config.get("contentPolicyConfig", {}).get("filtersConfig", ())
        strength = next((one["inputStrength"] for one in filters if one["type"] == "PROMPT_ATTACK"), "NONE")
        if strength == "NONE" or not _ATTACK.search(text):
            return []
        return [
            {
                "type": "PROMPT_ATTACK",
                "confidence": "HIGH",
                "filterStrength": strength,
                "action": "BLOCKED",
                "detected": True,
            }
        ]

    def _words(self, text: str) -> Iterable[dict[str, Any]]:
        for word in self.config.get("wordPolicyConfig", {}).get("wordsConfig", ()):
            if (found := _whole(word["text"], text)) is not None:
                yield {"match": found, "action": "BLOCKED", "detected": True}

    def _profanities(self, text: str) -> list[dict[str, Any]]:
        if not self.config.get("wordPolicyConfig", {}).get("managedWordListsConfig"):
            return []
        found = [_whole(word, text) for word in PROFANITIES]
        return [{"match": word, "type": "PROFANITY", "action": "BLOCKED", "detected": True} for word in found if word]

    def _data(self, texts: Sequence[str]) -> tuple[list[str], dict[str, list[dict[str, Any]]]]:
        policy = self.config.get("sensitiveInformationPolicyConfig", {})
        data: dict[str, list[dict[str, Any]]] = {"piiEntities": [], "regexes": []}
        looked_for = [
            *(("piiEntities", one["type"], _PII.get(one["type"]), one) for one in policy.get("piiEntitiesConfig", ())),
            *(("regexes", one["name"], re.compile(one["pattern"]), one) for one in policy.get("regexesConfig", ())),
        ]
        masked = list(texts)
        for member, name, pattern, one in looked_for:
            if pattern is None:  # a type that is not looked for here
                continue
            action = "BLOCKED" if one["action"] == "BLOCK" else "ANONYMIZED"
            for match in (found[0] for text in masked for found in pattern.finditer(text)):
                told = {"type": name} if member == "piiEntities" else {"name": name, "regex": one["pattern"]}
                data[member].append({**told, "match": match, "action": action, "detected": True})
            if action == "ANONYMIZED":
                masked = [pattern.sub("{" + name + "}", text) for text in masked]
        return masked, data

    def _grounding(self, texts: Sequence[GuardedText]) -> list[dict[str, Any]]:
        filters = self.config.get("contextualGroundingPolicyConfig", {}).get("filtersConfig", ())
        sources = "\n".join(one.text for one in texts if "grounding_source" in one.qualifiers)
        query = "\n".join(one.text for one in texts if "query" in one.qualifiers)
        answer = "\n".join(one.text for one in texts if one.guarded and "query" not in one.qualifiers)
        if not filters or not sources or not query:
            return []
        for what, text, most in (
            ("grounding source", sources, MAX_SOURCE_CHARS),
            ("query", query, MAX_QUERY_CHARS),
            ("content to guard", answer, MAX_RESPONSE_CHARS),
        ):
            if len(text) > most:
                raise ValidationFailed(f"The {what} of a contextual grounding check has at most {most} characters.")
        scores = {
            "GROUNDING": _share(_words_of(answer), _words_of(sources)),
            "RELEVANCE": _share(_words_of(query), _words_of(answer)),
        }
        return [
            {
                "type": one["type"],
                "threshold": float(one["threshold"]),
                "score": round(scores[one["type"]], 2),
                "action": "BLOCKED" if scores[one["type"]] < float(one["threshold"]) else "NONE",
                "detected": scores[one["type"]] < float(one["threshold"]),
            }
            for one in filters
        ]


def _words_of(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _share(words: frozenset[str], within: frozenset[str]) -> float:
    return len(words & within) / len(words) if words else 1.0


def _whole(word: str, text: str) -> str | None:
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    return None if found is None else found[0]


def arn_of(guardrail_id: str) -> str:
    """A guardrail's ARN."""
    return f"arn:aws:bedrock:{REGION}:{ACCOUNT_ID}:guardrail/{guardrail_id}"


def id_of(*names: str) -> str:
    """An id of the service's form, the same at every start."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_ID_LENGTH])


class GuardrailStore:
    """All guardrails of the account. Thread-safe."""

    def __init__(self) -> None:
        self._drafts: dict[str, Mapping[str, Any]] = {}
        self._versions: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._made: dict[str, int] = {}
        self._lock = threading.Lock()
        self._shape = service_model.load("bedrock").shape_for("CreateGuardrailRequest")

    def put(self, guardrail_id: str, config: Mapping[str, Any]) -> None:
        """Create a guardrail, or change its draft. Raises GuardrailRefused."""
        try:
            service_model.read_input(self._shape, json.dumps(config, default=str).encode())
        except service_model.Refused as refused:
            raise GuardrailRefused(str(refused)) from refused
        if not any(name.endswith("PolicyConfig") for name in config):
            raise GuardrailRefused("A guardrail needs at least one policy")
        _check_policies(config)
        with self._lock:
            twins = [other for other, draft in self._drafts.items() if draft["name"] == config["name"]]
            if twins not in ([], [guardrail_id]):
                raise GuardrailRefused(f"Another guardrail in this account already has this name: {config['name']}")
            self._drafts[guardrail_id] = copy.deepcopy(dict(config))
            self._versions.setdefault(guardrail_id, {})

    def publish(self, guardrail_id: str) -> str:
        """Make a version of the draft; its number. Raises GuardrailRefused."""
        with self._lock:
            if guardrail_id not in self._drafts:
                raise GuardrailRefused(f"There is no guardrail {guardrail_id}")
            versions = self._versions[guardrail_id]
            if len(versions) >= MAX_VERSIONS:
                raise GuardrailRefused(f"A guardrail has at most {MAX_VERSIONS} versions")
            self._made[guardrail_id] = self._made.get(guardrail_id, 0) + 1
            number = str(self._made[guardrail_id])
            versions[number] = self._drafts[guardrail_id]
            return number

    def delete(self, guardrail_id: str, version: str | None = None) -> None:
        """Delete a version, or the guardrail with all its versions."""
        with self._lock:
            if version is None:
                self._drafts.pop(guardrail_id, None)
                self._versions.pop(guardrail_id, None)
            else:
                self._versions.get(guardrail_id, {}).pop(version, None)

    def find(self, identifier: str, version: str) -> Guardrail | None:
        """A guardrail by its id or ARN, and its version."""
        guardrail_id = identifier.removeprefix(arn_of(""))
        with self._lock:
            if version == DRAFT:
                config = self._drafts.get(guardrail_id)
            else:
                config = self._versions.get(guardrail_id, {}).get(version)
        return None if config is None else Guardrail(guardrail_id, config)


def _check_policies(config: Mapping[str, Any]) -> None:
    """What the service's model does not say. Raises GuardrailRefused."""
    for one in config.get("sensitiveInformationPolicyConfig", {}).get("regexesConfig", ()):
        if re.search(r"\(\?<?[=!]", one["pattern"]):
            raise GuardrailRefused(f"The pattern of {one['name']} looks ahead or behind, which is not supported")
    for one in config.get("contentPolicyConfig", {}).get("filtersConfig", ()):
        if one["type"] == "PROMPT_ATTACK" and one["outputStrength"] != "NONE":
            raise GuardrailRefused("The output strength of PROMPT_ATTACK must be NONE")
    for one in config.get("contextualGroundingPolicyConfig", {}).get("filtersConfig", ()):
        if float(one["threshold"]) > 0.99:
            raise GuardrailRefused("A threshold of contextual grounding is at most 0.99")
