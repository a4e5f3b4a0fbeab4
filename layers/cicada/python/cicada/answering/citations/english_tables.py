"""English words that can stand for each other in a report of a passage, and words that cannot.

The synonyms are wider than those that questions are compared by: here every other word of the sentence is compared too.
"""

from __future__ import annotations

from functools import lru_cache

from cicada.answering.semantic_cache.guards.english_synonyms import ANTONYMS as QUESTION_ANTONYMS
from cicada.answering.semantic_cache.guards.english_synonyms import term_of

_TERMS_KEPT = 32_768

_SYNONYMS = """
increase rise climb grow
decrease fall decline drop shrink reduce
staff employee worker personnel
postpone defer delay
receive obtain get
finish complete conclude
forbid prohibit ban disallow
allow permit let
child kid
adult grown-up
large big great
small little tiny
vanish disappear
seldom rarely
often frequently
usually normally typically generally
caution warn
harm damage
speak talk
give hand
reach arrive
stay remain
begin start commence
flat apartment
boss chief head
refund reimburse repay
expense cost
journey trip voyage
answer reply respond
afraid fear scared frightened
weekly week
monthly month
daily day
yearly annual annually year
nightly night
buy purchase acquire
steal rob
kill slay
sick ill
quick fast rapid swift
error mistake
replace exchange substitute
need require
choose select pick
help assist support
build construct erect
show display
hide conceal
close shut
house home
job occupation profession post
present introduce
submit hand-in
destroy ruin
find discover
keep retain
leave depart
laugh laughter
publish publication issue
author writer
trust confidence
expect anticipate forecast
demand request
object objection
confirm verify
consent agreement
inform notify tell
illness disease
sample specimen
weak weaken
strong strengthen
short shorten
long lengthen length
deep deepen depth
high height tall
wide widen width
warm warmth
cancel cancellation
decide decision
approve approval
inspect inspection
survive survival
die death dead
marry marriage wedding wed
sign signature
refuse refusal decline-to
fail failure
succeed success
lose loss
free gratis
owe debt
accept accept
entitle entitled
lead leader
doubt doubtful
coat jacket
road street
shop store
boat ship vessel
letter note
picture image
automatic automatically
"""

_MORE_ANTONYMS = """
except include · exclude include · increase decrease · keep leave · keep lose · full empty · dusk dawn · laugh weep
laugh cry · melt freeze · lengthen shorten · long short · direct indirect · success fail · successful fail
manual automatic · manual automatically · automatic manually · automatically manually · required optional
mandatory optional · free paid · loud quiet · tall short · gain lose · profit loss · weak strong · better worse
better bad · best worst · often seldom · often never · always seldom · usually seldom · include omit · erase keep
approve postpone · accept reject · refuse agree · refuse allow · ban allow · forbid allow · exclude cover · over under
above below · upper lower · outside inside · majority minority · sit stand · arrive leave · reach leave
same different · true false · known unknown · visible invisible · dependent independent · legal illegal
lock open · lock unlock · drain fill · expand contract · advance retreat · attack defend · borrow lend · import export
permanent temporary · voluntary compulsory · public private · major minor · heavy light · thick thin · wide narrow
deep shallow · near far · rough smooth · sharp blunt · sweet bitter · wet dry · rare common · simple complex
alone together · calm angry · honest dishonest · guilty innocent · alive dead · praise criticise · praise criticize
confirm deny · admit deny · worsen improve · begin end · oldest youngest · elder younger · old young · junior senior
earlier later · early late · previous next · previous following · ascend descend · love hate · like dislike
including except · including without · until after · more fewer · fewer more · less more · fewer greater · higher lower · larger smaller · at_most at_least · only also
"""

CONVERSE_WORDS = "buy sell · give receive · give take · give get · lend borrow · teach learn · win lose · send get · rent let"

EXCLUSIVE = """
spring summer autumn winter
fall_season spring summer winter
morning noon afternoon evening night midnight
north south east west
northern southern eastern western
red orange yellow green blue violet purple brown black white grey
gold silver bronze copper iron
father mother brother sister son daughter uncle aunt husband wife
king queen prince princess
second minute hour day week month year decade century
today yesterday tomorrow
bus train ferry plane car bicycle
coffee tea
male female
monday tuesday wednesday thursday friday saturday sunday
"""
"""Sets of which a thing is one at most: a passage that has another speaks against a sentence."""

STOP = frozenset(
    """
    a about actually all along already also am among an and another any are around as at be became because become been being
    both but by came can come could did do does doing done down each either else enough even ever every everybody
    everyone everything exactly for from further had has have having he her here hers him himself his how however i if in
    indeed into is it its itself just let like made main make makes making many may me might mine more most much must my
    myself neither never no nobody none nor not nothing now of off on once one only onto or other others our ours out over
    own per quite rather really same shall she should since so some somebody someone something still such take taken takes
    than that the their theirs them themselves then there therefore these they thing things this those though through
    thus to too took toward towards under until up upon us use used using very via was we well were what whatever when
    where whereas whether which while who whole whom whose why will with within without would yet you your yours
    according say says said state states stated tell tells told report reports reported explain explains explained claim
    claims claimed mention mentions mentioned insist insists insisted
    think thinks thought believe believes believed passage text document manual
    able way time times possible necessary o'clock oclock clock go goes went gone put able order
    s t d ll re ve m
    """.split()
)
"""Words that a sentence may have without its passage having them. Those that can turn a meaning are read apart."""

INTRODUCING = frozenset(
    """
    add adds added admit admits admitted announce announces announced answer answers answered ask asks asked begin begins
    began call calls called continue continues continued cry cries cried exclaim exclaims exclaimed line lines message
    narration narrator note notes noted observe observes observed quote quotes quoted read reads recall recalls recalled
    remark remarks remarked remember remembers remembered reply replies replied respond responds responded shout shouts
    shouted warn warns warned whisper whispers whispered words wonder wonders wondered write writes wrote
    """.split()
)
"""Words that introduce a quotation, besides those that carry nothing anywhere."""

NEGATIONS = frozenset(
    "not no never nobody none nothing neither nor without nowhere cannot hardly scarcely barely refuse refused refuses "
    "refusing deny denies denied unable impossible".split()
)
"""What turns the words after it."""

UNIVERSAL = frozenset("all every each everyone everybody everything always entire both whole".split())
PARTIAL = frozenset("some several few many half most somebody someone part partly sometimes".split())
LEVELS = {
    **dict.fromkeys("all every each everyone everybody everything always both".split(), "all"),
    **dict.fromkeys("most mostly majority".split(), "most"),
    **dict.fromkeys("some several somebody someone sometimes".split(), "some"),
    **dict.fromkeys("few hardly seldom rarely".split(), "few"),
    **dict.fromkeys("none nobody neither never no".split(), "none"),
    "only": "only", "half": "half", "alone": "only",
}  # fmt: skip
NECESSARY = frozenset("must shall need needs needed require requires required mandatory obliged compulsory has_to have_to".split())
POSSIBLE = frozenset("may can could might allowed permitted able optional".split())
SPECULATIVE = frozenset("might could would perhaps maybe possibly probably likely suspect suspects doubt doubts if".split())
PRONOUNS = frozenset("he she they him her them it his their we us who".split())
FIRST_PERSON = frozenset("i me we us".split())
FIRST_POSSESSIVE = frozenset("my our mine ours".split())
RELATIONS = frozenset(
    "before after above below over under until since more less fewer most least than except including without only "
    "first last inside outside up down during instead earlier later between behind beside near against all some "
    "both always often never seldom rarely".split()
)
"""Words too frequent to support anything, which turn a meaning when they are exchanged."""


def _canonical() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _SYNONYMS.strip().split("\n"):
        words = line.split()
        known = next((table[term_of(word)] for word in words if term_of(word) in table), term_of(words[0]))
        for word in words:
            table.setdefault(term_of(word), known)
    return table


_CANONICAL = _canonical()


@lru_cache(_TERMS_KEPT)
def english_term(word: str) -> str:
    """What an English word is compared by."""
    if word in RELATIONS:
        return word
    term = term_of(word)
    return _CANONICAL.get(term, term)


def _pairs(text: str) -> frozenset[frozenset[str]]:
    pairs = [pair.split() for line in text.split("\n") for pair in line.split("·") if pair.strip()]
    return frozenset(frozenset((english_term(one), english_term(other))) for one, other in pairs)


def _exclusive() -> frozenset[frozenset[str]]:
    return frozenset(
        frozenset((english_term(one), english_term(other)))
        for line in EXCLUSIVE.strip().split("\n")
        for one in line.split()
        for other in line.split()
        if one != other
    )


_NOT_OPPOSED = frozenset(
    frozenset(pair) for pair in (("he", "she"), ("can", "must"), ("from", "to"), ("until", "since"), ("question", "answer"))
)
"""Opposites in questions that a report may exchange, or that are read apart."""
CONVERSE = _pairs(CONVERSE_WORDS)
"""Opposites that say the same when who and whom are exchanged too."""
OPPOSITES = (
    (frozenset(frozenset(_CANONICAL.get(term, term) for term in pair) for pair in QUESTION_ANTONYMS) - _NOT_OPPOSED)
    | _pairs(_MORE_ANTONYMS)
    | _exclusive()
    | CONVERSE
)
"""Pairs of terms of which one speaks against the other."""
