"""What a profile may hold, within a deployment's limits, and how names are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada.corpus.passages import DocumentLocator, Locator, ScriptLocator
from cicada.errors import ProfileInvalid
from cicada.profiles.record import Kind, ProfileRecord, RecordModel
from cicada.text.normal import folded
from cicada.text.visible import visible


@dataclass(frozen=True)
class ProfileLimits:
    """They bound what is written. What was written under other limits is read as it is."""

    profiles: int = 200
    """That one user has."""
    fields: int = 50
    """That one profile has."""
    history_entries: int = 50
    """That are kept of one profile: the newest."""
    record_bytes: int = 360 * 1024
    """Of one profile with its history, in UTF-8: an item of DynamoDB holds 400 KB. The oldest entries of the history
    make room; what does not fit without them is refused."""
    confirm_s: int = 600
    """Seconds within which the user can confirm a deletion that an agent has asked for."""
    deleted_kept_s: int = 90 * 24 * 3600
    """Seconds for which a deleted profile's version is remembered."""
    deleted: int = 400
    """Deleted profiles of one user that are remembered at a time: with so many, one of a new name has to wait."""
    deleted_history_entries: int = 10
    """That a deleted profile keeps, without their words: the newest."""


ID_PATTERN = "^[0-9a-f]{20}$"
"""Of a profile's id, as :func:`profile_id` makes it."""
MAX_NAME_CHARS = 80
MAX_FIELD_NAME_CHARS = 60
MAX_VALUE_CHARS = 1_000
MAX_STATEMENT_CHARS = 500
MAX_QUOTE_CHARS = 1_000
"""Of a passage, or of a user's message, as a proof keeps it."""
MAX_EPISODES = 20
"""That one theory is limited to."""
MAX_EPISODE_CHARS = 128
MAX_EVIDENCE = 16
"""Passages that a theory keeps, for and against together."""
MAX_EDITS = 20
"""Fields that one change sets and removes together."""
_PLACE_CHARS = 200
"""Of each name in a locator that a proof keeps."""
_FRAME_BYTES = 400
"""Around the words of a fact, a piece of evidence or a change: what JSON calls its parts, ids, versions and times."""
_PROOF_BYTES = MAX_QUOTE_CHARS + 4 * _PLACE_CHARS + _FRAME_BYTES


def name_key(name: str) -> str:
    """A name as names are compared: what is seen of it, without case, in compatibility form (NFKC), single-spaced."""
    return folded(visible(name))


def claim_of(statement: str) -> str:
    """A statement as statements are compared: as names are, all of it, without the marks at its end."""
    return name_key(statement).rstrip(" .!?…。！？؟")


def profile_id(kind: Kind, name: str) -> str:
    """The id of a user's profile of this kind and name: 20 hexadecimal digits."""
    return hashlib.sha256(f"{kind}\0{name_key(name)}".encode()).hexdigest()[:20]


def is_profile_id(given: str) -> bool:
    """Whether a text is formed as a profile's id is."""
    return re.fullmatch(ID_PATTERN, given) is not None


def line(what: str, given: str, max_chars: int) -> str:
    """A text on one line, without characters that nobody sees. Raises ProfileInvalid if nothing is left of it, or it is
    longer than ``max_chars``; the message calls it ``what``."""
    return _bounded(what, " ".join(visible(given).split()), max_chars)


def value_of(field: str, given: str) -> str:
    """A field's value: it may have several lines. Raises ProfileInvalid."""
    return _bounded(f"the value of {field}", visible(given).strip(), MAX_VALUE_CHARS)


def episodes_of(given: Sequence[str]) -> tuple[str, ...]:
    """Episodes, each once. Raises ProfileInvalid."""
    if len(given) > MAX_EPISODES:
        raise ProfileInvalid(f"{MAX_EPISODES} episodes at most")
    return tuple(dict.fromkeys(line("an episode", episode, MAX_EPISODE_CHARS) for episode in given))


def clipped(text: str, max_chars: int = MAX_QUOTE_CHARS) -> str:
    """A text of at most so many characters, with an ellipsis where it was cut."""
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def kept_place(locator: Locator) -> Locator:
    """A locator as a proof keeps it: headings and titles of any length would outgrow it."""
    match locator:
        case DocumentLocator():
            section = None if locator.section is None else clipped(locator.section, _PLACE_CHARS)
            title = clipped(locator.title, _PLACE_CHARS)
            return locator.model_copy(update={"title": title, "section": section})
        case ScriptLocator():
            names = {"episode_name": locator.episode_name, "speaker": locator.speaker}
            return locator.model_copy(update={key: clipped(name, _PLACE_CHARS) for key, name in names.items()})


def full_bytes(limits: ProfileLimits) -> int:
    """UTF-8 bytes of the largest record that these limits allow beside ``record_bytes``, with its newest change alone.

    It is a theory whose every part is full, with what that change has replaced, in letters of one byte each; in others
    it has up to four times as many, and ``record_bytes`` refuses some of them.
    """
    stated = MAX_NAME_CHARS + MAX_STATEMENT_CHARS + MAX_EPISODES * (MAX_EPISODE_CHARS + 3) + _PROOF_BYTES
    fact = MAX_FIELD_NAME_CHARS + MAX_VALUE_CHARS + _PROOF_BYTES
    change = MAX_EDITS * (MAX_FIELD_NAME_CHARS + 2 * MAX_VALUE_CHARS + 50 + fact)
    theory = stated + MAX_EVIDENCE * _PROOF_BYTES
    return limits.fields * fact + 2 * theory + change + 2 * MAX_STATEMENT_CHARS + 2 * _FRAME_BYTES


def fitted(record: ProfileRecord, limits: ProfileLimits, stands: ProfileRecord | None = None) -> ProfileRecord:
    """The record within its limits: the oldest entries of its history are dropped.

    Where its newest change alone is too much, what that replaced is not kept: it cannot be taken back then. ``stands``
    is what it replaces: where that is over the limits, which have been others, the record may be so too if it is no
    larger, so that it can be made smaller step by step. Raises ProfileInvalid if it is too large without any entry but
    its newest.
    """
    record = _remembering(record, limits.history_entries)
    while (size := _size(record)) > limits.record_bytes:
        if len(record.history) <= 1 and record.replaced:
            record = record.model_copy(update={"replaced": ()})  # this change cannot be taken back
            continue
        if len(record.history) <= 1:
            if stands is not None and size <= _size(stands):
                return record
            raise ProfileInvalid(f"the profile has {size} bytes of {limits.record_bytes}: remove something first")
        record = _remembering(record, len(record.history) // 2)
    return record


def _remembering(record: ProfileRecord, entries: int) -> ProfileRecord:
    """The record with the newest entries of its history, and what these have replaced."""
    history = record.history[-entries:] if entries else ()
    versions = {change.version for change in history}
    replaced = tuple(one for one in record.replaced if one.version in versions)
    return record.model_copy(update={"history": history, "replaced": replaced})


def _size(record: ProfileRecord) -> int:
    """Bytes, in UTF-8."""
    return len(dumped(record).encode())


def dumped(record: RecordModel) -> str:
    """A record, or its head, as JSON."""
    return record.model_dump_json(by_alias=True, exclude_none=True)


def _bounded(what: str, text: str, max_chars: int) -> str:
    if not text:
        raise ProfileInvalid(f"{what} is empty")
    if len(text) > max_chars:
        raise ProfileInvalid(f"{what} has {len(text)} characters of {max_chars}")
    return text
