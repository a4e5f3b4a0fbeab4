"""What each operation makes of a record: decisions without I/O."""

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

_OF_THEORIES = frozenset({"statement", "episodes", "evidence", "verdict"})
"""What the history calls the parts of a theory: no field is called so."""


@dataclass(frozen=True)
class By:
    """Who changes something, and because of what."""

    subject: str
    """Whose profiles they are: see :attr:`cicada.identity.Caller.owner`."""
    request_id: str
    operation_id: str
    """Equal for a repeated operation, so that it is applied once: see :func:`cicada.profiles.service.operation`."""
    reversibly: bool = False
    """Refuse a change that could not be taken back, because the record has no room for what it replaces."""


@dataclass(frozen=True)
class FieldGiven:
    """A fact to be kept."""

    name: str
    value: str
    proof: Proof


@dataclass(frozen=True)
class Stated:
    """What a theory says."""

    statement: str
    proof: NoteProof
    episodes: Sequence[str] = ()


def created(
    old: ProfileRecord | None,
    kind: Kind,
    name: str,
    fields: Sequence[FieldGiven],
    stated: Stated | None,
    *,
    by: By,
    at_ms: int,
    limits: ProfileLimits,
) -> ProfileRecord:
    """The record of a new profile; ``old`` is what a deleted one of its name has left. Raises ProfileInvalid if it
    breaks a rule or a limit."""
    name = line("the name", name, MAX_NAME_CHARS)
    if (kind == "theory") != (stated is not None):
        raise ProfileInvalid("a theory has a statement, and nothing else has one")
    kept, edits = _set((), fields, (), at_ms=at_ms, limits=limits, in_theory=kind == "theory")
    theory = None
    if stated is not None:
        theory, of_theory = _stated(None, stated)
        edits = (*of_theory, *edits)
    profile = Profile(
        id=profile_id(kind, name),
        kind=kind,
        name=name,
        version=old.version + 1 if old else 1,
        created_at_ms=at_ms,
        changed_at_ms=at_ms,
        fields=kept,
        theory=theory,
    )
    return _recorded(old, profile, "created", edits, by=by, limits=limits)


def updated(
    old: ProfileRecord,
    profile: Profile,
    given: Sequence[FieldGiven],
    remove: Sequence[str],
    stated: Stated | None,
    *,
    by: By,
    at_ms: int,
    limits: ProfileLimits,
) -> ProfileRecord:
    """The record with fields set and removed, and a theory's statement refined: what was gathered for the old one goes.

    A value that stands there already is left as it is, with its proof; where nothing is changed, the record is the old.
    Raises ProfileInvalid if it breaks a rule or a limit, or removes what is not there.
    """
    if len(given) + len(remove) > MAX_EDITS:
        raise ProfileInvalid(f"one change sets and removes {MAX_EDITS} fields at most")
    theory = profile.theory
    of_theory: tuple[Edit, ...] = ()
    if stated is not None:
        if theory is None:
            raise ProfileInvalid("only a theory has a statement")
        theory, of_theory = _stated(theory, stated)
    fields, edits = _set(
        profile.fields, given, remove, at_ms=at_ms, limits=limits, in_theory=profile.theory is not None
    )
    return _next(old, profile, {"fields": fields, "theory": theory}, (*of_theory, *edits), by, at_ms, limits)


def judged(
    old: ProfileRecord,
    profile: Profile,
    verdict: Verdict,
    evidence: Sequence[Evidence],
    *,
    by: By,
    at_ms: int,
    limits: ProfileLimits,
) -> ProfileRecord:
    """The record of a theory with what speaks for and against it, and what is concluded from that.

    Of the evidence, all that was gathered, is kept what the verdict rests on, and the strongest of the rest. Raises
    ProfileInvalid if it is no theory, or the verdict rests on nothing that was gathered.
    """
    if profile.theory is None:
        raise ProfileInvalid("only a theory has a verdict")
    if not 1 <= sum(one.cited for one in evidence) <= MAX_EVIDENCE:
        raise ProfileInvalid(f"a verdict rests on 1 to {MAX_EVIDENCE} passages of its evidence")
    ranked = sorted(evidence, key=lambda one: (not one.cited, -one.strength))[:MAX_EVIDENCE]
    kept = tuple(sorted(ranked, key=lambda one: -one.strength))
    judgement = Judgement(verdict=verdict, at_ms=at_ms)
    theory = profile.theory.model_copy(update={"evidence": kept, "judgement": judgement})
    edits = (
        *_edit("evidence", evidence_words(profile.theory), evidence_words(theory)),
        *_edit("verdict", verdict_words(profile.theory), verdict_words(theory)),
    )
    return _next(old, profile, {"theory": theory}, edits, by, at_ms, limits)


def undone(
    old: ProfileRecord, profile: Profile, version: int, *, by: By, at_ms: int, limits: ProfileLimits
) -> ProfileRecord:
    """The record with one change taken back: what it replaced stands again with its proof, what it added is gone.

    The profile's creation is taken back by deleting it, while nothing else has changed it. Raises ProfileInvalid if
    the history does not have that change any more, or it cannot be taken back, and ProfileConflict if what it did was
    changed since.
    """
    change = old.change_to(version)
    if change is None:
        raise ProfileInvalid(f"the history has no change to version {version}")
    if change.operation == "created":
        if old.version != version:
            raise ProfileConflict(f"version {old.version} stands: it was changed after it was created")
        return deleted(old, by=by, at_ms=at_ms, limits=limits)
    before = next((one for one in old.replaced if one.version == version), Replaced(version=version))
    fields = {name_key(field.name): field for field in profile.fields}
    restored = {name_key(field.name): field for field in before.fields}
    theory, edits = profile.theory, list[Edit]()
    of_theory = [edit for edit in change.edits if profile.theory and name_key(edit.field) in _OF_THEORIES]
    if before.theory is None and (of_theory or not change.edits):  # of a profile of this name that was deleted
        raise ProfileInvalid(f"what version {version} replaced is not kept any more")
    for edit in change.edits:
        name = name_key(edit.field)
        if edit in of_theory:
            continue
        stands = fields.get(name)
        if (stands.value if stands else None) != edit.after:
            raise ProfileConflict(f"{edit.field} was changed after version {version}")
        if edit.before is not None and name not in restored:
            raise ProfileInvalid(f"what version {version} replaced is not kept any more")
        if name in restored:
            fields[name] = restored[name]
        else:
            del fields[name]
        edits.append(Edit(field=edit.field, before=edit.after, after=edit.before))
    if before.theory is not None:
        if any(one.version > version and one.theory is not None for one in old.replaced):
            raise ProfileConflict(f"the theory was changed after version {version}")
        theory = before.theory
        edits += (Edit(field=edit.field, before=edit.after, after=edit.before) for edit in of_theory)
    update = {"fields": tuple(fields.values()), "theory": theory}
    return _next(old, profile, update, tuple(edits), by, at_ms, limits, undoes=version)


def deleted(old: ProfileRecord, *, by: By, at_ms: int, limits: ProfileLimits) -> ProfileRecord:
    """What a deleted profile leaves: versions and operations, and none of its words."""
    older = limits.deleted_history_entries - 1
    newest = old.history[-older:] if older else ()
    bare = tuple(change.model_copy(update={"edits": ()}) for change in newest)
    left = old.model_copy(
        update={
            "version": old.version + 1,
            "profile": None,
            "history": (*bare, _change(old.version + 1, at_ms, "deleted", (), by)),
            "replaced": (),
            "expires_at": at_ms // 1000 + limits.deleted_kept_s,
        }
    )
    return fitted(left, limits, old)


def evidence_words(theory: Theory) -> str | None:
    """``3 for, 1 against``; None without any."""
    if not theory.evidence:
        return None
    for_it = sum(one.side == "for" for one in theory.evidence)
    return f"{for_it} for, {len(theory.evidence) - for_it} against"


def verdict_words(theory: Theory) -> str | None:
    """The verdict, and on how many passages it rests; None without one."""
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
    *,
    at_ms: int,
    limits: ProfileLimits,
    in_theory: bool,
) -> tuple[tuple[ProfileField, ...], tuple[Edit, ...]]:
    kept: dict[str, ProfileField] = {name_key(field.name): field for field in fields}
    edits: list[Edit] = []
    named: set[str] = set()
    for name in remove:
        key = _once(named, name)
        if key not in kept:
            raise ProfileInvalid(f"there is no field {clipped(name, MAX_FIELD_NAME_CHARS)}")
        gone = kept.pop(key)
        edits += _edit(gone.name, gone.value, None)
    for one in given:
        name = line("a field's name", one.name, MAX_FIELD_NAME_CHARS)
        key = _once(named, name)
        if in_theory and key in _OF_THEORIES:
            raise ProfileInvalid(f"{name} is a part of a theory itself: no field of it can be called so")
        value = value_of(name, one.value)
        old = kept.get(key)
        if old is not None and old.value == value:
            continue
        kept[key] = ProfileField(name=old.name if old else name, value=value, proof=one.proof, changed_at_ms=at_ms)
        edits += _edit(kept[key].name, old.value if old else None, value)
    if len(kept) > max(limits.fields, len(fields)):  # more of them may stand from when the limit was another
        raise ProfileInvalid(f"a profile has {limits.fields} fields at most")
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
    by: By,
    at_ms: int,
    limits: ProfileLimits,
    *,
    undoes: int | None = None,
) -> ProfileRecord:
    if not edits and all(getattr(profile, name) == value for name, value in update.items()):
        return old
    new = profile.model_copy(update={**update, "version": old.version + 1, "changed_at_ms": at_ms})
    return _recorded(old, new, "updated", edits, by=by, limits=limits, undoes=undoes)


def _recorded(
    old: ProfileRecord | None,
    profile: Profile,
    operation: Operation,
    edits: tuple[Edit, ...],
    *,
    by: By,
    limits: ProfileLimits,
    undoes: int | None = None,
) -> ProfileRecord:
    change = _change(profile.version, profile.changed_at_ms, operation, edits, by)
    if undoes is not None:
        change = change.model_copy(update={"operation": "undone", "undoes": undoes})
    replaced = _replaced(old.profile if old else None, profile, edits)
    record = ProfileRecord(
        id=profile.id,
        version=profile.version,
        profile=profile,
        history=(*(old.history if old else ()), change),
        replaced=(*(old.replaced if old else ()), *replaced),
    )
    kept = fitted(record, limits, old)
    if by.reversibly and replaced and not kept.replaced:
        raise ProfileInvalid("the profile is too large to keep what this would replace: change fewer fields at a time")
    return kept


def _replaced(old: Profile | None, new: Profile, edits: tuple[Edit, ...]) -> tuple[Replaced, ...]:
    """What a change has taken away from a profile; empty where it has only added."""
    if old is None:
        return ()
    named = {name_key(edit.field) for edit in edits}
    fields = tuple(field for field in old.fields if name_key(field.name) in named and field not in new.fields)
    theory = old.theory if old.theory != new.theory else None
    return (Replaced(version=new.version, fields=fields, theory=theory),) if fields or theory else ()


def _change(version: int, at_ms: int, operation: Operation, edits: tuple[Edit, ...], by: By) -> Change:
    return Change(
        version=version,
        at_ms=at_ms,
        operation=operation,
        request_id=by.request_id,
        operation_id=by.operation_id,
        edits=edits,
    )
