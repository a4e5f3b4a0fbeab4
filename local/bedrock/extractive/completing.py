"""Completes a follow-up question from the turns of its prompt, as a model is asked to; by rule, and in English best.

Whether there is anything to complete, the library's own classifier tells it. Pronouns become the last name or thing
that fits, an ellipsis takes up the last question. Nothing here can fail: what no rule fits is the last question and
this one, joined.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada.answering.conversation.keeping import UNCHANGED
from cicada.answering.conversation.leaning import leaning
from cicada.text.word_lists import word_lists

MAX_CHARS = 400
LEAST_LEANING = 0.35
"""The probability of leaning on the turns below which a question needs none of them."""
_TURN = re.compile(r"<turn\b[^<>]*+>\s*+<asked>([^<]*+)</asked>\s*+<answered>([^<]*+)</answered>\s*+</turn>")
_QUESTION = re.compile(r"<question>([^<]*+)</question>")
_OPENER = re.compile(r"(?:(?:and|but|so|or|then|also|ok|okay|well|oh)\b[,\s]*)+", re.I)
_ABOUT = re.compile(r"(?:what|how) about (.+)", re.I)
_BARE = re.compile(r"(?:why(?: not)?|when|where|how|who|whom|what|which one|since when|how come)(?: exactly)?", re.I)
_PLACE = re.compile(r"(?:in|on|at|during|before|after|under|with|for|from) .+", re.I)
_EPISODE = re.compile(r"\b(?:in|of) (?:the )?(?:\w+ )?(?:episode|draft|chapter)(?: \w+)?\b", re.I)
_SEQUEL = re.compile(r"\b(?:next|then|afterwards?|later|after that|before that|else)\b", re.I)
_PERSON = re.compile(r"\b(?:he|she|him|his|hers|her)\b", re.I)
_THING = re.compile(
    r"\b(?:it|they|them|that one|the other one)\b(?! (?:true|possible|likely|safe)\b)|\b(?:that|this)(?=\s*$)", re.I
)
_NOUNS = re.compile(
    r"\bthe ((?:(?!of\b|in\b|on\b|at\b)[a-z]+ ){0,2}?[a-z]+)(?=\s*(?:$|[?.,;:!]| (?:of|in|on|at|when|is|was)\b))"
)
_PARTICIPLE = re.compile(r"\w{3,}ed|found|hidden|made|kept|left|done|gone|seen|put|lost|broken|given|taken|built|said")
_NAME = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Miss|Dr)\.? )?\b[A-Z][a-z’'-]+(?: [A-Z][a-z’'-]+)*")
_SPEAKER = re.compile(r"\b([A-Z]\w+(?: [A-Z]\w+)*) (?:also )?(?:says|asks|answers)\b")
_COMMON = word_lists("local", "words.json")["no_names"]
_OWNED = re.compile(r" (?!(?:to|in|on|at|with|from|about|when|and|next|then|after|before)\b)\w")
_MALE_PRONOUNS = frozenset({"he", "him", "his"})
_MALE, _FEMALE = ("Mr ", "Mr. "), ("Mrs", "Ms", "Miss")


@dataclass(frozen=True)
class Exchange:
    """A question that was asked before, and the beginning of its answer."""

    asked: str
    answered: str


def asks_to_complete(user: str) -> bool:
    """Whether a user's turn is a question to be completed: it begins with the turns before it."""
    return user.lstrip().startswith("<turns>") and _QUESTION.search(user) is not None


def complete_from(user: str) -> str:
    """The completed question of such a turn: one line of at most :data:`MAX_CHARS`, or that it needs nothing."""
    turns = [Exchange(_line(asked), _line(answered)) for asked, answered in _TURN.findall(user)]
    question = _line(_QUESTION.findall(user)[-1])
    if leaning(question) < LEAST_LEANING:
        return UNCHANGED
    completed = completed_question(question, turns)
    return completed if len(completed) <= MAX_CHARS else question


def completed_question(question: str, turns: Sequence[Exchange]) -> str:
    """A question with what it leaves to the conversation; as it is where there is none."""
    if not turns:
        return question
    bare = _OPENER.sub("", question, count=1) if _OPENER.match(question) else question
    bare = bare.rstrip(" ?!.") or question
    last = turns[-1].asked.rstrip(" ?!.")
    about = _ABOUT.fullmatch(bare)
    if about:
        return _sentence(_instead(last, about[1]))
    if _BARE.fullmatch(bare):
        return _sentence(f"{last}, and {bare[0].lower()}{bare[1:]}")
    if len(bare.split()) <= 3 and (_PLACE.fullmatch(bare) or (_NAME.fullmatch(bare) and bare.lower() not in _COMMON)):
        return _sentence(_instead(last, bare))
    resolved = _resolved(bare, turns)
    if resolved != bare:
        return _sentence(resolved)
    return f"{turns[-1].asked} {question}"


def _instead(last: str, fragment: str) -> str:
    """The last question about something else: *who is Mara* and *Jonas*, *who lied in episode 1* and *in episode 2*."""
    if _PLACE.fullmatch(fragment):
        return f"{_EPISODE.sub('', last).rstrip()} {fragment}" if _EPISODE.search(fragment) else f"{last} {fragment}"
    names = _names(last)
    if names and fragment[:1].isupper():
        before, _, after = last.rpartition(names[-1])
        return f"{before}{fragment}{after}"
    return f"{last}, and {fragment}"


def _resolved(bare: str, turns: Sequence[Exchange]) -> str:
    """With the last fitting name for *she*, the last thing for *it*, and the topic of what comes next."""
    thing = next((found for turn in reversed(turns) if (found := _things(turn.asked))), None)
    text = _with_persons(bare, turns)
    if thing and thing not in text:
        text = _THING.sub(thing, text)
        text = re.sub(r"(?<=[a-z] )there$", f"at {thing}", text)
        if _SEQUEL.search(text) and thing not in text:
            text = f"{text}, about {thing}"
    return text


def _with_persons(bare: str, turns: Sequence[Exchange]) -> str:
    """With names for *he* and *she*: each its own, for two pronouns are two persons."""
    persons: dict[bool, str] = {}

    def name_for(match: re.Match[str]) -> str:
        male = match[0].lower() in _MALE_PRONOUNS
        name = persons.get(male) or _person(male, turns, besides=(*persons.values(), *_names(bare)))
        if name is None:
            return match[0]
        persons[male] = name
        owns = match[0].lower() in ("his", "hers") or (match[0].lower() == "her" and _OWNED.match(bare, match.end()))
        return f"{name}'s" if owns else name

    return _PERSON.sub(name_for, bare)


def _person(male: bool, turns: Sequence[Exchange], besides: Sequence[str]) -> str | None:
    """The last name that a pronoun can stand for: of the last question if it names one, else who is quoted first."""
    wrong = _FEMALE if male else _MALE

    def fitting(names: Sequence[str]) -> list[str]:
        others = [name for name in names if not any(name in one or one in name for one in besides)]
        return [name for name in others if not name.startswith(wrong)]

    for turn in reversed(turns):
        found = fitting(_names(turn.asked))[-1:] or fitting(_SPEAKER.findall(turn.answered))[:1]
        if found:
            return found[0]
    return None


def _names(text: str) -> list[str]:
    """Capitalised words, but for those that only begin a sentence."""
    found = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and words[0].lower() in _COMMON:
            words = words[1:]
        if words:
            found.append(re.sub(r"['’]s$", "", " ".join(words)))
    return found


def _things(text: str) -> str | None:
    """The last thing of a question, without the participle that may follow it: *where was the red oilskin found?*"""
    found = _NOUNS.findall(text)
    if not found:
        return None
    words = found[-1].split()
    if len(words) > 1 and _PARTICIPLE.fullmatch(words[-1]):
        words.pop()
    return f"the {' '.join(words)}"


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text[:1].upper()}{text[1:]}?"


def _line(text: str) -> str:
    return " ".join(html.unescape(text).split())
