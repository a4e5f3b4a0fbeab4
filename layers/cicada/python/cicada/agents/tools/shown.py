"""Passages and notes as numbered sources, and proofs made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from cicada.agents.ports import Actor, SourceRegistry
from cicada.agents.tools.base import note_of
from cicada.agents.tools.inputs import Fact
from cicada.corpus.passages import NoteLocator
from cicada.errors import ToolInvalid
from cicada.profiles.heads import StoredHead
from cicada.profiles.record import Change, Edit, NoteProof, PassageProof, Profile, Proof
from cicada.profiles.rules import clipped, kept_place, name_key
from cicada.protocol.events import Reason, Source
from cicada.retrieval.ports import Hit
from cicada.rights import Readable
from cicada.text.words import foreign_words, quotes

NOTES = "profiles"
"""The collection of notes; not one of the corpus."""
MAX_TEXT_CHARS = 1_000
"""Of a passage, as much as a proof can keep."""
MAX_CONTEXT_CHARS = 600
MAX_CHANGE_CHARS = 600
MAX_TOLD = 5
"""Words that a refusal names."""
_UNNUMBERED = 1
"""The registry gives the numbers."""
_SEARCHING = frozenset({"search_script", "gather_evidence"})
"""Tools that return passages from the current index."""


def passage_source(hit: Hit, *why: Reason) -> Source:
    """A passage that a search has found."""
    passage = hit.passage
    text = clipped(passage.text, MAX_TEXT_CHARS)
    context = clipped(passage.context, MAX_CONTEXT_CHARS)
    return Source(
        n=_UNNUMBERED,
        passage_id=passage.id,
        collection=passage.collection,
        locator=passage.locator,
        score=min(1.0, max(0.0, hit.score)),
        text=text,
        context=context if passage.context != passage.text else None,
        clipped=text != passage.text,
        why=why,
    )


def proof_source(profile: Profile, field: str, value: str, proof: Proof, *, score: float = 1.0) -> Source:
    """The proof of a profile's fact as a source."""
    match proof:
        case PassageProof():
            return Source(
                n=_UNNUMBERED,
                passage_id=proof.passage_id,
                collection=proof.collection,
                locator=proof.locator,
                score=score,
                text=proof.quote,
                origin="profile",
            )
        case NoteProof():
            said = "" if name_key(proof.words) == name_key(value) else f"\n“{proof.words}”"
            place = NoteLocator(profile_id=profile.id, profile=profile.name, field=field, noted_at_ms=proof.said_at_ms)
            return _note(f"note:{profile.id}:{name_key(field)}", place, f"{place.lead()}{value}{said}", score)


def theory_source(head: StoredHead) -> Source:
    """A listed theory as a note, with its verdict on record."""
    record = f"\nverdict on record: {head.verdict}" if head.verdict else ""
    place = NoteLocator(
        profile_id=head.id, profile=head.name, field="statement", noted_at_ms=head.said_at_ms or head.changed_at_ms
    )
    return _note(f"note:{head.id}:statement", place, f"{head.statement}{record}")


def change_source(profile: Profile, change: Change) -> Source:
    """One change in a profile's history: version, time, and every value before and after."""
    told = "; ".join(_edit_words(edit) for edit in change.edits) or change.operation
    field = f"version {change.version}"
    place = NoteLocator(profile_id=profile.id, profile=profile.name, field=field, noted_at_ms=change.at_ms)
    text = clipped(f"Version {change.version}, {moment(change.at_ms)}: {told}", MAX_CHANGE_CHARS)
    return _note(f"change:{profile.id}:{change.version}", place, text)


def _note(note_id: str, place: NoteLocator, text: str, score: float = 1.0) -> Source:
    return Source(
        n=_UNNUMBERED, passage_id=note_id, collection=NOTES, locator=place, score=score, text=text, origin="profile"
    )


def _edit_words(edit: Edit) -> str:
    if edit.before is None:
        return f"{edit.field}: “{edit.after}” was added"
    if edit.after is None:
        return f"{edit.field}: “{edit.before}” was removed"
    return f"{edit.field}: “{edit.before}” became “{edit.after}”"


def shown(source: Source, n: int | None) -> dict[str, Any]:
    """A source as the model reads it."""
    context = {} if source.context is None else {"context": source.context}
    return {"n": n, "where": source.locator.label(), "text": source.text, **context}


def register(
    sources: Sequence[Source], registry: SourceRegistry, version_of: Callable[[Source], str]
) -> Iterator[tuple[int, Source]]:
    """Register a search's sources while there is room, each with its number. Raises ToolInvalid without any room."""
    for place, source in enumerate(sources):
        try:
            n = registry.put(source, version_of(source))
        except ToolInvalid:
            if place == 0:
                raise
            return
        yield n, source


def numbered(registry: SourceRegistry, source: Source) -> int | None:
    """The source's number; None without room, so that it can be read and not cited."""
    try:
        return registry.put(source)
    except ToolInvalid:
        return None


def head_shown(profile: Profile | StoredHead) -> dict[str, Any]:
    """What every result says of a profile."""
    return {"id": profile.id, "kind": profile.kind, "name": profile.name, "version": profile.version}


def may_be_shown(proof: Proof, readable: Readable) -> bool:
    """Whether a proof is a note, or a passage that may be read now."""
    return not isinstance(proof, PassageProof) or readable.allows(proof.collection)


def profile_shown(profile: Profile, registry: SourceRegistry, readable: Readable) -> dict[str, Any]:
    """A profile as the model reads it: each fact with the number of its source.

    Facts are the user's own record, so they are always shown; a passage that the user can no longer read is not.
    """
    fields = []
    for field in profile.fields:
        source = proof_source(profile, field.name, field.value, field.proof)
        n = numbered(registry, source) if may_be_shown(field.proof, readable) else None
        told = "a passage" if isinstance(field.proof, PassageProof) else "the user"
        fields.append({"field": field.name, "value": field.value, "citation": n, "from": told})
    return {
        **head_shown(profile),
        "changed": moment(profile.changed_at_ms),
        **_theory_shown(profile, registry, readable),
        "fields": fields,
    }


def _theory_shown(profile: Profile, registry: SourceRegistry, readable: Readable) -> dict[str, Any]:
    theory = profile.theory
    if theory is None:
        return {}
    statement = numbered(registry, proof_source(profile, "statement", theory.statement, theory.proof))
    kept = []
    evidence = [one for one in theory.evidence if may_be_shown(one.proof, readable)]
    for one in evidence:
        source = proof_source(profile, "evidence", "", one.proof, score=one.strength)
        kept.append({"side": one.side, "strength": one.strength, **shown(source, numbered(registry, source))})
    judgement = theory.judgement
    return {
        "statement": theory.statement,
        "statement_citation": statement,
        "episodes": list(theory.episodes),
        "evidence_kept": kept,
        "verdict": None
        if judgement is None
        else {
            "verdict": judgement.verdict,
            "citations": [told["n"] for one, told in zip(evidence, kept, strict=True) if one.cited],
            "recorded": moment(judgement.at_ms),
        },
    }


def proof_of(fact: Fact, actor: Actor, registry: SourceRegistry) -> Proof:
    """The proof of a fact that a model wants to keep: a registered passage, or the user's own message.

    It must contain the quote word by word, and the quote the value's words. Raises ToolInvalid with advice for the
    model.
    """
    added = foreign_words(fact.value, fact.quote)
    if added:
        raise ToolInvalid(f"{fact.field}: the quote does not say {', '.join(added[:MAX_TOLD])}: use its words alone")
    if fact.citation is None:
        if not any(quotes(said, fact.quote) for said in actor.said):
            raise ToolInvalid(
                f"{fact.field}: the user's message does not have the quote: copy its words exactly, or cite the "
                "passage that has them"
            )
        return note_of(actor)
    source = cited(fact.citation, registry)
    searched = source.origin != "profile" or any(reason.name in _SEARCHING for reason in source.why)
    if isinstance(source.locator, NoteLocator) or not searched:
        raise ToolInvalid(
            f"{fact.field}: [{fact.citation}] is a stored profile: search for the passage itself and cite it"
        )
    if not quotes(source.text, fact.quote):
        raise ToolInvalid(
            f"{fact.field}: passage [{fact.citation}] does not have the quote: copy its words exactly, or cite another"
        )
    return passage_proof(source, registry.version_of(fact.citation))


def passage_proof(source: Source, index_version: str) -> PassageProof:
    """A passage as a proof keeps it. Raises ToolInvalid for a note."""
    if isinstance(source.locator, NoteLocator):
        raise ToolInvalid(f"[{source.n}] is a note, not a passage")
    return PassageProof(
        passage_id=source.passage_id,
        collection=source.collection,
        locator=kept_place(source.locator),
        quote=clipped(source.text),
        index_version=index_version,
    )


def cited(n: int, registry: SourceRegistry) -> Source:
    """The source of a number. Raises ToolInvalid."""
    found = next((source for source in registry.sources if source.n == n), None)
    if found is None:
        raise ToolInvalid(f"unknown passage [{n}]: cite one that a tool has returned")
    return found


def moment(at_ms: int) -> str:
    """A time as people read it: UTC, to the minute."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
