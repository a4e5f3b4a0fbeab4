"""Rules of access for tests: given ones, which a test may change under way."""

from __future__ import annotations

from dataclasses import dataclass, field

from cicada.rights import AccessRules


@dataclass
class GivenRules:
    """:class:`cicada.index.access_rules.AccessRulesStore` of what was set last; an exception is raised."""

    now: AccessRules | Exception = field(default_factory=AccessRules)
    reads: int = 0

    def rules(self) -> AccessRules:
        self.reads += 1
        if isinstance(self.now, Exception):
            raise self.now
        return self.now
