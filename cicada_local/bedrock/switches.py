"""What a fault switch's parameters say about a stream: how it breaks, and when its pieces come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CUT_MODES = frozenset({"exception", "reset", "silent", "half_frame", "corrupt", "garbled", "stall"})


@dataclass(frozen=True)
class Cut:
    """How a stream breaks (the fault ``bedrock.cut``)."""

    mode: str = "reset"
    after: int = 3
    """Text deltas that are sent before."""
    exception: str = "modelStreamErrorException"
    message: str = "The stream was broken on purpose."
    framing: str = "chunked"
    """``chunked`` or ``close``: whether the response's end is marked. ``silent`` is ``close`` by its nature."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Cut:
        """Read a fault's parameters. Raises ValueError for an unknown mode."""
        known = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        cut = cls(**{**known, "after": int(known.get("after", cls.after))})
        if cut.mode not in CUT_MODES or cut.framing not in ("chunked", "close"):
            raise ValueError(f"bedrock.cut: mode {cut.mode!r} or framing {cut.framing!r} is not known")
        return cut

    @property
    def close_delimited(self) -> bool:
        """Whether the response ends with its connection."""
        return self.mode == "silent" or self.framing == "close"


@dataclass(frozen=True)
class Pace:
    """When a stream's text deltas are sent (the faults ``bedrock.slow`` and ``bedrock.pace``)."""

    between_s: float
    first_piece_s: float = 0.0
    """Before the first delta, once the response has begun; with ``since``, from then on."""
    since: float | None = None
    """On the event loop's clock. If it is set, the deltas are due at fixed times from then on, however long anything
    before took: a model whose latency is the same in every run, for benchmarks."""

    def wait_s(self, sent: int, now: float) -> float:
        """How long to wait for the next delta when ``sent`` are out."""
        if self.since is not None:
            return max(0.0, self.since + self.first_piece_s + sent * self.between_s - now)
        return self.between_s if sent else self.first_piece_s
