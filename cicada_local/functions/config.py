"""What the Lambda service is told of a function, and what an invocation gives back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cicada_local.functions.log_levels import DEFAULT_LEVEL
from cicada_local.functions.streaming import ResponseStream

Permits = Callable[[str, str], bool]
"""Whether a function, by its ARN, may be invoked by a service for one of its resources, by that one's ARN."""


def permit_all(function_arn: str, source_arn: str) -> bool:  # noqa: ARG001
    """For services of a test's own, whose functions have no policies."""
    return True


@dataclass(frozen=True)
class AsyncConfig:
    """A function's configuration of asynchronous invocation."""

    max_retries: int = 2
    max_age_s: float = 21_600.0
    """Six hours."""
    on_failure: str = ""
    """The ARN of the destination of events that failed."""
    dead_letter: str = ""
    """The ARN of the function's dead-letter queue."""


@dataclass(frozen=True)
class Layer:
    """One version of a layer, as its zip archive."""

    name: str
    zip_bytes: bytes = field(repr=False)
    sha: str
    """A digest of ``zip_bytes``: the archive is unpacked once for each."""


@dataclass(frozen=True)
class FunctionConfig:
    """A function as it stands now. A change of any field retires the environments that were started before it."""

    name: str
    arn: str
    """Without a version: ``arn:aws:lambda:<region>:<account>:function:<name>``."""
    handler: str
    """``<module>.<callable>``, the module's folders parted by ``/`` or ``.``."""
    code_zip: bytes = field(repr=False)
    code_sha: str
    """A digest of ``code_zip``: the archive is unpacked once for each."""
    layers: Sequence[Layer] = ()
    """In the order of the configuration: a file of a later layer wins over the same file of an earlier one."""
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 3.0
    memory_mb: int = 128
    runtime: str = "python3.13"
    """Told to the function; the process runs the interpreter of this Python."""
    architecture: str = "arm64"
    """Told in the configuration only: the process runs on this machine's architecture."""
    reserved_concurrency: int | None = None
    """The most invocations that may run at once; 0 stops the function, None is no bound of its own."""
    role: str = ""
    """The ARN of its execution role; its credentials are among the variables that the local cloud adds."""
    log_level: str | None = None
    """The application log level of a function with the JSON log format; None with the text format."""
    system_log_level: str = DEFAULT_LEVEL
    """The same of Lambda's own lines."""
    asynchronous: AsyncConfig = field(default_factory=AsyncConfig)
    """Asks for no new environments when it changes."""

    @property
    def region(self) -> str:
        """The region that the ARN names."""
        return self.arn.split(":")[3]

    @property
    def fingerprint(self) -> str:
        """Changes with everything that an execution environment is started from."""
        parts = {
            "arn": self.arn,
            "handler": self.handler,
            "code": self.code_sha,
            "layers": [layer.sha for layer in self.layers],
            "environment": dict(self.environment),
            "timeout_s": self.timeout_s,
            "memory_mb": self.memory_mb,
            "runtime": self.runtime,
            "role": self.role,
            "log_level": self.log_level,
            "system_log_level": self.system_log_level,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class InvokeResult:
    """What ``Invoke`` answers: 200 (also when the function failed), 202 for an event, 204 for a dry run."""

    status: int
    payload: bytes = b""
    function_error: str | None = None
    """``Unhandled`` when the function failed; ``payload`` then is ``{"errorType", "errorMessage", …}``."""
    executed_version: str = "$LATEST"
    log: bytes = b""
    """The last 4 KB that the invocation logged."""
    request_id: str = ""


@dataclass(frozen=True)
class StreamedResult:
    """A response that is being streamed."""

    request_id: str
    stream: ResponseStream
    ended: asyncio.Task[InvokeResult]
    """The invocation: done when its environment is ready for the next, as far as that is waited for."""


@dataclass
class FunctionStats:
    """What a function has seen since the service started."""

    invocations: int = 0
    cold_starts: int = 0
    errors: int = 0
    """Invocations that ended in a function error, time-outs and exits included."""
    timeouts: int = 0
    exits: int = 0
    """Processes that ended in the middle of an invocation, killed ones included."""
    throttles: int = 0
