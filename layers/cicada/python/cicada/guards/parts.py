"""Whether two readings of the same terms give each the same form and the same part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations

from cicada.guards.english_synonyms import GENERIC, one_word
from cicada.guards.english_words import TOPICAL, interchangeable
from cicada.guards.reading import Reading, Word

_PRONOUNS = frozenset({"he", "she", "they"})
"""Whom they mean hangs on where they stand: *Ada's father and she* are not *Ada and her father*."""
_ON_A_TOPIC = frozenset({"about", "on", "regarding", "concerning"})
_FOR = "for"
_OWNER, _GENITIVE = "'", "~"
_WHOSE = "whose"
_WHAT_IS_ASKED = "?"
_FOR_ANYBODY = frozenset({"can", "must", "should"})
_ASKED_OF = frozenset({"your"})
_SUBJECTS = frozenset({"i", "we", "you"})
_COUNTED = "#"
_MOVED_AT_MOST = 1
"""Phrases that may stand at the beginning of one question and elsewhere in the other."""


def same_forms(one: Reading, other: Reading) -> bool:
    """Whether words of one term are forms of one word: *important* is not *imported*."""
    left, right = _by_term(one), _by_term(other)
    return all(
        _each_has_a_peer(left[term], right[term]) and _each_has_a_peer(right[term], left[term])
        for term in left.keys() & right.keys()
    )


def _each_has_a_peer(words: list[str], peers: list[str]) -> bool:
    return all(any(_one_form(word, peer) for peer in peers) for word in words)


def _one_form(word: str, peer: str) -> bool:
    """*The boy's mother* is *the mother of the boy*, not *the boys' mother*; *Ada's horse* is not *Ada a horse*."""
    if word.endswith(_OWNER) or peer.endswith(_OWNER):
        genitives = word.endswith((_OWNER, _GENITIVE)) and peer.endswith((_OWNER, _GENITIVE))
        return genitives and word[:-1] == peer[:-1]
    return one_word(word.removesuffix(_GENITIVE), peer.removesuffix(_GENITIVE))


def _by_term(reading: Reading) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for word in reading.words:
        if word.shown:
            found[word.term].append(f"{word.shown}{_OWNER if word.owner else _GENITIVE if word.genitive else ''}")
    return found


def same_persons(one: Reading, other: Reading) -> bool:
    """Whether *I*, *my*, *you*… are with the same words, or left out where anybody is meant.

    *Can I cancel an order* asks what *can an order be cancelled* does; *what is my limit* is not *what is the limit*.
    """
    if one.persons == other.persons:
        return True
    left, right = Counter(one.persons), Counter(other.persons)
    more, less = left - right, right - left
    if more and less:
        return False
    if all(person in _ASKED_OF for person, _ in more | less) and not (one.persons and other.persons):
        return True
    how = one.kind.startswith("how") and other.kind.startswith("how")
    return how or (_for_anybody(one) and _for_anybody(other) and all(it in _SUBJECTS for it, _ in more | less))


def _for_anybody(reading: Reading) -> bool:
    return any(word.term in _FOR_ANYBODY for word in reading.words)


def same_relations(one: Reading, other: Reading) -> bool:
    """Whether each word stands under the same preposition, of the same head, in the same phrase."""
    if one.stranded != other.stranded:
        return False
    if one.verbatim or other.verbatim:
        return True
    pairs = list(_pairs(one, other))
    moved = 0
    for left, right in pairs:
        if left.relation and right.relation:
            counted = _COUNTED in left.term
            topical = left.head in TOPICAL and right.head in TOPICAL
            if not interchangeable(left.relation, right.relation, counted=counted, topical=topical):
                return False
        elif left.relation or right.relation:
            bound, free, reading = (left, right, other) if left.relation else (right, left, one)
            if not _is_compound(bound, free, reading):
                return False
    bound_otherwise = {
        (left.phrase, right.phrase): (left.head, right.head)
        for left, right in pairs
        if left.relation and right.relation and left.head != right.head
    }
    for heads in bound_otherwise.values():
        if all(heads) and one.passive == other.passive:
            return False
        moved += 1
    return moved <= _MOVED_AT_MOST and _same_phrases(pairs)


def _pairs(one: Reading, other: Reading) -> Iterator[tuple[Word, Word]]:
    """The words that both have, those of one term in their order."""
    others: defaultdict[str, list[Word]] = defaultdict(list)
    for word in other.words:
        others[word.term].append(word)
    for word in one.words:
        if others.get(word.term):
            yield word, others[word.term].pop(0)


def _is_compound(bound: Word, free: Word, reading: Reading) -> bool:
    """Whether a word under a preposition in one question stands before its head in the other: *refund policy*."""
    place = next(at for at, word in enumerate(reading.words) if word is free)
    following = reading.words[place + 1] if place + 1 < len(reading.words) else None
    if following is None or following.term != bound.head or following.phrase != free.phrase:
        return False
    return bound.relation in _ON_A_TOPIC or (bound.relation == _FOR and bound.head in TOPICAL)


def _same_phrases(pairs: list[tuple[Word, Word]]) -> bool:
    """Whether words under prepositions that share a phrase in one question share one in the other."""
    under = [(left, right) for left, right in pairs if left.relation and right.relation]
    return all(
        (left.phrase == next_left.phrase) == (right.phrase == next_right.phrase)
        for (left, right), (next_left, next_right) in combinations(under, 2)
    )


def same_roles(one: Reading, other: Reading) -> bool:
    """Whether what stands in a fixed place in both stands in one order."""
    if one.verbatim or other.verbatim:
        terms = [[word.term for word in reading.words] for reading in (one, other)]
        return one.verbatim == other.verbatim and terms[0] == terms[1]
    only_one, only_other = (_placed(one) - _placed(other)) - GENERIC, (_placed(other) - _placed(one)) - GENERIC
    if _WHOSE in one.kind and [word.term for word in one.words] != [word.term for word in other.words]:
        return False
    swapped = only_one and only_other  # each has in a phrase what the other one has in a fixed place
    if swapped or ((only_one or only_other) and _PRONOUNS & {word.term for word in one.words}):
        return False
    both = _placed(one) & _placed(other)
    order = [[word.term for word in reading.words if word.term in both] for reading in (one, other)]
    return order[0] == order[1] and _order_in_phrases(one, other) == _order_in_phrases(other, one)


def _placed(reading: Reading) -> set[str]:
    return {word.term for word in reading.words if not word.marker and not word.loose}


def _order_in_phrases(one: Reading, other: Reading) -> list[tuple[str, list[str]]]:
    """Words in phrases of both, in their order, by preposition, and by phrase where a phrase can stand anywhere."""
    loose = {word.term for word in other.words if word.loose or word.marker} - _FOR_ANYBODY - {_WHAT_IS_ASKED}
    phrases: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for word in one.words:
        if (word.loose or word.marker) and word.term in loose:
            phrases[word.relation, word.phrase if word.preposition and not word.marker else 0].append(word.term)
    return sorted((min(terms), terms) for terms in phrases.values())
