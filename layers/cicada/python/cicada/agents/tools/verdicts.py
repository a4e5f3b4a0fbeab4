"""``record_verdict``: a verdict is kept only with evidence that was gathered for it in this very run."""

from __future__ import annotations

from collections.abc import Mapping

from cicada.agents.ports import Actor, Shelf, Written
from cicada.agents.tools.base import DeskTool
from cicada.agents.tools.forms import RecordVerdict
from cicada.agents.tools.shown import passage_proof, profile_shown
from cicada.agents.tools.weighing import MODERATE, Weighed, gathered_for
from cicada.errors import ProfileInvalid, ToolInvalid
from cicada.profiles.record import Evidence, Side, Theory
from cicada.retrieval.ports import Limits

_NEEDED: dict[str, Side] = {"supported": "for", "contradicted": "against"}


class RecordVerdictTool(DeskTool):
    """Keeps a verdict on one of the actor's theories, with all evidence that was gathered for it."""

    form = RecordVerdict
    writes = True

    def run(self, given: RecordVerdict, actor: Actor, shelf: Shelf, _limits: Limits) -> Written:
        """See the port."""
        theory = self.desk.show(actor.subject, given.id).theory
        if theory is None:
            raise ProfileInvalid("that is no theory")
        gathered = _gathered(theory, shelf)
        cited = _cited(given, gathered)
        _check(given.verdict, cited)
        evidence = [
            Evidence(
                side=one.side,
                strength=one.strength,
                proof=passage_proof(one.source, shelf.version_of(n)),
                cited=one in cited,
            )
            for n, one in gathered.items()
            if one.side is not None
        ]
        by = self.by(given, actor)
        profile = self.desk.judge(by, given.id, given.expected_version, given.verdict, evidence)
        return Written({"recorded": profile_shown(profile, shelf)}, self.change(by, profile))


def _gathered(theory: Theory, shelf: Shelf) -> dict[int, Weighed]:
    """The evidence of this run for the theory as it stands, by number."""
    found = ((source.n, gathered_for(theory.statement, source)) for source in shelf.sources)
    gathered = {n: one for n, one in found if one is not None}
    if not gathered:
        raise ToolInvalid(
            "no evidence was gathered for this theory's statement: call gather_evidence with its id first. Where that "
            "finds nothing for it and nothing against it, the theory stays without a verdict"
        )
    return gathered


def _cited(given: RecordVerdict, gathered: Mapping[int, Weighed]) -> list[Weighed]:
    foreign = [n for n in given.citations if n not in gathered]
    if foreign:
        raise ToolInvalid(
            f"{', '.join(f'[{n}]' for n in foreign)} is no evidence that was gathered for this theory: cite "
            f"{', '.join(f'[{n}]' for n in gathered)}"
        )
    return [gathered[n] for n in dict.fromkeys(given.citations)]


def _check(verdict: str, cited: list[Weighed]) -> None:
    """A verdict needs evidence of its own side, and more than weak."""
    side = _NEEDED.get(verdict)
    if side is None:
        return
    strengths = [one.strength for one in cited if one.side == side]
    if not strengths:
        raise ToolInvalid(f"{verdict} needs evidence {side} the theory among its citations")
    if max(strengths) < MODERATE:
        raise ToolInvalid(f"all evidence {side} the theory that is cited is weak: the verdict can only be open")
