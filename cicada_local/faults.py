"""Fault switches: what the stand-ins are told to do wrong, and how often."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Switch:
    """One armed fault."""

    params: dict[str, Any] = field(default_factory=dict)
    times: int | None = None
    """How many more times it strikes; every time when None."""
    share: float | None = None
    """With which probability it strikes, where it could; always when None."""
    chance: random.Random = field(default_factory=random.Random)

    def strikes(self) -> bool:
        """Whether it strikes this time."""
        return self.share is None or self.chance.random() < self.share


class Faults:
    """Armed faults by name, for example ``bedrock.throttle``. A stand-in asks :meth:`take` where it could fail."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: dict[str, Switch] = {}

    def arm(
        self,
        name: str,
        *,
        times: int | None = None,
        share: float | None = None,
        seed: int | str | None = None,
        **params: Any,
    ) -> None:
        """Arm a fault, in place of any of the same name.

        Args:
            name: of the fault.
            times: how often it strikes; every time when None.
            share: with which probability it strikes, where it could; always when None.
            seed: repeats a ``share``'s decisions.
            params: what the fault is to do, and what it is limited to.
        """
        with self._lock:
            self._armed[name] = Switch(params, times, share, random.Random(seed))  # noqa: S311 - it decides no secret

    def disarm(self, name: str | None = None) -> None:
        """Disarm one fault, or all."""
        with self._lock:
            if name is None:
                self._armed.clear()
            else:
                self._armed.pop(name, None)

    def take(self, name: str, **match: Any) -> dict[str, Any] | None:
        """The fault's parameters if it strikes now, else None. A strike is counted.

        A parameter that ``match`` names too must be equal or absent, so that a fault can be limited to one
        function or model.
        """
        with self._lock:
            switch = self._armed.get(name)
            if switch is None or any(switch.params.get(key, value) != value for key, value in match.items()):
                return None
            if not switch.strikes():
                return None
            if switch.times is not None:
                switch.times -= 1
                if switch.times <= 0:
                    del self._armed[name]
            return dict(switch.params)

    def armed(self) -> dict[str, dict[str, Any]]:
        """What is armed, as plain data."""
        with self._lock:
            return {
                name: {
                    "times": switch.times,
                    **({} if switch.share is None else {"share": switch.share}),
                    **switch.params,
                }
                for name, switch in self._armed.items()
            }
