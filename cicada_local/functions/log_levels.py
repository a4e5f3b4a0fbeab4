"""Lambda's filter of application logs, for functions with the JSON log format.

A line is dropped if its level is below the function's. One whose ``level`` is missing or unknown is INFO, and so is one
whose ``timestamp`` is missing or no RFC 3339 time: with the function's level at WARN or above, such lines are dropped.

Source: AWS Lambda Developer Guide, "Log-level filtering".
"""

from __future__ import annotations

import json
import re

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
JSON_FORMAT = "JSON"
DEFAULT_LEVEL = "INFO"
"""Of a function with the JSON log format that names none."""

LOGGING = "logging_config"
"""Where a deployed function keeps the logging configuration of its template, which moto leaves out."""

_RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})")
_ASSUMED = LEVELS.index("INFO")


def passes(line: str, level: str) -> bool:
    """Whether Lambda keeps a line of a function with this application log level."""
    least = LEVELS.index(level)
    return least == 0 or _level_of(line) >= least


def _level_of(line: str) -> int:
    try:
        read = json.loads(line)
    except ValueError:
        return _ASSUMED
    if not isinstance(read, dict):
        return _ASSUMED
    named, at = str(read.get("level", "")).upper(), read.get("timestamp")
    if named not in LEVELS or not isinstance(at, str) or _RFC_3339.fullmatch(at) is None:
        return _ASSUMED
    return LEVELS.index(named)
