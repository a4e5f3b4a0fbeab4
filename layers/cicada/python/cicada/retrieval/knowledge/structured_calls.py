"""The forms that a model fills in for a question, and how they are filled in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from cicada.errors import OutOfTime
from cicada.models.ports import Form, Prompt, StructuredModel
from cicada.retrieval.knowledge.contracts import Catalogue
from cicada.retrieval.pipelines.stages import OpenUse, most_of
from cicada.retrieval.ports import SearchLimits

FILLING_MAX_TOKENS = 512
"""The longest answer; six choices or a dozen names take less than half of it."""
FILLING_TIME_BUDGET_S = 8.0
"""Seconds for one form, retries included: the user waits for it before the first word."""
BETWEEN = "/"
"""Separates a collection and an intention in a form; no name contains it."""

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, description="0 to 1")]


class Need(BaseModel):
    """A collection that the question needs, and what it wants of it."""

    model_config = ConfigDict(frozen=True)

    need: str
    """``<collection>/<intention>``; in the form of a catalogue one of its own."""
    confidence: Confidence


class Selection(BaseModel):
    """What the question needs; nothing for small talk."""

    needs: tuple[Need, ...]


class NameFound(BaseModel):
    """A name in the question."""

    name: str = Field(description="exactly as the question writes it, without articles and possessives")
    confidence: Confidence


class NamesFound(BaseModel):
    """Everything that the question names; nothing if it names nothing."""

    names: list[NameFound]


def selection_form(catalogue: Catalogue) -> type[Selection]:
    """The form of a selection, restricted to a catalogue's collections and intentions.

    A collection and its intention are one value, so that no other pair can be chosen. Raises ValueError for an empty
    catalogue.
    """
    pairs = tuple(
        f"{one.collection}{BETWEEN}{intention.name}" for one in catalogue.collections for intention in one.intentions
    )
    if not pairs:
        raise ValueError("no collection has a declaration")
    need = create_model(
        "Need",
        __base__=Need,
        __doc__=Need.__doc__,
        need=(cast("Any", Literal[pairs]), Field(description="collection/intention")),
    )
    form = create_model("Selection", __base__=Selection, __doc__=Selection.__doc__, needs=(tuple[need, ...], ...))
    return cast("type[Selection]", form)


def fill_form(
    model: StructuredModel,
    prompt: Prompt,
    form: type[Form],
    purpose: str,
    limits: SearchLimits,
    *,
    time_budget_s: float = FILLING_TIME_BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> Form:
    """Have a model fill in a form within ``limits``, which note its use in any case.

    Raises ModelError, BudgetSpent or OutOfTime without a call or time left, or Stopped.
    """
    left_s = limits.time_left_s()
    if left_s <= 0:
        raise OutOfTime(f"no time left for {purpose}")
    use = OpenUse(purpose, model.model_id, clock, call_scope=limits, most=most_of(prompt, model.max_tokens))
    try:
        with use:
            filled = model.fill(prompt, form, time_budget_s=min(left_s, time_budget_s), call_scope=use)
            use.took(filled.usage)
    finally:
        limits.note(use.account())
    return filled.value
