"""What a model with the profile tools does next, wish by wish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cicada_local.agents.brain_answers import (
    KeptWord,
    failure_told,
    fields_told,
    history_told,
    profile_told,
    quotations,
    records_told,
)
from cicada_local.agents.brain_memory import Field, Memory, Record
from cicada_local.agents.brain_situation import MOST_TRIES, Situation, ask
from cicada_local.agents.brain_theories import theory_deleted, theory_history
from cicada_local.agents.brain_words import Deed
from cicada_local.agents.turns import Step
from cicada_local.bedrock.extractive.text import content_stems


def _record(situation: Situation, changing: str) -> Record | Step | None:
    """The profile that is meant; a step to get to see it; or None if there is none."""
    wish, memory = situation.wish, situation.memory
    record = memory.record(wish.name)
    if record is not None and record.version is not None and not situation.stale(changing):
        return record
    looks = [made for made in memory.calls("show_profile") if not situation.stale(changing) or made.result.failed]
    if situation.offers("show_profile") and not looks:
        return situation.call("show_profile", name=record.name if record else wish.name, kind=wish.kind)
    return None


def _create(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("create_profile"):
        return ask(situation)
    if situation.succeeded("create_profile"):
        record = memory.record(wish.name)
        told = fields_told(record.fields) if record else ""
        return Step(f"I created a profile of {wish.name}.{f' It notes {told}.' if told else ''}")
    known = memory.record(wish.name)
    if known is not None and known.name.casefold() == wish.name.casefold():
        return _add(situation) if wish.fact else Step(f"You keep a profile of {known.name} already.")
    if situation.tries("create_profile"):
        if situation.offers("show_profile") and not memory.calls("show_profile"):
            return situation.call("show_profile", name=wish.name)
        return Step(failure_told(memory, f"create a profile of {wish.name}"))
    return _creation(situation)


def _creation(situation: Situation) -> Step:
    wish = situation.wish
    kind = wish.kind or ("character" if wish.name[:1].isupper() else "location")
    fields = situation.facts("create_profile", "fields")
    return situation.call("create_profile", kind=kind, name=wish.name, fields=fields or None)


def _add(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("update_profile"):
        return ask(situation)
    if situation.succeeded("update_profile"):
        noted = _just_noted(situation)
        return Step(f"I noted this of {wish.name}: {fields_told(noted) or f'“{wish.fact}”'}.")
    if situation.succeeded("create_profile"):
        return _create(situation)
    if situation.tries("update_profile") >= MOST_TRIES:
        return Step(failure_told(memory, f"change the profile of {wish.name}"))
    record = _record(situation, "update_profile")
    if isinstance(record, Step):
        return record
    if record is None:
        if situation.offers("create_profile") and not situation.tries("create_profile"):
            return _creation(situation)
        return Step(failure_told(memory, f"change the profile of {wish.name}"))
    facts = situation.facts("update_profile", "set", [field.name for field in record.fields])
    return situation.call("update_profile", id=record.id, expected_version=record.version, set=facts)


def _just_noted(situation: Situation) -> list[Field]:
    """The fields that the last update has set, as it showed them afterwards."""
    record, made = situation.memory.record(situation.wish.name), situation.memory.last("update_profile")
    given = made.use.given.get("set") if made is not None else None
    values = {str(part) for one in given or () if isinstance(one, Mapping) for part in one.values()}
    return [field for field in record.fields if {field.name, field.value} <= values] if record else []


def _remove(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("remove_fields"):
        return ask(situation)
    if situation.succeeded("remove_fields"):
        return Step(f"Confirm it, and {wish.fact} is removed from the profile of {wish.name}.")
    if situation.tries("remove_fields") >= MOST_TRIES:
        return Step(failure_told(memory, f"change the profile of {wish.name}"))
    record = _record(situation, "remove_fields")
    if isinstance(record, Step):
        return record
    wanted = content_stems(wish.fact)
    meant = [
        field.name
        for field in (record.fields if record else ())
        if wanted and wanted & content_stems(f"{field.name} {field.value}")
    ]
    if record is None or not meant:
        return Step(f"The profile of {wish.name} notes nothing like this: {wish.fact}.")
    return situation.call("remove_fields", id=record.id, expected_version=record.version, fields=meant[:1])


def _delete(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("delete_profile"):
        return ask(situation)
    if wish.kind == "theory":
        return theory_deleted(situation)
    if situation.succeeded("delete_profile"):
        return Step(f"Confirm it, and the profile of {wish.name} is deleted.")
    if situation.tries("delete_profile") >= MOST_TRIES:
        return Step(failure_told(memory, f"delete the profile of {wish.name}"))
    record = _record(situation, "delete_profile")
    if isinstance(record, Step):
        return record
    if record is None or record.name.casefold() != wish.name.casefold():
        return Step(f"You keep no profile of {wish.name}, so there is nothing to delete.")
    return situation.call("delete_profile", id=record.id, expected_version=record.version)


def _history(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("profile_history"):
        return ask(situation)
    if wish.kind == "theory":
        return theory_history(situation)
    told = memory.last("profile_history")
    if told is not None:
        if told.result.failed:
            return Step(failure_told(memory, f"look up what changed in the profile of {wish.name}"))
        return Step(history_told(f"profile of {wish.name}", told.result.value))
    record = _record(situation, "profile_history")
    if isinstance(record, Step):
        return record
    if record is None:
        return Step(f"You keep no profile of {wish.name}.")
    return situation.call("profile_history", id=record.id)


def _show(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    record = memory.record(wish.name)
    tried = memory.calls("show_profile")
    if situation.offers("show_profile") and not tried and (record is None or not record.fields):
        return situation.call("show_profile", name=record.name if record else wish.name)
    if record is None and situation.offers("search_script") and not memory.calls("search_script"):
        return situation.call("search_script", query=wish.name)
    said = quotations(memory.question, memory.passages if record is None else _of_text(memory, record))
    if record is None:
        return Step(f"You keep no profile of {wish.name}.\n\n{said}".strip())
    return Step(f"{profile_told(record)}\n\n{said}".strip())


def _of_text(memory: Memory, record: Record) -> list[Any]:
    """The passages that are not the record's own notes."""
    notes = {number for field in record.fields for number in field.numbers}
    return [found for found in memory.passages if found.passage.number not in notes]


def listed(situation: Situation) -> Step:
    """List what is kept: profiles of all kinds, or theories, by whichever tool there is for them."""
    theories = situation.wish.deed == "theories"
    tool = "list_theories" if theories and situation.offers("list_theories") else "list_profiles"
    what: KeptWord = "theories" if theories else "profiles"
    told = situation.memory.last(tool)
    if told is None:
        return situation.call(tool) if situation.offers(tool) else ask(situation)
    if told.result.failed:
        return Step(failure_told(situation.memory, f"list your {what}"))
    kinds = ("", "theory") if theories else None
    return Step(records_told([one for one in situation.memory.records if kinds is None or one.kind in kinds], what))


PROFILE_DEEDS: dict[Deed, Callable[[Situation], Step]] = {
    "create": _create,
    "add": _add,
    "remove": _remove,
    "delete": _delete,
    "history": _history,
    "show": _show,
    "list": listed,
    "theories": listed,
}
