"""Tools that keep what users suspect, and ``give_verdict`` and ``record_verdict``, which rest on judged passages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, ProfileWritten, SourceRegistry, TheoryVerdict, VerdictGiven
from cicada.agents.tools.base import ProfileTool, note_of, scope_of
from cicada.agents.tools.evidence import MODERATE, WeighedPassage, evidence_of, statement_named, strength_words
from cicada.agents.tools.inputs import GiveVerdict, ListTheories, RecordVerdict, RefineTheory, StateTheory
from cicada.agents.tools.shown import MAX_TOLD, moment, numbered, passage_proof, profile_shown, theory_source
from cicada.errors import ProfileConflict, ProfileInvalid, ToolInvalid
from cicada.profiles.changes import By, Stated
from cicada.profiles.heads import StoredHead
from cicada.profiles.record import Evidence, Profile, Side
from cicada.profiles.rules import MAX_NAME_CHARS, claim_of, clipped, profile_id
from cicada.protocol.events import Source, VerdictPassage
from cicada.retrieval.ports import SearchLimits
from cicada.text.words import foreign_words, quotes

MAX_CITED = 12
"""Listed theories that can be cited: the registry has room for 40 sources, and evidence needs most of it."""
_DIGEST_CHARS = 10


class ListTheoriesTool(ProfileTool):
    """Lists the actor's theories."""

    form = ListTheories

    def run(
        self, _given: ListTheories, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> Mapping[str, Any]:
        """See the port. The first theories are sources, as notes; the rest leave room for evidence."""
        heads = self.profile_service.list(actor.subject, "theory")
        return {"theories": [_listed(head, registry, cited=at < MAX_CITED) for at, head in enumerate(heads)]}


class StateTheoryTool(ProfileTool):
    """Keeps a theory of the actor's."""

    form = StateTheory
    writes = in_worker = True

    def run(self, given: StateTheory, actor: Actor, registry: SourceRegistry, _limits: SearchLimits) -> ProfileWritten:
        """See the port."""
        _refuse_unquoted(given, actor)
        scope_of(actor, episodes=given.episodes)
        by = self.by(given, actor)
        profile = self._filed(by, Stated(given.statement, note_of(actor), given.episodes))
        return self.written({"stated": profile_shown(profile, registry, actor.readable)}, by, profile)

    def _filed(self, by: By, stated: Stated) -> Profile:
        """Keep it under its statement, or a distinct name where the theory of that name has been refined since."""
        name, apart = theory_name(stated.statement), theory_name(stated.statement, by.operation_id)
        if self.profile_service.has_done(by, profile_id("theory", apart)):
            name = apart
        try:
            return self.profile_service.create(by, "theory", name, stated=stated)
        except ProfileConflict:
            claim = claim_of(stated.statement)
            for head in self.profile_service.list(by.subject, "theory"):
                if head.statement is not None and claim_of(head.statement) == claim:
                    raise ProfileConflict(
                        f"a theory with this statement already exists: id {head.id}, version {head.version}"
                    ) from None
        return self.profile_service.create(by, "theory", apart, stated=stated)


class RefineTheoryTool(ProfileTool):
    """Replaces the statement of one of the actor's theories."""

    form = RefineTheory
    writes = in_worker = True

    def run(self, given: RefineTheory, actor: Actor, registry: SourceRegistry, _limits: SearchLimits) -> ProfileWritten:
        """See the port."""
        old = self.profile_service.show(actor.subject, given.id).theory
        if old is None:
            raise ProfileInvalid("only a theory has a statement")
        _refuse_unquoted(given, actor, old.statement)
        stated = Stated(given.statement, note_of(actor), old.episodes)
        by = self.by(given, actor)
        profile = self.profile_service.update(by, given.id, given.expected_version, stated=stated)
        return self.written({"refined": profile_shown(profile, registry, actor.readable)}, by, profile)


def theory_name(statement: str, apart: str = "") -> str:
    """A theory's name: its statement, with a digest where that is cut or must differ from another's by ``apart``.

    The name stays when the statement is refined.
    """
    name = " ".join(statement.split()).rstrip(".!?")
    if len(name) <= MAX_NAME_CHARS and not apart:
        return name
    digest = hashlib.sha256(f"{claim_of(statement)}{apart}".encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{clipped(name, MAX_NAME_CHARS - len(digest) - 2)} #{digest}"


def _refuse_unquoted(given: StateTheory | RefineTheory, actor: Actor, *kept: str) -> None:
    """Raise ToolInvalid unless the statement's words are in the user's message, or kept already."""
    if not any(quotes(said, given.quote) for said in actor.said):
        raise ToolInvalid("the user's message does not have the quote: copy its words exactly")
    unsaid = foreign_words(given.statement, given.quote, *kept)
    if unsaid:
        raise ToolInvalid(f"the quote does not say {', '.join(unsaid[:MAX_TOLD])}: keep the theory in the user's words")


def _listed(head: StoredHead, registry: SourceRegistry, *, cited: bool) -> dict[str, Any]:
    number = numbered(registry, theory_source(head)) if cited else None
    return {
        "id": head.id,
        "version": head.version,
        "statement": head.statement,
        **({} if number is None else {"citation": number}),
        "episodes": list(head.episodes),
        "evidence": head.evidence,
        "verdict": head.verdict,
        "changed": moment(head.changed_at_ms),
    }


_NEEDED: dict[str, Side] = {"supported": "for", "contradicted": "against"}


class GiveVerdictTool(ProfileTool):
    """Gives the verdict on the theory of the question, and keeps nothing."""

    form = GiveVerdict
    in_worker = True

    def run(self, given: GiveVerdict, _actor: Actor, registry: SourceRegistry, _limits: SearchLimits) -> VerdictGiven:
        """See the port."""
        verdict = _among(given, evidence_of(registry.sources))
        told = {"verdict": verdict.verdict, "note": "the user is shown it, with its passages: do not repeat it"}
        return VerdictGiven(told, verdict)


class RecordVerdictTool(ProfileTool):
    """Gives the verdict on one of the actor's theories, and keeps it with all evidence that was gathered for it."""

    form = RecordVerdict
    writes = in_worker = True

    def run(
        self, given: RecordVerdict, actor: Actor, registry: SourceRegistry, _limits: SearchLimits
    ) -> ProfileWritten:
        """See the port."""
        theory = self.profile_service.show(actor.subject, given.id).theory
        if theory is None:
            raise ProfileInvalid("this profile is not a theory")
        gathered = evidence_of(registry.sources).get(statement_named(theory.statement), {})
        if not gathered:
            raise ToolInvalid(
                "no evidence was gathered for this theory's statement: call gather_evidence with its id first. Where "
                "that finds nothing for it and nothing against it, the theory stays without a verdict"
            )
        verdict = _checked(given, gathered)
        cited = {one.n for one in (*verdict.for_, *verdict.against)}
        evidence = [
            Evidence(
                side=one.side,
                strength=one.strength,
                proof=passage_proof(one.source, registry.version_of(n)),
                cited=n in cited,
            )
            for n, one in gathered.items()
            if one.side is not None
        ]
        by = self.by(given, actor)
        profile = self.profile_service.judge(by, given.id, given.expected_version, given.verdict, evidence)
        return self.written({"recorded": profile_shown(profile, registry, actor.readable)}, by, profile, verdict)


def not_given(sources: Sequence[Source]) -> TheoryVerdict | None:
    """The open verdict of an agent that gave none; None without evidence."""
    evidence = evidence_of(sources)
    if not evidence:
        return None
    gathered = max(evidence.values(), key=len)
    return TheoryVerdict("open", _side(gathered, "for"), _side(gathered, "against"), given=False)


def verdict_line(verdict: TheoryVerdict) -> str:
    """A verdict as the answer's text ends with it."""
    if not verdict.given:
        return "Verdict: open. The agent gave none."
    return f"Verdict: {verdict.verdict}. Passages for it: {len(verdict.for_)}; against it: {len(verdict.against)}."


def _among(given: GiveVerdict, evidence: Mapping[str, Mapping[int, WeighedPassage]]) -> TheoryVerdict:
    """The verdict on any one statement with gathered evidence."""
    refusals = []
    for gathered in reversed([*evidence.values()] or [{}]):
        try:
            return _checked(given, gathered)
        except ToolInvalid as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _checked(given: GiveVerdict, gathered: Mapping[int, WeighedPassage]) -> TheoryVerdict:
    """A verdict needs evidence of its own side, and more than weak; named passages must be of the side that is said.

    Raises ToolInvalid with advice for the model.
    """
    named: dict[Side, tuple[int, ...]] = {"for": given.passages_for, "against": given.passages_against}
    for side, numbers in named.items():
        _check_side(side, numbers, gathered)
    if (needed := _NEEDED.get(given.verdict)) is not None:
        if not named[needed]:
            raise ToolInvalid(f"{given.verdict} needs passages {needed} the theory")
        if max(gathered[n].strength for n in named[needed]) < MODERATE:
            raise ToolInvalid(f"every passage named {needed} the theory is weak: the verdict can only be open")
    shown = {side: _side({n: gathered[n] for n in numbers}, side) for side, numbers in named.items()}
    return TheoryVerdict(given.verdict, shown["for"], shown["against"])


def _check_side(side: Side, numbers: Sequence[int], gathered: Mapping[int, WeighedPassage]) -> None:
    judged = [n for n, one in gathered.items() if one.side == side]
    wrong = [n for n in numbers if n not in judged]
    if wrong:
        raise ToolInvalid(f"{_numbers(wrong)}: not gathered as evidence {side} the theory; that is {_numbers(judged)}")


def _side(gathered: Mapping[int, WeighedPassage], side: Side) -> tuple[VerdictPassage, ...]:
    return tuple(
        VerdictPassage(n=n, strength=strength_words(one.strength)) for n, one in gathered.items() if one.side == side
    )


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(f"[{n}]" for n in numbers) or "none"
