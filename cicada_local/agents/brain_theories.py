"""What a model with the theory tools does next, wish by wish."""

from __future__ import annotations

from collections.abc import Callable

from cicada.profiles.rules import claim_of
from cicada_local.agents.brain_answers import evidence_told, failure_told, history_told, verdict_given
from cicada_local.agents.brain_memory import Record
from cicada_local.agents.brain_situation import MOST_TRIES, Situation, ask, weighed
from cicada_local.agents.brain_words import Deed
from cicada_local.agents.turns import Step


def _state(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    theory = _stated(situation) or next(
        (record for record in _theories(situation) if claim_of(record.name) == claim_of(wish.fact)), None
    )
    if theory is None and situation.offers("state_theory") and situation.tries("state_theory") < 1:
        return situation.call("state_theory", statement=wish.fact, quote=wish.fact)
    known = {"id": theory.id} if theory else {"statement": wish.fact}
    gathered = [made for made in memory.calls("gather_evidence") if theory is None or dict(made.use.given) == known]
    if not gathered and situation.offers("gather_evidence"):
        return situation.call("gather_evidence", **known)  # what was gathered for other words is no evidence for these
    return _judged(situation, theory, wish.fact)


def _refine(situation: Situation) -> Step:
    wish, memory = situation.wish, situation.memory
    if not situation.offers("refine_theory"):
        return ask(situation)
    done = memory.last("refine_theory")
    if done is not None and not done.result.failed:
        theory = next((record for record in memory.records if record.id == done.use.given.get("id")), None)
        before = memory.made.index(done)
        if situation.offers("gather_evidence") and not any(
            made.use.name == "gather_evidence" for made in memory.made[before:]
        ):
            return situation.call("gather_evidence", id=done.use.given.get("id"))
        return _judged(situation, theory, wish.fact)
    if situation.tries("refine_theory") >= MOST_TRIES:
        return Step(failure_told(memory, "refine that theory"))
    meant = _theory(situation, wish.name) or _only(situation)
    if (meant is None or meant.version is None or situation.stale("refine_theory")) and situation.offers(
        "list_theories"
    ):
        looked = memory.calls("list_theories")
        if not looked or situation.stale("refine_theory"):
            return situation.call("list_theories")
    if meant is None:
        return Step("I do not know which theory you mean: name it by some of its words.")
    given = {"statement": wish.fact, "quote": wish.fact}
    return situation.call("refine_theory", id=meant.id, expected_version=meant.version, **given)


def theory_deleted(situation: Situation) -> Step:
    """Delete the theory that is meant. What must be said for that is the tool's to tell."""
    memory = situation.memory
    done = memory.last("delete_profile")
    if done is not None and not done.result.failed:
        gone = next((record.name for record in memory.records if record.id == done.use.given.get("id")), "")
        return Step(f"Confirm it, and your theory that {gone.rstrip('.')} is deleted.")
    if situation.tries("delete_profile") >= MOST_TRIES:
        return Step(failure_told(memory, "delete that theory"))
    meant = _kept(situation, "delete_profile")
    if isinstance(meant, Step):
        return meant
    return situation.call("delete_profile", id=meant.id, expected_version=meant.version)


def theory_history(situation: Situation) -> Step:
    """Tell what changed in the theory that is meant."""
    memory = situation.memory
    told = memory.last("profile_history")
    if told is not None and told.result.failed:
        return Step(failure_told(memory, "look up what changed in that theory"))
    meant = _kept(situation, "profile_history")
    if isinstance(meant, Step):
        return meant
    if told is not None:
        return Step(history_told(f"theory that {meant.name.rstrip('.')}", told.result.value))
    return situation.call("profile_history", id=meant.id)


def _kept(situation: Situation, doing: str) -> Record | Step:
    """The theory of the user's words, or the only one; else a step to see which there are, or to say that none fits."""
    name, memory = situation.wish.name, situation.memory
    lists = next((tool for tool in ("list_theories", "list_profiles") if situation.offers(tool)), "")
    meant = memory.record(name, ("theory",)) if name else _only(situation)
    if meant is not None and meant.version is not None and not situation.stale(doing):
        return meant
    if lists and (situation.stale(doing) or not memory.calls(lists)):
        return situation.call(lists)
    return Step(f"You keep no theory about {name}." if name else "I do not know which theory you mean: name it.")


def _theory(situation: Situation, words: str) -> Record | None:
    """The theory whose words are these."""
    return situation.memory.record(words, ("theory",)) if words and _theories(situation) else None


def _stated(situation: Situation) -> Record | None:
    """The theory that was stated just now."""
    made = situation.memory.last("state_theory")
    return next(reversed(_theories(situation)), None) if made is not None and not made.result.failed else None


def _theories(situation: Situation) -> list[Record]:
    return [record for record in situation.memory.records if record.kind in ("", "theory")]


def _only(situation: Situation) -> Record | None:
    theories = _theories(situation)
    return theories[0] if len(theories) == 1 else None


def _judged(situation: Situation, theory: Record | None, statement: str) -> Step:
    """Record the verdict of a theory that is kept, if there is evidence, else give it, and tell all."""
    memory = situation.memory
    judgements = memory.calls("record_verdict")
    current = next((record for record in memory.records if theory and record.id == theory.id), theory)
    open_to_try = not judgements or (judgements[-1].result.failed and len(judgements) < MOST_TRIES)
    sided = any(found.side for found in memory.gathered)
    if sided and current is not None and situation.offers("record_verdict"):
        if not open_to_try:
            return Step(evidence_told(statement, memory.gathered))
        if situation.stale("record_verdict") and situation.offers("list_theories"):
            return situation.call("list_theories")
        return situation.call(
            "record_verdict", id=current.id, expected_version=current.version, **verdict_given(memory.gathered)
        )
    return weighed(situation, statement)


THEORY_DEEDS: dict[Deed, Callable[[Situation], Step]] = {"state": _state, "refine": _refine}
