"""Lambda's own lines in a function's log: text, or with the JSON log format events, which a level filters.

Sources: AWS Lambda Developer Guide, "Log-level filtering" and "Lambda Telemetry API Event schema reference".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cicada_local.functions.config import FunctionConfig
from cicada_local.functions.log_levels import LEVELS


@dataclass(frozen=True)
class Ended:
    """How an initialisation or an invocation ended."""

    status: str = "success"
    """Or ``error`` or ``timeout``."""
    error_type: str | None = None
    """Such as ``Runtime.ExitError``; None where the function itself raised."""

    @property
    def record(self) -> dict[str, str]:
        """As an event says it."""
        return {"status": self.status} | ({"errorType": self.error_type} if self.error_type else {})

    @property
    def text(self) -> str:
        """As a line says it; a function that raised is not told there."""
        if self.status == "timeout":
            return "\tStatus: timeout"
        return f"\tStatus: error\tError Type: {self.error_type}" if self.error_type else ""


SUCCESS, RAISED, TIMED_OUT = Ended(), Ended("error"), Ended("timeout")


def failed(error_type: str) -> Ended:
    """An end by an error of the runtime or the process."""
    return Ended("error", error_type)


def init_start(config: FunctionConfig) -> str | None:
    """An environment begins; None where this is not logged."""
    record = {"initializationType": "on-demand", "phase": "init", "runtimeVersion": config.runtime}
    return _line(config, f"INIT_START Runtime Version: {config.runtime}", "initStart", record, "INFO")


def init_report(config: FunctionConfig, phase: str, init_ms: float, ended: Ended) -> str | None:
    """An initialisation has failed."""
    text = f"INIT_REPORT Init Duration: {init_ms:.2f} ms\tPhase: {phase}{ended.text}"
    metrics = {"durationMs": round(init_ms, 2)}
    record = {"initializationType": "on-demand", "phase": phase, **ended.record, "metrics": metrics}
    return _line(config, text, "initReport", record, "WARN")


def start(config: FunctionConfig, request_id: str) -> str | None:
    """An invocation begins."""
    record = {"requestId": request_id, "functionArn": config.arn, "version": "$LATEST"}
    return _line(config, f"START RequestId: {request_id} Version: $LATEST", "start", record, "INFO")


def runtime_done(config: FunctionConfig, request_id: str, duration_ms: float, ended: Ended) -> str | None:
    """The function is done with an invocation."""
    record = {"requestId": request_id, **ended.record, "metrics": {"durationMs": round(duration_ms, 3)}}
    level = "DEBUG" if ended == SUCCESS else "WARN"
    return _line(config, f"END RequestId: {request_id}", "runtimeDone", record, level)


def report(
    config: FunctionConfig, request_id: str, duration_ms: float, init_ms: float | None, peak_mb: int, ended: Ended
) -> str | None:
    """What an invocation took."""
    billed_ms = math.ceil(duration_ms + (init_ms or 0))
    text = "\t".join(
        [
            f"REPORT RequestId: {request_id}",
            f"Duration: {duration_ms:.2f} ms",
            f"Billed Duration: {billed_ms} ms",
            f"Memory Size: {config.memory_mb} MB",
            f"Max Memory Used: {peak_mb} MB",
            *([f"Init Duration: {init_ms:.2f} ms"] if init_ms is not None else []),
        ]
    )
    metrics: dict[str, float] = {
        "durationMs": round(duration_ms, 3),
        "billedDurationMs": billed_ms,
        "memorySizeMB": config.memory_mb,
        "maxMemoryUsedMB": peak_mb,
    }
    if init_ms is not None:
        metrics["initDurationMs"] = round(init_ms, 3)
    record = {"requestId": request_id, "metrics": metrics, **ended.record}
    return _line(config, text + ended.text, "report", record, "INFO" if ended == SUCCESS else "WARN")


def _line(config: FunctionConfig, text: str, event: str, record: Mapping[str, Any], level: str) -> str | None:
    if config.log_level is None:
        return text
    if LEVELS.index(level) < LEVELS.index(config.system_log_level):
        return None
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": at, "type": f"platform.{event}", "record": record})
