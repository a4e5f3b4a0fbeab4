"""The rules of access for one attempt: read once, beside its start."""

from __future__ import annotations

from cicada.concurrency import Concurrency
from cicada.index.access_rules import AccessRulesStore
from cicada.rights import AccessRules, Readable


class AttemptRights:
    """What an attempt's asker may read, by the rules of its start. Thread-safe."""

    def __init__(self, access: AccessRulesStore, concurrency: Concurrency) -> None:
        """Begin to read the rules in the background."""
        self._access = access
        self._rules: AccessRules | None = None
        self._failure: BaseException | None = None
        self._reading = concurrency.spawn(self._read, "rights")

    def readable(self, groups: tuple[str, ...]) -> Readable:
        """What a member of the groups may read. Raises IndexUnavailable or IndexCorrupt: then nothing may be read."""
        self._reading.join()
        if self._failure is not None:
            raise self._failure
        assert self._rules is not None  # what is not read has failed
        return self._rules.readable(groups)

    def _read(self) -> None:
        try:
            self._rules = self._access.rules()
        except BaseException as error:  # raised where the rights are asked for
            self._failure = error
