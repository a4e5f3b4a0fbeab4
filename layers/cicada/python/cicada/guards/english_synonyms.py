"""English words that mean the same, and words that mean the opposite.

A group of synonyms is tight on purpose: its words can stand for each other in a question about a script, a manual, a
policy or a record without another answer being right. A missing synonym costs a saving; a wrong one, a wrong answer.
*Letter* and *note*, *look* and *search*, *kill* and *murder* are no synonyms here.
"""

from __future__ import annotations

from cicada.guards.english_forms import PARTICIPLES, PAST, bases, has_ed, stem
from cicada.guards.english_words import FIXED, MARKERS

_SYNONYMS = """
begin start commence
happen occur
buy purchase
price cost
refund reimburse reimbursement
allow permit
permission authorisation authorization
fix repair mend
hide conceal
shut close
show display
change alter modify
delete erase
build construct
choose select
use utilise utilize
help assist
need require
send dispatch
reply respond
enquire inquire
try attempt
scared afraid frightened
big large
fast quick rapid
wrong incorrect
occupation profession
car automobile
mother mom mum
father dad
doctor physician
film movie
photo photograph
phone telephone
mobile cellphone
email e-mail
goal objective
result outcome
mistake error
manual handbook
login sign-in signin
install setup installation
reboot restart
turn-on switch-on
turn-off switch-off
enemy foe
forest woods
brave courageous
strange weird
yell shout
argue quarrel
marry wed
submit hand-in
enrol enroll
register registration
cancel cancellation
apply application
complain complaint
verify verification
renew renewal
expire lapse
mandatory compulsory obligatory
author writer
ending finale
talk speak
discuss discussion
escape flee
chase pursue
authorise authorize
colour color
centre center
"""
_GROUPS = tuple(frozenset(line.split()) for line in _SYNONYMS.strip().split("\n"))


def _canonical() -> dict[str, str]:
    """By stem: the stem that stands for its group."""
    table: dict[str, str] = {}
    for line in _SYNONYMS.strip().split("\n"):
        group = [stem(word) for word in line.split()]
        for word in group:
            table.setdefault(word, table.get(group[0], group[0]))
    return table


_CANONICAL = _canonical()


def term_of(word: str) -> str:
    """What a content word is compared by at first: the stem that stands for it and its synonyms."""
    fixed = FIXED.get(word) or MARKERS.get(word)
    if fixed is not None:
        return fixed
    root = stem(word)
    return _CANONICAL.get(root, root)


def one_word(one: str, other: str) -> bool:
    """Whether two words of one term are forms of one word, or of synonyms."""
    if one == other or FIXED.get(one, one) == FIXED.get(other, other):
        return True
    if _is_gerund(one) != _is_gerund(other) and (_is_past(one) or _is_past(other)):
        return False  # the boring guest and the bored one
    forms, others = bases(one), bases(other)
    return bool(forms & others) or any(forms & group and others & group for group in _GROUPS)


_ANTONYMS = """
before after · first last · begin finish · start stop · like hate · love hate · like dislike · alive dead
live die · open shut · open close · win lose · arrive depart · come go · buy sell · lend borrow · give get · give take
send get · accept refuse · allow forbid · allow prohibit · allow ban · remember forget · trust distrust · trust betray
friend enemy · good bad · good evil · right wrong · correct wrong · true false · truth lie · old young · old new
big small · tall short · long short · high low · more less · more few · most least · maximum minimum · limit minimum
increase decrease · raise lower · rise fall · fast slow · hard easy · hot cold · warm cold · strong weak · rich poor
happy sad · brave cowardly · day night · morning evening · inside outside · in out · above below · over under · up down
left right · north south · east west · man woman · boy girl · husband wife
brother sister · mother father · son daughter · king queen · turn-on turn-off · connect disconnect
install uninstall · add delete · lock unlock · show hide
find lose · hide find · hide reveal · save kill · rescue kill · attack guard · marry divorce · agree disagree
approve reject · approve refuse · include exclude · optional mandatory · enter leave · enter depart · enter exit
push pull · import export · upload download · cheap expensive · advantage disadvantage · benefit drawback · pro con
strength weakness · for against · appear disappear · guilty innocent · success failure · succeed fail
early late · always never · all none · all only · both neither · public private · internal external · legal illegal
valid invalid · possible impossible · safe dangerous · full empty · full partial · gain lose
hire fire · help hinder · laugh cry · wet dry · clean dirty · top bottom · front back · heaven hell · past future
upgrade downgrade · renew cancel · subscribe unsubscribe · register unregister · domestic international · until since
from to · he she · can must · must should · can should · monthly yearly · refund pay · promote demote
parent child · teacher student · buyer seller · employer employee · boss worker · hero villain · predecessor successor
cause result · reason result · question answer · minimum maximum · ally enemy · encrypt decrypt · follow lead
"""


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and len(bases(word)) > 1


def _is_past(word: str) -> bool:
    return has_ed(word) or word in PAST or word in PARTICIPLES


def _opposites() -> frozenset[frozenset[str]]:
    pairs = [pair.split() for line in _ANTONYMS.split("\n") for pair in line.split("·") if pair.strip()]
    return frozenset(frozenset((term_of(one), term_of(other))) for one, other in pairs)


ANTONYMS = _opposites()
"""Pairs of terms that make opposite questions of the same sentence."""

GENERIC = frozenset({"?"})
"""Terms that a question may have more of than another, and still ask the same."""
