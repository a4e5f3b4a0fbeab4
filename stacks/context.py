"""Where the settings come from: ``cicada`` in the CDK's context, or the file that ``-c settings=<path>`` names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from stacks.access_settings import AccessSettings
from stacks.agents_settings import AgentsSettings
from stacks.answer_settings import (
    Budget,
    Cache,
    CitationsSettings,
    ConversationSettings,
    FeedbackSettings,
    KnowledgeSettings,
    ModelsSettings,
    RecoverySweepSettings,
    Retrieval,
)
from stacks.auth_settings import AuthSettings
from stacks.guardrail_settings import GuardrailSettings
from stacks.http_settings import HttpAccessSettings
from stacks.ingest_settings import Ingest
from stacks.objectives_settings import ObjectivesSettings
from stacks.page_settings import PageSettings
from stacks.profiles_settings import ProfilesSettings
from stacks.replication_settings import Replication
from stacks.settings import ContextInvalid, DeploymentLimits, Settings, Throttling
from stacks.uploads_settings import UploadsSettings
from stacks.usage_settings import UsageLimitsSettings

CONTEXT_KEY = "cicada"
"""Where the settings lie in ``cdk.json``, below ``context``."""

FILE_KEY = "settings"
"""The context key that names a file to read them from instead."""

_GROUPS: dict[str, type[BaseModel]] = {
    "auth": AuthSettings,
    "access": AccessSettings,
    "models": ModelsSettings,
    "retrieval": Retrieval,
    "knowledge": KnowledgeSettings,
    "agents": AgentsSettings,
    "profiles": ProfilesSettings,
    "page": PageSettings,
    "http": HttpAccessSettings,
    "budget": Budget,
    "citations": CitationsSettings,
    "guardrail": GuardrailSettings,
    "cache": Cache,
    "conversation": ConversationSettings,
    "feedback": FeedbackSettings,
    "recovery": RecoverySweepSettings,
    "ingest": Ingest,
    "uploads": UploadsSettings,
    "throttling": Throttling,
    "limits": DeploymentLimits,
    "usage_limits": UsageLimitsSettings,
    "objectives": ObjectivesSettings,
    "replication": Replication,
}

_COMPLAINTS = {
    "extra_forbidden": "there is no such setting",
    "model_type": "must be an object with settings of its own, as in cdk.json",
}
"""What is said in place of pydantic's own words, by the type of its error."""


def read(context: Mapping[str, Any], *, root: Path) -> Settings:
    """Read the settings.

    Args:
        context: the CDK's context.
        root: the folder that a relative ``-c settings=<path>`` starts from.

    Raises:
        SettingsInvalid: with a line for each thing that is wrong.
    """
    path = context.get(FILE_KEY)
    if path is None:
        return parse(context.get(CONTEXT_KEY, {}), source=f"cdk.json, context.{CONTEXT_KEY}")
    try:
        document = json.loads((root / str(path)).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContextInvalid(f"{path}: {error}") from error
    return parse(document, source=str(path))


def parse(document: object, *, source: str) -> Settings:
    """Read the settings from plain data; ``source`` says in errors where they came from.

    Raises:
        SettingsInvalid: with a line for each thing that is wrong.
    """
    try:
        return Settings.model_validate_json(json.dumps(document))
    except ValidationError as error:
        meanings = {entry.path: entry.meaning for entry in documented()}
        lines = [f"{source}: not ready to deploy."]
        for problem in error.errors(include_url=False):
            path = ".".join(str(part) for part in problem["loc"])
            complaint = _COMPLAINTS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
            lines.append(f"  {path}: {complaint}" if path else f"  {complaint}")
            if path in meanings:
                lines.append(f"    ({meanings[path]})")
        raise ContextInvalid("\n".join([*lines, "docs/deploy.md explains every setting."])) from error


@dataclass(frozen=True)
class DocumentedSetting:
    """One setting as the documentation shows it."""

    path: str
    """With dots, as in ``models.maxTokens``."""
    default: str
    """As JSON; ``required`` where there is none."""
    meaning: str


def documented(group: type[BaseModel] = Settings, prefix: str = "") -> Iterator[DocumentedSetting]:
    """Every setting, in the order of ``cdk.json``; a group's own entry is left out where it has no description."""
    for name, field in group.model_fields.items():
        path = f"{prefix}{field.alias}"
        if field.description is not None:
            default = "required" if field.is_required() else json.dumps(field.default)
            yield DocumentedSetting(path, default, field.description)
        if name in _GROUPS:
            yield from documented(_GROUPS[name], f"{path}.")
