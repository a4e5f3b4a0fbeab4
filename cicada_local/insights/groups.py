"""Which log files hold the events of which log group, read from what is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cicada_local.functions.logs import FunctionLog

_STREAM = "b026324c6904b2a9cb4b88d6d61c81d1"


class GroupLogs:
    """Writes the logs of services, such as an API's access log: a file for each group."""

    def __init__(self, logs: Path) -> None:
        """``logs``: the folder of the log files."""
        self._logs = logs
        self._files: dict[str, FunctionLog] = {}

    def write(self, group: str, line: str) -> None:
        """Append an event to a group."""
        if group not in self._files:
            self._files[group] = FunctionLog(_group_file(self._logs, group))
        self._files[group].write(_STREAM, line)


def _group_file(logs: Path, group: str) -> Path:
    return logs / f"{group.strip('/').replace('/', '.')}.log"


def function_groups(logs: Path) -> Mapping[str, tuple[Path, ...]]:
    """The deployed log groups by name, each with its own log file and those of the functions that write to it.

    Args:
        logs: the folder of the log files: those of functions are named after their functions.
    """
    from cicada_local import deployed

    found: dict[str, list[Path]] = {}
    for stack in deployed.stacks():
        physical = {
            one.logical_resource_id: getattr(one, "physical_resource_id", None) for one in stack.stack_resources
        }
        for logical_id, resource in stack.template_dict.get("Resources", {}).items():
            name = physical.get(logical_id)
            if name is None:
                continue
            if resource["Type"] == "AWS::Logs::LogGroup":
                found.setdefault(name, []).append(_group_file(logs, name))
            elif resource["Type"] == "AWS::Lambda::Function":
                group = _group(resource.get("Properties", {}), physical) or f"/aws/lambda/{name}"
                found.setdefault(group, []).append(logs / f"{name}.log")
    return {group: tuple(paths) for group, paths in found.items()}


def _group(properties: Mapping[str, Any], physical: Mapping[str, str | None]) -> str | None:
    """The log group that a function names: itself, or by a reference within its stack."""
    named = properties.get("LoggingConfig", {}).get("LogGroup")
    return physical.get(named["Ref"]) if isinstance(named, dict) else named
