"""What Lambda refuses of a function's configuration when it is created or updated.

Sources: AWS Lambda Developer Guide, "Lambda quotas" and "Configuring reserved concurrency"; the messages are Lambda's.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence

ENVIRONMENT_BYTES = 4096
"""Of all variables together, written as JSON, which is what Lambda measures."""
MAX_LAYERS = 5
UNZIPPED_BYTES = 262_144_000
"""Of the code and all layers together."""
ACCOUNT_CONCURRENCY = 1000
"""An account's usual quota. A new one may have 10."""
MIN_UNRESERVED = 100
"""What must be left to functions without a reservation."""


class InvalidParameterValue(ValueError):
    """Lambda refuses the configuration."""


def environment_bytes(variables: Mapping[str, str]) -> int:
    """The size of a function's variables as Lambda measures it."""
    return len(json.dumps(dict(variables), separators=(",", ":"), ensure_ascii=False).encode())


def unzipped_bytes(archive: bytes) -> int:
    """The size of an archive's files."""
    with zipfile.ZipFile(io.BytesIO(archive)) as unzipped:
        return sum(entry.file_size for entry in unzipped.infolist())


def check_environment(variables: Mapping[str, str]) -> None:
    """Raises InvalidParameterValue for variables that are too large together."""
    if environment_bytes(variables) > ENVIRONMENT_BYTES:
        raise InvalidParameterValue(
            "Lambda was unable to configure your environment variables because the environment variables you have "
            f"provided exceeded the 4KB limit. String measured: {json.dumps(dict(variables), separators=(',', ':'))}"
        )


def check_layers(layers: Sequence[object]) -> None:
    """Raises InvalidParameterValue for too many layers."""
    if len(layers) > MAX_LAYERS:
        raise InvalidParameterValue(f"Cannot reference more than {MAX_LAYERS} layers.")


def check_size(code: int, layers: Iterable[int]) -> None:
    """Raises InvalidParameterValue for code and layers whose unzipped bytes are too many."""
    if code > UNZIPPED_BYTES:
        raise InvalidParameterValue(f"Unzipped size must be smaller than {UNZIPPED_BYTES} bytes")
    total = code + sum(layers)
    if total > UNZIPPED_BYTES:
        raise InvalidParameterValue(
            f"Function code combined with layers exceeds the maximum allowed size of {UNZIPPED_BYTES} bytes. "
            f"The actual size is {total} bytes."
        )


def check_reservation(reserved: int | None, by_others: int) -> None:
    """Raises InvalidParameterValue for a reservation that leaves too little unreserved."""
    if reserved is not None and ACCOUNT_CONCURRENCY - by_others - reserved < MIN_UNRESERVED:
        raise InvalidParameterValue(
            "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution "
            f"below its minimum value of [{MIN_UNRESERVED}]."
        )
