"""The new record that each operation on a profile makes, computed without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cicada.errors import ProfileConflict, ProfileInvalid
from cicada.profiles.record import (
    Change,
    Edit,
    Evidence,
    Judgement,
    Kind,
    NoteProof,
    Operation,
    Profile,
    ProfileField,
    ProfileRecord,
    Proof,
    Replaced,
    Theory,
    Verdict,
)
from cicada.profiles.rules import (
    MAX_EDITS,
    MAX_EVIDENCE,
    MAX_FIELD_NAME_CHARS,
    MAX_NAME_CHARS,
    MAX_STATEMENT_CHARS,
    ProfileLimits,
    clipped,
    episodes_of,
    fitted,
    line,
    name_key,
    profile_id,
    value_of,
)

_THEORY_PARTS = frozenset({"statement", "episodes", "evidence", "verdict"})
"""Names that the history uses for the parts of a theory. A theory's fields cannot have them."""


@dataclass(frozen=True)
class By:
    """The user and the operation that make a change."""

    subject: str  # the owner of the profiles: see :attr:`cicada.identity.Caller.owner`
    request_id: str
    operation_id: str
    """Equal for a repeated operation, which is applied once: see :func:`cicada.profiles.service.operation`."""
    reversibly: bool = False
    """Refuse a change that cannot be undone because the record has no room for what it replaces."""


@dataclass(frozen=True)
class ChangeContext:
    """Who makes a change, when, and under which limits."""

    by: By
    at_ms: int
    limits: ProfileLimits


@dataclass(frozen=True)
class FieldGiven:
    """A fact to store."""

    name: str
    value: str
    proof: Proof


@dataclass(frozen=True)
class Stated:
    """The content of a theory."""

    statement: str
    proof: NoteProof
    episodes: Sequence[str] = ()


def created(
    old: ProfileRecord | None,
    kind: Kind,
    name: str,
    fields: Sequence[FieldGiven],
    stated: Stated | None,
    context: ChangeContext,
) -> ProfileRecord:
    """The record of a new profile; ``old`` is the record of a deleted one with its name. Raises ProfileInvalid."""
    name = line("the name", name, MAX_NAME_CHARS)
    if (kind == "theory") != (stated is not None):
        raise ProfileInvalid("a theory needs a statement, and no other kind can have one")
    kept, edits = _set((), fields, (), context, in_theory=kind == "theory")
    theory = None
    if stated is not None:
        theory, of_theory = _stated(None, stated)
        edits = (*of_theory, *edits)
    profile = Profile(
        id=profile_id(kind, name),
        kind=kind,
        name=name,
        version=old.version + 1 if old else 1,
        created_at_ms=context.at_ms,
        changed_at_ms=context.at_ms,
        fields=kept,
        theory=theory,
    )
    return _recorded(old, profile, "created", edits, context)


def updated(
    old: ProfileRecord,
    profile: Profile,
    given: Sequence[FieldGiven],
    remove: Sequence[str],
    stated: Stated | None,
    context: ChangeContext,
) -> ProfileRecord:
    """Set and remove fields, and replace a theory's statement, which drops the evidence and verdict of the old one.

    A field whose value is unchanged keeps its proof. Returns ``old`` if nothing changes. Raises ProfileInvalid.
    """
    if len(given) + len(remove) > MAX_EDITS:
        raise ProfileInvalid(f"one change can set and remove at most {MAX_EDITS} fields")
    theory = profile.theory
    of_theory: tuple[Edit, ...] = ()
    if stated is not None:
        if theory is None:
            raise ProfileInvalid("only a theory has a statement")
        theory, of_theory = _stated(theory, stated)
    fields, edits = _set(profile.fields, given, remove, context, in_theory=profile.theory is not None)
    return _next(old, profile, {"fields": fields, "theory": theory}, (*of_theory, *edits), context)


def judged(
    old: ProfileRecord, profile: Profile, verdict: Verdict, evidence: Sequence[Evidence], context: ChangeContext
) -> ProfileRecord:
    """Store a theory's verdict with the evidence that it cites, and the strongest of the rest.

    Raises ProfileInvalid if the profile is no theory, or the verdict cites nothing.
    """
    if profile.theory is None:
        raise ProfileInvalid("only a theory has a verdict")
    if not 1 <= sum(one.cited for one in evidence) <= MAX_EVIDENCE:
        raise ProfileInvalid(f"a verdict must cite 1 to {MAX_EVIDENCE} passages of its evidence")
    ranked = sorted(evidence, key=lambda one: (not one.cited, -one.strength))[:MAX_EVIDENCE]
    kept = tuple(sorted(ranked, key=lambda one: -one.strength))
    judgement = Judgement(verdict=verdict, at_ms=context.at_ms)
    theory = profile.theory.model_copy(update={"evidence": kept, "judgement": judgement})
    edits = (
        *_edit("evidence", evidence_words(profile.theory), evidence_words(theory)),
        *_edit("verdict", verdict_words(profile.theory), verdict_words(theory)),
    )
    return _next(old, profile, {"theory": theory}, edits, context)


def undone(old: ProfileRecord, profile: Profile, version: int, context: ChangeContext) -> ProfileRecord:
    """Undo one change: what it replaced is restored with its proof, what it added is removed.

    Undoing the creation deletes the profile, if nothing else has changed it. Raises ProfileInvalid if the history no
    longer has the change or what it replaced, and ProfileConflict if its result was changed since.
    """
    change = old.change_to(version)
    if change is None:
        raise ProfileInvalid(f"the history has no change to version {version}")
    if change.operation == "created":
        if old.version != version:
            raise ProfileConflict(f"version {old.version} is current: the profile was changed after it was created")
        return deleted(old, context)
    before = next((one for one in old.replaced if one.version == version), Replaced(version=version))
    of_theory, of_fields = _split(profile, change)
    if before.theory is None and (of_theory or not change.edits):  # a deletion leaves changes without edits
        raise _not_kept(version)
    update = {"fields": _restored(profile, before, of_fields), "theory": _restored_theory(old, profile, before)}
    edits = tuple(Edit(field=edit.field, before=edit.after, after=edit.before) for edit in (*of_fields, *of_theory))
    return _next(old, profile, update, edits, context, undoes=version)


def _restored_theory(old: ProfileRecord, profile: Profile, before: Replaced) -> Theory | None:
    if before.theory is not None and any(one.version > before.version and one.theory for one in old.replaced):
        raise ProfileConflict(f"the theory was changed after version {before.version}")
    return before.theory or profile.theory


def _split(profile: Profile, change: Change) -> tuple[list[Edit], list[Edit]]:
    """The edits of the theory's own parts, and those of fields."""
    parts = _THEORY_PARTS if profile.theory else frozenset()
    of_theory = [edit for edit in change.edits if name_key(edit.field) in parts]
    return of_theory, [edit for edit in change.edits if edit not in of_theory]


def _restored(profile: Profile, before: Replaced, edits: Sequence[Edit]) -> tuple[ProfileField, ...]:
    """The profile's fields with these edits reversed."""
    fields = {name_key(field.name): field for field in profile.fields}
    replaced = {name_key(field.name): field for field in before.fields}
    for edit in edits:
        name = name_key(edit.field)
        current = fields.get(name)
        if (current.value if current else None) != edit.after:
            raise ProfileConflict(f"{edit.field} was changed after version {before.version}")
        if edit.before is not None and name not in replaced:
            raise _not_kept(before.version)
        if name in replaced:
            fields[name] = replaced[name]
        else:
            del fields[name]
    return tuple(fields.values())


def _not_kept(version: int) -> ProfileInvalid:
    return ProfileInvalid(f"what version {version} replaced was not kept")


def deleted(old: ProfileRecord, context: ChangeContext) -> ProfileRecord:
    """The record of a deleted profile: versions and operation ids, without any of the user's words."""
    older = context.limits.deleted_history_entries - 1
    newest = old.history[-older:] if older else ()
    bare = tuple(change.model_copy(update={"edits": ()}) for change in newest)
    left = old.model_copy(
        update={
            "version": old.version + 1,
            "profile": None,
            "history": (*bare, _change(old.version + 1, "deleted", (), context)),
            "replaced": (),
            "expires_at": context.at_ms // 1000 + context.limits.deleted_kept_s,
        }
    )
    return fitted(left, context.limits, old)


def evidence_words(theory: Theory) -> str | None:
    """``3 for, 1 against``; None without evidence."""
    if not theory.evidence:
        return None
    for_it = sum(one.side == "for" for one in theory.evidence)
    return f"{for_it} for, {len(theory.evidence) - for_it} against"


def verdict_words(theory: Theory) -> str | None:
    """The verdict and how many passages it cites; None without a verdict."""
    if theory.judgement is None:
        return None
    return f"{theory.judgement.verdict}, by {sum(one.cited for one in theory.evidence)} of its evidence"


def _stated(old: Theory | None, stated: Stated) -> tuple[Theory, tuple[Edit, ...]]:
    statement = line("the statement", stated.statement, MAX_STATEMENT_CHARS)
    episodes = episodes_of(stated.episodes)
    if old is not None and (old.statement, old.episodes) == (statement, episodes):
        return old, ()
    new = Theory(statement=statement, episodes=episodes, proof=stated.proof)
    edits: tuple[Edit, ...] = _edit("statement", old.statement if old else None, statement)
    edits += _edit("episodes", ", ".join(old.episodes) if old else None, ", ".join(episodes))
    if old is not None:
        edits += _edit("evidence", evidence_words(old), None)
        edits += _edit("verdict", verdict_words(old), None)
    return new, edits


def _set(
    fields: Sequence[ProfileField],
    given: Sequence[FieldGiven],
    remove: Sequence[str],
    context: ChangeContext,
    *,
    in_theory: bool,
) -> tuple[tuple[ProfileField, ...], tuple[Edit, ...]]:
    kept = {name_key(field.name): field for field in fields}
    edits: list[Edit] = []
    named: set[str] = set()
    for name in remove:
        key = _once(named, name)
        if key not in kept:
            raise ProfileInvalid(f"unknown field {clipped(name, MAX_FIELD_NAME_CHARS)}")
        gone = kept.pop(key)
        edits += _edit(gone.name, gone.value, None)
    for one in given:
        name = line("a field's name", one.name, MAX_FIELD_NAME_CHARS)
        key = _once(named, name)
        if in_theory and key in _THEORY_PARTS:
            raise ProfileInvalid(f"{name} is reserved in theories: choose another field name")
        value = value_of(name, one.value)
        name, before = (kept[key].name, kept[key].value) if key in kept else (name, None)
        if value != before:
            kept[key] = ProfileField(name=name, value=value, proof=one.proof, changed_at_ms=context.at_ms)
            edits += _edit(name, before, value)
    if len(kept) > max(context.limits.fields, len(fields)):  # a profile made under a higher limit may keep its fields
        raise ProfileInvalid(f"a profile can have at most {context.limits.fields} fields")
    return tuple(kept.values()), tuple(edits)


def _once(named: set[str], name: str) -> str:
    key = name_key(name)
    if key in named:
        raise ProfileInvalid(f"{clipped(name, MAX_FIELD_NAME_CHARS)} is set or removed twice")
    named.add(key)
    return key


def _edit(field: str, before: str | None, after: str | None) -> tuple[Edit, ...]:
    before, after = before or None, after or None
    return () if before == after else (Edit(field=field, before=before, after=after),)


def _next(
    old: ProfileRecord,
    profile: Profile,
    update: Mapping[str, object],
    edits: tuple[Edit, ...],
    context: ChangeContext,
    *,
    undoes: int | None = None,
) -> ProfileRecord:
    if not edits and all(getattr(profile, name) == value for name, value in update.items()):
        return old
    new = profile.model_copy(update={**update, "version": old.version + 1, "changed_at_ms": context.at_ms})
    return _recorded(old, new, "undone" if undoes else "updated", edits, context, undoes)


def _recorded(
    old: ProfileRecord | None,
    profile: Profile,
    operation: Operation,
    edits: tuple[Edit, ...],
    context: ChangeContext,
    undoes: int | None = None,
) -> ProfileRecord:
    replaced = _replaced(old.profile if old else None, profile, edits)
    record = ProfileRecord(
        id=profile.id,
        version=profile.version,
        profile=profile,
        history=(*(old.history if old else ()), _change(profile.version, operation, edits, context, undoes)),
        replaced=(*(old.replaced if old else ()), *replaced),
    )
    kept = fitted(record, context.limits, old)
    if context.by.reversibly and replaced and not kept.replaced:
        raise ProfileInvalid("the profile's history would exceed the size limit: change fewer fields at a time")
    return kept


def _replaced(old: Profile | None, new: Profile, edits: tuple[Edit, ...]) -> tuple[Replaced, ...]:
    """What a change has removed from a profile; empty if it has only added."""
    if old is None:
        return ()
    named = {name_key(edit.field) for edit in edits}
    fields = tuple(field for field in old.fields if name_key(field.name) in named and field not in new.fields)
    theory = old.theory if old.theory != new.theory else None
    return (Replaced(version=new.version, fields=fields, theory=theory),) if fields or theory else ()


def _change(
    version: int, operation: Operation, edits: tuple[Edit, ...], context: ChangeContext, undoes: int | None = None
) -> Change:
    return Change(
        version=version,
        at_ms=context.at_ms,
        operation=operation,
        request_id=context.by.request_id,
        operation_id=context.by.operation_id,
        edits=edits,
        undoes=undoes,
    )
