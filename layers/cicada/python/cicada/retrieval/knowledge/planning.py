"""What is asked of each collection: the sections that its intentions need, and those in which entities were found."""

from __future__ import annotations

from collections.abc import Sequence

from cicada.retrieval.knowledge.contracts import Catalogue, Choice, CollectionPlan, Place


def plan_queries(
    choices: Sequence[Choice], places: Sequence[Place], catalogue: Catalogue
) -> tuple[CollectionPlan, ...]:
    """Plan one query a collection, those that were chosen surest first, then those that only an entity leads to.

    A choice of what no declaration of the catalogue has is left out: a version that was published since may have
    another one.
    """
    plans: list[CollectionPlan] = []
    known = [one for one in choices if sections_of(one, catalogue)]
    ranked = sorted(known, key=lambda one: -one.confidence)
    for collection in dict.fromkeys([*(one.collection for one in ranked), *(one.collection for one in places)]):
        if catalogue.find(collection) is None:
            continue
        of_collection = _each_once([one for one in ranked if one.collection == collection])
        found = tuple(one for one in places if one.collection == collection)
        needed = [section for one in of_collection for section in sections_of(one, catalogue)]
        sections = tuple(dict.fromkeys([*needed, *(one.section for one in found)]))
        plans.append(CollectionPlan(collection, of_collection, sections, found))
    return tuple(plans)


def sections_of(choice: Choice, catalogue: Catalogue) -> tuple[str, ...]:
    """The sections that a choice's intention needs; none where the catalogue does not have it."""
    declared = catalogue.find(choice.collection)
    intention = None if declared is None else declared.intention(choice.intention)
    return () if intention is None else tuple(dict.fromkeys(intention.sections))


def _each_once(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """The surest choice of each intention; they come surest first."""
    best: dict[str, Choice] = {}
    for one in choices:
        best.setdefault(one.intention, one)
    return tuple(best.values())
