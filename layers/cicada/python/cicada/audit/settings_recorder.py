"""Records which settings a deployment changes, as a custom resource of its stacks."""

from __future__ import annotations

import time
from collections.abc import Callable

from cicada.audit.records import record
from cicada.custom_resources import ResourceRequest
from cicada.errors import AuditUnavailable
from cicada.index.ports import ObjectStore

SETTINGS = "Custom::RecordedSettings"
"""The type of the stacks' custom resource."""
ACCESS_ATTEMPTS = 6
ACCESS_PAUSE_S = 5.0
"""A policy that was created a moment ago may not be known everywhere yet: the first write is repeated for so long."""


class SettingsRecorder:
    """Records which settings a deployment changes, as a custom resource's properties tell by digests."""

    def __init__(self, store: ObjectStore, actor: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Write to the deployment's bucket."""
        self._store = store
        self._actor = actor
        self._sleep = sleep

    def handle(self, request: ResourceRequest) -> None:
        """Carry out a request: CloudFormation makes one when a digest has changed, before what uses the settings.

        Raises:
            AuditUnavailable: it could not be recorded. CloudFormation then rolls the change back.
        """
        if request.kind == "Delete":
            return
        before, after = (each.get("Settings", {}) for each in (request.old_properties, request.properties))
        changed = {
            name: {"before": before.get(name), "after": after.get(name)}
            for name in sorted({*before, *after})
            if before.get(name) != after.get(name)
        }
        details = {"changed": changed} if request.kind == "Update" else {"deployed": after}
        for attempt in range(1, ACCESS_ATTEMPTS + 1):
            try:
                with record(self._store, "settings_changed", actor=self._actor, details=details):
                    return
            except AuditUnavailable:
                if attempt == ACCESS_ATTEMPTS:
                    raise
            self._sleep(ACCESS_PAUSE_S)
