"""``give_verdict`` and ``record_verdict``: a verdict rests on passages that were judged as evidence in this run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cicada.agents.ports import Actor, Judged, Shelf, TheoryVerdict, Written
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.forms import GiveVerdict, RecordVerdict
from cicada.agents.tools.shown import passage_proof, profile_shown
from cicada.agents.tools.weighing import MODERATE, Weighed, evidence_of, gathered_for, strength_words
from cicada.errors import ProfileInvalid, ToolInvalid
from cicada.profiles.record import Evidence, Side
from cicada.protocol.events import Source, VerdictPassage
from cicada.retrieval.ports import Limits

_NEEDED: dict[str, Side] = {"supported": "for", "contradicted": "against"}


class GiveVerdictTool(DeskTool):
    """Gives the verdict on the theory of the question, and keeps nothing."""

    form = GiveVerdict
    in_worker = True

    def run(self, given: GiveVerdict, _actor: Actor, shelf: Shelf, _limits: Limits) -> Judged:
        """See the port."""
        verdict = _among(given, evidence_of(shelf.sources))
        return Judged(_told(verdict), verdict)


class RecordVerdictTool(DeskTool):
    """Gives the verdict on one of the actor's theories, and keeps it with all evidence that was gathered for it."""

    form = RecordVerdict
    writes = in_worker = True

    def run(self, given: RecordVerdict, actor: Actor, shelf: Shelf, _limits: Limits) -> Written:
        """See the port."""
        theory = self.desk.show(actor.subject, given.id).theory
        if theory is None:
            raise ProfileInvalid("that is no theory")
        gathered = gathered_for(theory.statement, shelf.sources)
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
                proof=passage_proof(one.source, shelf.version_of(n)),
                cited=n in cited,
            )
            for n, one in gathered.items()
            if one.side is not None
        ]
        by = self.by(given, actor)
        profile = self.desk.judge(by, given.id, given.expected_version, given.verdict, evidence)
        return self.written({"recorded": profile_shown(profile, shelf)}, by, profile, verdict)


def not_given(sources: Sequence[Source]) -> TheoryVerdict | None:
    """What is shown where an agent has given no verdict; None where nothing was found that would bear on one."""
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


def _among(given: GiveVerdict, evidence: Mapping[str, Mapping[int, Weighed]]) -> TheoryVerdict:
    """The verdict over evidence that was gathered for one statement, whichever."""
    refusals = []
    for gathered in reversed([*evidence.values()] or [{}]):
        try:
            return _checked(given, gathered)
        except ToolInvalid as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _checked(given: GiveVerdict, gathered: Mapping[int, Weighed]) -> TheoryVerdict:
    """A verdict needs evidence of its own side, and more than weak; what is named must stand on the side that is said.

    Raises:
        ToolInvalid: it is not so; the message tells the model what it can name.
    """
    for side, numbers in (("for", given.passages_for), ("against", given.passages_against)):
        judged = [n for n, one in gathered.items() if one.side == side]
        wrong = [n for n in numbers if n not in judged]
        if wrong:
            raise ToolInvalid(
                f"{_listed(wrong)}: not gathered as evidence {side} the theory; that is {_listed(judged)}"
            )
    needed = _NEEDED.get(given.verdict)
    if needed is not None:
        named = given.passages_for if needed == "for" else given.passages_against
        if not named:
            raise ToolInvalid(f"{given.verdict} needs passages {needed} the theory")
        if max(gathered[n].strength for n in named) < MODERATE:
            raise ToolInvalid(f"every passage named {needed} the theory is weak: the verdict can only be open")
    return TheoryVerdict(
        given.verdict,
        _side({n: gathered[n] for n in given.passages_for}, "for"),
        _side({n: gathered[n] for n in given.passages_against}, "against"),
    )


def _side(gathered: Mapping[int, Weighed], side: Side) -> tuple[VerdictPassage, ...]:
    return tuple(
        VerdictPassage(n=n, strength=strength_words(one.strength)) for n, one in gathered.items() if one.side == side
    )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(f"[{n}]" for n in numbers) or "none"


def _told(verdict: TheoryVerdict) -> dict[str, Any]:
    return {"verdict": verdict.verdict, "note": "the user is shown it, with its passages: do not repeat it"}
