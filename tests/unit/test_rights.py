"""Which collections an asker may read, by the rules and the asker's groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cicada.rights import EVERYTHING, NOTHING, AccessRules

NAMES = st.sampled_from(["script", "notes", "rulebook", "diary"])
GROUPS = st.lists(st.sampled_from(["users", "gms", "admins"]), unique=True).map(tuple)
RULES = st.builds(AccessRules, st.sampled_from(["everybody", "nobody"]), st.dictionaries(NAMES, GROUPS))


@given(RULES, GROUPS, NAMES)
def test_a_rule_names_the_groups_and_without_one_the_default_holds(
    rules: AccessRules, groups: tuple[str, ...], collection: str
) -> None:
    readers = rules.readers.get(collection)
    expected = rules.default == "everybody" if readers is None else bool(set(readers) & set(groups))
    assert rules.readable(groups).allows(collection) is expected


@given(RULES, GROUPS, GROUPS)
def test_equal_keys_mean_equal_rights(rules: AccessRules, mine: tuple[str, ...], yours: tuple[str, ...]) -> None:
    one, other = rules.readable(mine), rules.readable(yours)
    same = all(one.allows(name) == other.allows(name) for name in ("script", "notes", "rulebook", "diary", "unheard"))
    assert (one.key == other.key) is same


def test_administrators_read_everything_and_without_rights_nothing_is_read() -> None:
    assert EVERYTHING.allows("diary")
    assert not NOTHING.allows("diary")
