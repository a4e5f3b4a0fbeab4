"""What a user tells of somebody, as the fields of a profile: each fact by itself, named by what it is about.

English, by rule. Values are the user's words; what no rule names is a field of its first words that carry meaning.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from cicada.text.word_lists import word_lists
from cicada_local.bedrock.extractive.text import STOP_WORDS, sentences, words

MAX_FIELD_NAME_WORDS = 3

_OWNERS = {"she": "her", "he": "his", "it": "its", "they": "their"}
_PRONOUNS = {word: pronoun for pronoun, owner in _OWNERS.items() for word in (pronoun, owner)}
_ANY_PRONOUN = "|".join(_OWNERS)
_TELLING = (
    "is was has had keeps kept lives lived works worked arrived came wears wore carries carried owns owned knows knew "
    "likes loves hates fears speaks plays sings hides hid stands stood"
)
"""Verbs that a second fact may begin with, its subject left out: *she sings and keeps bees*."""
_VERB = "|".join(_TELLING.split())
_NAMED_AFTER = {
    "arrival": "arrived arrives came comes",
    "home": "lives lived lodges lodged dwells",
    "work": "works worked",
}
_NAMES = {verb: name for name, verbs in _NAMED_AFTER.items() for verb in verbs.split()}
_NO_VERBS = word_lists("cicada_local", "words.json")["no_verbs"]
"""After a subject, what is no verb by which a fact could be called."""
_ROLE = re.compile(r"^(?:is|was)\s+(?P<value>(?:an?|the)\s+\S.*)$", re.I | re.S)
_VERBAL = re.compile(r"^(?P<verb>[a-z]{3,})\s+(?P<value>\S.*)$", re.S)
_FIELDS = (
    re.compile(r"^(?P<name>[\w -]{2,40}?)\s*:\s*(?P<value>.+)$", re.S),
    re.compile(
        r"^(?:(?:her|his|their|its|the|[\w’'-]+['’]s)\s+)(?P<name>[\w -]{2,40}?)\s+(?:is|are|was|were|to|as)\s+"
        r"(?P<value>.+)$",
        re.I | re.S,
    ),
    re.compile(r"^(?:set\s+)?(?P<name>[\w -]{2,40}?)\s+(?:to|as)\s+(?P<value>.+)$", re.I | re.S),
    re.compile(
        r"^(?!(?:he|she|it|they|this|that|there|i|we|you)\b)(?P<name>[a-z][\w-]*(?: [a-z][\w-]*)?) (?:is|are) "
        r"(?P<value>.+)$",
        re.S,
    ),
)
"""What names its field itself: *occupation: ferrywoman*, *her eye colour is green*, *mood to grumpy*, *mood is low*."""
_APPOSITION = re.compile(
    r"^(?P<value>(?:an?|the)\s[^:;,.]{1,60})(?::|,?\s+(?:and|that)\s)\s*(?P<rest>.*)$", re.I | re.S
)


def fields_of(told: str, about: str, known: Collection[str] = ()) -> list[tuple[str, str]]:
    """All that is told, as fields with their values, each name once.

    Args:
        told: the user's words.
        about: the profile's name.
        known: names of fields that the profile has. A fact that names its field replaces what is there; one whose name
            was only derived gets another name.
    """
    found: dict[str, str] = {}
    taken = {name.casefold() for name in known}
    for fact in facts_in(told, about):
        name, value = field_of(fact, about, taken | found.keys())
        found[name] = value
    return list(found.items())


def facts_in(told: str, about: str) -> list[str]:
    """What is told, fact by fact, without the words between."""
    opened = _APPOSITION.match(told)
    if opened is not None and opened["rest"]:
        return [f"role: {opened['value'].strip()}", *facts_in(opened["rest"], about)]
    parts = [part for sentence in sentences(told) for part in re.split(_between(sentence, about), sentence, flags=re.I)]
    return [part for part in (part.strip(" ,.;!") for part in parts) if part]


def _between(told: str, about: str) -> str:
    """What stands between two facts of a sentence: never an *and* within one, as far as rules can tell."""
    between = [r"\s*;\s*", r"(?:,\s*(?:and\s+)?|\s+and\s+)(?=[\w -]{2,30}:\s)"]
    subjects = _subjects(told, about)
    if subjects:
        owners = "|".join(_OWNERS[one] for one in subjects if one in _OWNERS)
        owned = rf"(?:{owners})\s[\w -]{{2,30}}?\s(?:is|are|was|were)\b"
        begun = rf"(?:{'|'.join(map(re.escape, subjects))})\s|{owned}|(?:{_VERB})\b"
        between.append(rf"(?:,\s*(?:and\s+|but\s+)?|\s+(?:and|but)\s+)(?:that\s+)?(?={begun})")
    if _names_field(told, about):
        between.append(r"(?:,\s*(?:and\s+)?|\s+and\s+)(?=[a-z][\w-]*(?: [a-z][\w-]*)? (?:is|are|to) )")
    return "|".join(between)


def field_of(fact: str, about: str, taken: Collection[str] = ()) -> tuple[str, str]:
    """A fact as a field: its name, and its value.

    *Her eye colour is green* is the field *eye colour*, *she keeps the key* the field *keeps*, *she is a singer* the
    field *role*; a fact without such a part is the field of its first words that carry meaning, and its value is the
    whole of it. A name that was only derived is none of those ``taken``.
    """
    named = set(words(about))
    for pattern in _FIELDS:
        found = pattern.match(fact)
        if found is not None and not set(words(found["name"])) <= named and not _has_subject(found["name"], about):
            return found["name"].strip().lower(), found["value"].strip()
    name, value = _derived(fact, about)
    if name and name not in taken:
        return name, value
    carrying = [word for word in words(fact) if word not in STOP_WORDS and word not in named]
    return " ".join(carrying[:MAX_FIELD_NAME_WORDS]) or "note", fact


def _derived(fact: str, about: str) -> tuple[str, str]:
    said = _said_of(fact, about)
    role = _ROLE.match(said)
    if role is not None and not fact.lower().startswith("it "):
        return "role", role["value"].strip()
    verbal = _VERBAL.match(said)
    if verbal is None or verbal["verb"] in _NO_VERBS or (said == fact and verbal["verb"] not in _TELLING.split()):
        return "", fact
    return _NAMES.get(verbal["verb"], verbal["verb"]), verbal["value"].strip()


def _subjects(told: str, about: str) -> list[str]:
    """What the facts after the first may begin with, where the first tells something of the profile's subject."""
    first = (words(told) or [""])[0]
    if first in _PRONOUNS:
        return [_PRONOUNS[first]]
    if _said_of(told, about) != told:
        return [about, *_OWNERS]
    return [*_OWNERS] if first in _TELLING.split() or _names_field(told, about) else []


def _said_of(fact: str, about: str) -> str:
    """A fact without its subject, where that is a pronoun or has no word beside the profile's name."""
    subject = re.match(rf"(?:{_ANY_PRONOUN})\s+", fact, re.I)
    if subject is not None:
        return fact[subject.end() :]
    named, rest = set(words(about)), fact
    while (word := re.match(r"[\w'’-]+\s+", rest)) is not None and set(words(word[0])) <= named:
        rest = rest[word.end() :]
    return rest


def _names_field(told: str, about: str) -> bool:
    """Whether what is told begins with a field: *occupation is boatman and mood is grumpy*."""
    found = next((found for pattern in _FIELDS[2:] if (found := pattern.match(told))), None)
    return found is not None and not _has_subject(found["name"], about)


def _has_subject(name: str, about: str) -> bool:
    """Whether what stands before *to*, *as* or a colon is a clause of its own: *she moved to town* names no field."""
    first = (words(name) or [""])[0]
    return first in _OWNERS or _said_of(f"{name} ", about) != f"{name} "
