"""The limits of profiles, and how names are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cicada.corpus.passages import DocumentLocator, Locator, ScriptLocator
from cicada.errors import ProfileInvalid
from cicada.profiles.record import Kind, ProfileRecord, RecordModel
from cicada.text.characters import folded
from cicada.text.visible import visible


@dataclass(frozen=True)
class ProfileLimits:
    """Limits on writes. Records written under other limits are read unchanged."""

    profiles: int = 200  # per user
    fields: int = 50  # per profile
    history_entries: int = 50  # per profile; the newest are kept
    record_bytes: int = 360 * 1024
    """Of one profile with its history, in UTF-8: an item of DynamoDB holds 400 KB. The oldest history entries are
    dropped to make room."""
    confirm_s: int = 600  # seconds in which the user can confirm a deletion that an agent requested
    deleted_kept_s: int = 90 * 24 * 3600  # seconds for which a deleted profile's version is kept
    deleted: int = 400  # deleted profiles kept per user; at the limit no profile with a new name can be created
    deleted_history_entries: int = 10  # history entries of a deleted profile; the newest are kept, without edits


ID_PATTERN = "^[0-9a-f]{20}$"
MAX_NAME_CHARS = 80
MAX_FIELD_NAME_CHARS = 60
MAX_VALUE_CHARS = 1_000
MAX_STATEMENT_CHARS = 500
MAX_QUOTE_CHARS = 1_000  # of a passage or a user's message, as a proof stores it
MAX_EPISODES = 20  # per theory
MAX_EPISODE_CHARS = 128
MAX_EVIDENCE = 16  # passages per theory, for and against
MAX_EDITS = 20  # fields that one change sets and removes
_PLACE_CHARS = 200  # of each name in a proof's locator
_FRAME_BYTES = 400  # JSON overhead of a fact, a piece of evidence or a change: keys, ids, versions and times
_PROOF_BYTES = MAX_QUOTE_CHARS + 4 * _PLACE_CHARS + _FRAME_BYTES


def name_key(name: str) -> str:
    """A name normalised for comparison: visible characters, case-folded, NFKC, single-spaced."""
    return folded(visible(name))


def claim_of(statement: str) -> str:
    """A statement normalised for comparison: as :func:`name_key`, without punctuation at its end."""
    return name_key(statement).rstrip(" .!?…。！？؟")


def profile_id(kind: Kind, name: str) -> str:
    """The id of a user's profile: 20 hexadecimal digits, derived from kind and name."""
    return hashlib.sha256(f"{kind}\0{name_key(name)}".encode()).hexdigest()[:20]


def is_profile_id(given: str) -> bool:
    """Whether a text has the form of a profile's id."""
    return re.fullmatch(ID_PATTERN, given) is not None


def line(what: str, given: str, max_chars: int) -> str:
    """A text as one line of visible characters. Raises ProfileInvalid about ``what`` if it is empty or too long."""
    return _bounded(what, " ".join(visible(given).split()), max_chars)


def value_of(field: str, given: str) -> str:
    """A field's value, which may have several lines. Raises ProfileInvalid."""
    return _bounded(f"the value of {field}", visible(given).strip(), MAX_VALUE_CHARS)


def episodes_of(given: Sequence[str]) -> tuple[str, ...]:
    """Distinct episodes. Raises ProfileInvalid."""
    if len(given) > MAX_EPISODES:
        raise ProfileInvalid(f"at most {MAX_EPISODES} episodes")
    return tuple(dict.fromkeys(line("an episode", episode, MAX_EPISODE_CHARS) for episode in given))


def clipped(text: str, max_chars: int = MAX_QUOTE_CHARS) -> str:
    """A text of at most ``max_chars``, with an ellipsis if it was cut."""
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def kept_place(locator: Locator) -> Locator:
    """A locator as a proof stores it, with long headings and titles clipped."""
    match locator:
        case DocumentLocator():
            section = None if locator.section is None else clipped(locator.section, _PLACE_CHARS)
            title = clipped(locator.title, _PLACE_CHARS)
            return locator.model_copy(update={"title": title, "section": section})
        case ScriptLocator():
            names = {"episode_name": locator.episode_name, "speaker": locator.speaker}
            return locator.model_copy(update={key: clipped(name, _PLACE_CHARS) for key, name in names.items()})


def full_bytes(limits: ProfileLimits) -> int:
    """UTF-8 bytes of the largest record that the limits other than ``record_bytes`` allow, with its newest change only.

    That is a theory with every part full, in letters of one byte. Other scripts take up to four times as many, and
    ``record_bytes`` refuses some of those records.
    """
    stated = MAX_NAME_CHARS + MAX_STATEMENT_CHARS + MAX_EPISODES * (MAX_EPISODE_CHARS + 3) + _PROOF_BYTES
    fact = MAX_FIELD_NAME_CHARS + MAX_VALUE_CHARS + _PROOF_BYTES
    change = MAX_EDITS * (MAX_FIELD_NAME_CHARS + 2 * MAX_VALUE_CHARS + 50 + fact)
    theory = stated + MAX_EVIDENCE * _PROOF_BYTES
    return limits.fields * fact + 2 * theory + change + 2 * MAX_STATEMENT_CHARS + 2 * _FRAME_BYTES


def fitted(record: ProfileRecord, limits: ProfileLimits, old: ProfileRecord | None = None) -> ProfileRecord:
    """The record within its limits: the oldest entries of its history are dropped.

    If the newest change alone is too large, what it replaced is dropped too, and it cannot be undone. If the ``old``
    record exceeds the limits (they were lowered), a record that is no larger is accepted: users can shrink it step by
    step. Raises ProfileInvalid if the record is too large with its newest entry alone.
    """
    record = _with_newest(record, limits.history_entries)
    while (size := _size(record)) > limits.record_bytes:
        if len(record.history) > 1:
            record = _with_newest(record, len(record.history) // 2)
        elif record.replaced:
            record = record.model_copy(update={"replaced": ()})
        elif old is not None and size <= _size(old):
            return record
        else:
            raise ProfileInvalid(
                f"the profile would have {size} bytes; the limit is {limits.record_bytes}: remove some fields first"
            )
    return record


def _with_newest(record: ProfileRecord, entries: int) -> ProfileRecord:
    """The record with the newest entries of its history and what these replaced."""
    history = record.history[-entries:] if entries else ()
    versions = {change.version for change in history}
    replaced = tuple(one for one in record.replaced if one.version in versions)
    return record.model_copy(update={"history": history, "replaced": replaced})


def _size(record: ProfileRecord) -> int:
    return len(dumped(record).encode())


def dumped(record: RecordModel) -> str:
    """A record or its head as JSON."""
    return record.model_dump_json(by_alias=True, exclude_none=True)


def _bounded(what: str, text: str, max_chars: int) -> str:
    if not text:
        raise ProfileInvalid(f"{what} is empty")
    if len(text) > max_chars:
        raise ProfileInvalid(f"{what} has {len(text)} characters; the limit is {max_chars}")
    return text
