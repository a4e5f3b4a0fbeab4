"""A model's forms, kept in the bucket by what they were asked for: whatever is asked again is found, and costs nothing.

``enriched/<digest>.json`` holds the form and what it took. The digest is of the model's id, the prompt and the form's
schema: another text, another model, or another wording of the prompt is another object, and none is ever changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic

from pydantic import ValidationError

from cicada.errors import ModelError
from cicada.index.ports import ObjectMissing, ObjectStore, PreconditionFailed
from cicada.ingest.contracts import ENRICHED
from cicada.models.ports import CallScope, Form, Prompt, StructuredModel, Unbounded, Usage
from cicada.models.prices import cost
from cicada.models.structured_output import form_schema

logger = logging.getLogger(__name__)


@dataclass
class EnrichmentSpend:
    """What models took, of calls made now; safe for several threads."""

    calls: int = 0
    cost_usd: float | None = 0.0  # None once a price or a usage is unknown
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, model_id: str, usage: Usage | None, calls: int) -> None:
        """Count some calls; ``usage`` is None where nothing was reported."""
        price = cost(model_id, usage) if usage is not None and usage.reported else None
        with self._lock:
            self.calls += calls
            if calls:
                self.cost_usd = None if price is None or self.cost_usd is None else self.cost_usd + price.usd


@dataclass(frozen=True)
class KeptOutput(Generic[Form]):
    """A form, and whether it was made now."""

    value: Form
    made: bool


class KeptOutputs:
    """A model whose outputs are kept; ``call_scope`` is asked before every call. As thread-safe as store and model."""

    def __init__(self, store: ObjectStore, model: StructuredModel, *, call_scope: CallScope | None = None) -> None:
        self._store = store
        self._model = model
        self._call_scope = call_scope or Unbounded()

    @property
    def model_id(self) -> str:
        """The model's id."""
        return self._model.model_id

    @property
    def max_tokens(self) -> int:
        """The model's longest answer."""
        return self._model.max_tokens

    def key(self, prompt: Prompt, form: type[Form]) -> str:
        """Where the form for a prompt lies."""
        asked = json.dumps([self._model.model_id, prompt.system, prompt.user, form_schema(form)], sort_keys=True)
        return f"{ENRICHED}{hashlib.sha256(asked.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def fill(
        self, prompt: Prompt, form: type[Form], *, time_budget_s: float, spent: EnrichmentSpend
    ) -> KeptOutput[Form]:
        """The form for a prompt, as it is kept, or filled in now and kept from then on.

        Raises ModelError if the model did not fill it in (what that took is counted in ``spent``), and IndexUnavailable
        if the store does not respond.
        """
        key = self.key(prompt, form)
        found, replaces = self._read(key, form)
        if found is not None:
            return KeptOutput(found, made=False)
        filled = self.fill_anew(prompt, form, time_budget_s=time_budget_s, spent=spent)
        self._keep(key, filled.model_dump_json().encode(), replaces)
        return KeptOutput(filled, made=True)

    def fill_anew(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, spent: EnrichmentSpend) -> Form:
        """The form for a prompt, filled in now whatever is kept, and not kept. Raises ModelError if the model did not
        fill it in; what that took is counted in ``spent``."""
        try:
            filled = self._model.fill(prompt, form, time_budget_s=time_budget_s, call_scope=self._call_scope)
        except ModelError as error:
            if error.usage is not None:
                spent.add(self._model.model_id, error.usage, 1)
            raise
        spent.add(self._model.model_id, filled.usage, filled.calls)
        return filled.value

    def _read(self, key: str, form: type[Form]) -> tuple[Form | None, str | None]:
        """What is kept, if it is sound, and the entity tag of what is there."""
        try:
            stored = self._store.read(key)
        except ObjectMissing:
            return None, None
        try:
            return form.model_validate_json(stored.data), stored.etag
        except ValidationError:
            logger.warning("what a model made is damaged, and is made again", extra={"key": key})
            return None, stored.etag

    def _keep(self, key: str, data: bytes, replaces: str | None) -> None:
        try:
            self._store.write(key, data, replaces=replaces)
        except PreconditionFailed:  # another one has made the same meanwhile; either will do
            logger.info("what a model made was kept by another one first", extra={"key": key})
