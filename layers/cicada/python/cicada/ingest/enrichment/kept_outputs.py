"""A model's outputs, stored in the bucket by their inputs: a repeated call is found, and costs nothing.

``enriched/<digest>.json`` holds the form. The digest is of the model's id, the prompt and the form's schema: another
text, model or wording of the prompt has another object, and objects never change.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from threading import Lock

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
    """Calls made now, and their cost. Thread-safe."""

    calls: int = 0
    cost_usd: float | None = 0.0  # None once a price or a usage is unknown
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, model_id: str, usage: Usage | None, calls: int) -> None:
        """Count some calls; ``usage``: None if not reported."""
        price = cost(model_id, usage) if usage is not None and usage.reported else None
        with self._lock:
            self.calls += calls
            if calls:
                self.cost_usd = None if price is None or self.cost_usd is None else self.cost_usd + price.usd


class KeptOutputs:
    """A model whose outputs are stored; ``call_scope`` permits every call. As thread-safe as store and model."""

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

    def _key(self, prompt: Prompt, form: type[Form]) -> str:
        asked = json.dumps([self._model.model_id, prompt.system, prompt.user, form_schema(form)], sort_keys=True)
        return f"{ENRICHED}{hashlib.sha256(asked.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def fill(
        self, prompt: Prompt, form: type[Form], *, time_budget_s: float, spent: EnrichmentSpend
    ) -> tuple[Form, bool]:
        """The form for a prompt, stored or filled in now, and whether it was filled in now.

        Raises ModelError if the model did not fill it in (its cost is counted in ``spent``), and IndexUnavailable.
        """
        key = self._key(prompt, form)
        found, replaces = self._read(key, form)
        if found is not None:
            return found, False
        filled = self.fill_anew(prompt, form, time_budget_s=time_budget_s, spent=spent)
        try:
            self._store.write(key, filled.model_dump_json().encode(), replaces=replaces)
        except PreconditionFailed:  # another process has stored an equivalent output meanwhile
            logger.info("another process stored the model's output first", extra={"key": key})
        return filled, True

    def fill_anew(self, prompt: Prompt, form: type[Form], *, time_budget_s: float, spent: EnrichmentSpend) -> Form:
        """The form for a prompt, filled in now, and not stored. Raises ModelError; its cost is counted in ``spent``."""
        try:
            filled = self._model.fill(prompt, form, time_budget_s=time_budget_s, call_scope=self._call_scope)
        except ModelError as error:
            if error.usage is not None:
                spent.add(self._model.model_id, error.usage, 1)
            raise
        spent.add(self._model.model_id, filled.usage, filled.calls)
        return filled.value

    def _read(self, key: str, form: type[Form]) -> tuple[Form | None, str | None]:
        """The stored form, if it is valid, and the entity tag of the object there."""
        try:
            stored = self._store.read(key)
        except ObjectMissing:
            return None, None
        try:
            return form.model_validate_json(stored.data), stored.etag
        except ValidationError:
            logger.warning("a stored model output is damaged; calling the model again", extra={"key": key})
            return None, stored.etag
