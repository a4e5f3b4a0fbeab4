"""Leave for one call of a dependency, and the one outcome that it is told."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from cicada.answering.breakers.decide import Probe


class Outcomes(Protocol):
    """Takes the outcomes of calls: :class:`cicada.answering.breakers.board.Breakers`."""

    def succeeded(self, name: str, probe: Probe | None = None) -> None:
        """A call went well."""
        ...

    def failed(self, name: str, error: BaseException, probe: Probe | None = None) -> None:
        """A call failed."""
        ...

    def released(self, name: str, probe: Probe | None = None) -> None:
        """A call was given up."""
        ...


class Admission:
    """Leave for one call. Its outcome is told once; a block that ends without one gives the call up."""

    def __init__(self, outcomes: Outcomes, name: str, probe: Probe | None = None) -> None:
        self._outcomes = outcomes
        self._name = name
        self._probe = probe
        self._told = False

    def succeeded(self) -> None:
        """The call went well."""
        if not self._told:
            self._told = True
            self._outcomes.succeeded(self._name, self._probe)

    def failed(self, error: BaseException) -> None:
        """The call failed, or told nothing of the dependency: see :func:`~.names.verdict`."""
        if not self._told:
            self._told = True
            self._outcomes.failed(self._name, error, self._probe)

    def released(self) -> None:
        """The call was given up, and tells nothing."""
        if not self._told:
            self._told = True
            self._outcomes.released(self._name, self._probe)

    def __enter__(self) -> Admission:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.released()
        else:
            self.failed(error)
