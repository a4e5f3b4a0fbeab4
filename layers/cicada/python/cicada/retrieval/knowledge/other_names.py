"""The other names that declarations give an entity: what each name may stand for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from cicada.corpus.declared.declaration import CollectionDeclaration
from cicada.text.names import bare_key


class OtherNames:
    """The aliases of a version's declarations, taken together. Immutable.

    An entity that several collections declare is one. So are two of which one is declared as an alias of the other.
    An alias that several entities have (two captains) is a name of each of them, and makes them no single one: who asks
    for it may mean any, and who asks for one of them does not mean it.
    """

    def __init__(self, declarations: Iterable[CollectionDeclaration]) -> None:
        """Take the declarations."""
        aliases: defaultdict[str, set[str]] = defaultdict(set)
        self._owners: defaultdict[str, set[str]] = defaultdict(set)
        for declared in declarations:
            for entity, others in declared.names.aliases.items():
                name = bare_key(entity)
                aliases[name].update({bare_key(one) for one in others} - {name})
        for name in aliases:
            for other in aliases[name]:
                self._owners[other].add(name)
        self._names = _joined(aliases, self._owners)

    def of(self, name: str) -> frozenset[str]:
        """A name and all that declarations say is the same: their keys, without articles."""
        wanted = bare_key(name)
        if (own := self._names.get(wanted)) is not None:
            return own
        return frozenset({wanted}).union(*(self._names[owner] for owner in self._owners.get(wanted, ())))


def _joined(aliases: Mapping[str, set[str]], owners: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """By entity its names: its own, and those that no other entity has."""
    names: dict[str, frozenset[str]] = {}
    for entity in aliases:
        if entity in names:
            continue
        same, left = {entity}, [entity]
        while left:
            one = left.pop()
            near = {other for other in aliases[one] if other in aliases and owners[other] == {one}}
            near |= owners.get(one, set()) if len(owners.get(one, ())) == 1 else set()
            left += near - same
            same |= near
        others = {other for one in same for other in aliases[one] if other not in aliases and owners[other] <= same}
        found = frozenset(same | others)
        names.update(dict.fromkeys(same, found))
    return names
