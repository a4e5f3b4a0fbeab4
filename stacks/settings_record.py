"""What a deployment records of the settings that it was made with: enough to tell which have changed since."""

from __future__ import annotations

import hashlib
import json

from stacks.settings import Settings

DIGEST_CHARS = 6
"""Of each setting's digest: it tells a change, and need not withstand anybody who wants to hide one."""


def record(settings: Settings) -> dict[str, str]:
    """A digest of each setting, or group of settings, by its name in ``cdk.json``."""
    values = settings.model_dump(mode="json", by_alias=True)
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:DIGEST_CHARS]
        for name, value in values.items()
    }


def written(recorded: dict[str, str]) -> str:
    """A record as an output of a stack has it: ``agents=1f2e3d auth=…``."""
    return " ".join(f"{name}={digest}" for name, digest in sorted(recorded.items()))
