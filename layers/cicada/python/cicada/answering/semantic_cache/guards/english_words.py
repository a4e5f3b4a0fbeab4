"""English words as questions use them: what may be left out, what means the same, and what means the opposite.

A group of synonyms is tight on purpose: its words can stand for each other in a question about a script, a manual, a
policy or a record without another answer being right. A missing synonym costs a saving; a wrong one, a wrong answer.
"""

from __future__ import annotations

from cicada.index.lexical.words import stemmed

_ENGLISH = "eng"


def stem(word: str) -> str:
    """An English word's stem, irregular forms included."""
    base = LEMMAS.get(word, word)
    return stemmed(base, _ENGLISH).partition("\t")[0]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED = _words(
    "a an the this that these those is are was were be been being am do does did done doing have has had having will "
    "would shall get gets got getting please actually exactly really just simply basically precisely currently also so "
    "then well there it its ever any some of and s ll ve re d m o hey hi hello thanks ok okay quickly briefly own "
    "kindly anyway anyhow specific particular certain certainly definitely possibly perhaps maybe truly indeed "
    "if whether true about concerning regarding respective such as"
)
"""Words that carry no part of what is asked, once phrases, negations, numbers and question words were read."""

PERSONS = {
    "i": "first", "me": "first", "my": "first", "mine": "first", "we": "first", "us": "first", "our": "first",
    "you": "second", "your": "second", "yours": "second", "one": "second",
}  # fmt: skip
"""Who is asking and who is asked: left out, unless both stand in one question (*what do I owe you*)."""

FIXED = {
    "he": "he", "him": "he", "his": "he", "himself": "he", "she": "she", "her": "she", "hers": "she",
    "herself": "she", "they": "they", "them": "they", "their": "they", "theirs": "they", "themselves": "they",
    "can": "can", "could": "can", "may": "can", "might": "can", "must": "must", "should": "should", "ought": "should",
    "without": "with", "unless": "if-not", "everyone": "everybody", "everybody": "everybody", "everything": "all",
    "all": "all", "every": "all", "each": "all", "someone": "somebody", "anyone": "somebody", "anybody": "somebody",
    "somebody": "somebody", "something": "something", "anything": "something", "only": "only", "last": "last",
    "final": "last", "first": "1", "once": "1", "twice": "2", "single": "1", "half": "half", "dozen": "12",
    "others": "other", "another": "other",
}  # fmt: skip
"""Words with a fixed reading, before any stemming."""

MARKERS = {
    "to": "to", "toward": "to", "towards": "to", "onto": "to", "into": "to", "from": "from", "before": "before",
    "after": "after", "than": "than", "until": "until", "till": "until", "since": "since", "against": "against",
    "by": "by", "instead": "instead", "like": "like", "unlike": "unlike",
}  # fmt: skip
"""Prepositions that give the word after them its part: these are compared."""

LOOSE_MARKERS = _words(
    "in on at for with about during within inside throughout regarding concerning as between among amongst over"
)
"""Prepositions whose phrases stand anywhere. Others, such as *near* and *under*, are words like any other."""

_LIKE_ONE = (
    _words("in on at inside during within throughout"),
    _words("about on for regarding concerning over"),
    _words("between among amongst"),
)
"""Groups of which one may stand for the other: *the policy on, for, about refunds*."""


def interchangeable(one: str, other: str) -> bool:
    """Whether two loose prepositions can mean the same; none (as in *refund policy*) can stand for any."""
    return one == other or not one or not other or any(one in group and other in group for group in _LIKE_ONE)


BE = _words("is are was were be been being am get gets got getting")

NEGATIONS = _words("not no never nobody nothing none neither nor cannot without nowhere hardly")

NUMBERS = {
    name: str(value)
    for value, name in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
     "hundred": "100", "thousand": "1000", "million": "1000000"}  # fmt: skip
ORDINALS = {
    name: str(value)
    for value, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split(),
        1,
    )
}
COUNTED = _words(
    "episode chapter season scene act part page section level article step stage volume book day week month year round "
    "session issue clause paragraph appendix figure table item rule question version line floor room night phase "
    "quarter tier model unit lesson mission quest edition"
)
"""What numbers name: *episode 3*, *the third episode*. The number is then a part of the word."""

_IRREGULAR = """
say: said says · tell: told · go: went gone goes · come: came · see: saw seen · take: took taken · give: gave given
get: gotten · make: made · know: knew known · think: thought · find: found · leave: left · lose: lost
hide: hid hidden · break: broke broken · die: died dies dying · lie: lied lies lying · buy: bought · sell: sold
send: sent · pay: paid · keep: kept · hold: held · bring: brought · steal: stole stolen · write: wrote written
read: reads · speak: spoke spoken · meet: met · run: ran · begin: began begun · choose: chose chosen
fall: fell fallen · feel: felt · fight: fought · forget: forgot forgotten · forgive: forgave forgiven
eat: ate eaten · drink: drank drunk · drive: drove driven · build: built · burn: burnt · catch: caught · win: won
wear: wore worn · throw: threw thrown · teach: taught · swear: swore sworn · slay: slew slain · sleep: slept
sing: sang sung · shoot: shot · sit: sat · stand: stood · ring: rang rung · rise: rose risen · ride: rode ridden
grow: grew grown · fly: flew flown · draw: drew drawn · blow: blew blown · bite: bit bitten · become: became
wake: woke woken · understand: understood · spend: spent · show: shown · mean: meant · lead: led · hear: heard
have: had · deal: dealt · dig: dug · do: did done · feed: fed · freeze: froze frozen · hang: hung · lay: laid
lend: lent · seek: sought · shake: shook shaken · sink: sank sunk · strike: struck · swim: swam swum
tear: tore torn · wind: wound · withdraw: withdrew withdrawn · bind: bound · beat: beaten · person: persons people
child: children kids kid · man: men · woman: women · wife: wives · knife: knives · thief: thieves · foot: feet
good: better best · bad: worse worst · old: elder · big: bigger biggest · let: lets · put: puts · set: sets
hit: hits · cut: cuts
"""
LEMMAS = {
    form: lemma.strip()
    for line in _IRREGULAR.strip().split("\n")
    for lemma, forms in (group.split(":") for group in line.split("·"))
    for form in forms.split()
}
"""Irregular forms. *better* and *best* stay apart from *good* by the degree that is read before, see ``DEGREES``."""

DEGREES = {"better": "more", "worse": "more", "best": "most", "worst": "most"}

PARTICIPLES = _words(
    "said told seen taken slain given made known thought found left lost hidden broken bought sold sent paid kept "
    "held brought stolen written read spoken met run begun chosen felt fought forgotten forgiven eaten drunk "
    "driven built burnt caught won worn thrown taught sworn sung shot rung ridden grown drawn blown bitten "
    "understood spent shown meant led heard dealt dug done fed frozen hung laid lent sought shaken sunk struck "
    "torn wound withdrawn bound beaten put set hit cut let lit shut hurt cast"
)
"""Irregular participles: after a form of *be* they make a passive. The regular ones end in -ed."""

_SYNONYMS = """
say state mention remark declare
begin start commence
finish end conclude
happen occur transpire
buy purchase
price cost fee charge
cancel terminate
refund reimburse reimbursement
allow permit
permission authorisation authorization
fix repair mend
die perish
alive live survive
go travel
kill murder slay assassinate
depart leave
arrive reach
hide conceal stash
steal rob theft
discover find
seek search look
shut close
show display
alter change modify
delete remove erase
add append
create make
build construct
choose select pick
use utilise utilize employ
help assist aid assistance
require need
get obtain receive acquire
send dispatch
ship deliver delivery shipping shipment
answer reply respond response
ask enquire inquire
think believe
want wish desire
try attempt
betray deceive
scared afraid frightened
angry furious mad
happy glad
sad unhappy
big large huge
small little tiny
fast quick rapid
hard difficult
easy simple
wrong incorrect
correct accurate
job occupation profession
house home
car automobile vehicle
mother mom mum
father dad
doctor physician
boss employer
worker employee staff
holiday vacation
film movie
picture image photo photograph
phone telephone
mobile cellphone
email e-mail mail
letter note
purpose aim goal objective
meaning significance
reason cause
result outcome consequence
problem issue trouble
mistake error fault
rule regulation
contract agreement
document file
manual handbook guide guidebook
password passcode
login sign-in signin
account profile
customer client
company firm business
shop store
bill invoice
money cash
insurance coverage cover
guarantee warranty
limit maximum cap
minimum least
duration length
location place
origin source
type kind sort
method way procedure process
step instruction
device machine appliance
battery accumulator
screen monitor
install set-up setup installation
reset reboot restart
upgrade update
turn-on switch-on activate enable
turn-off switch-off deactivate disable
connect link attach
disconnect detach unlink
damage harm
injure hurt wound
attack assault
guard protect defend
enemy foe
friend ally pal
lover sweetheart
murderer killer
town village
city metropolis
sea ocean
boat ship vessel
forest woods
stone rock
evil wicked
brave courageous
clever smart intelligent
odd strange weird
promise vow pledge
yell shout scream
cry weep
laugh giggle
confess admit
refuse decline reject
argue quarrel
marry wed
trust rely
meet encounter
return give-back
borrow loan
submit hand-in
apply application
register enrol enroll sign-up registration
request claim
complain complaint
verify confirm
eligible qualify entitled
mandatory compulsory obligatory
optional voluntary
expire lapse
renew extend renewal
author writer
narrator storyteller
character figure
ending finale
opening intro
talk speak conversation
discuss discussion
destroy ruin wreck
rescue save
escape flee
follow pursue chase
deadline cutoff
approve authorise authorize
colour color
centre center
"""


def _canonical() -> dict[str, str]:
    """By stem: the stem that stands for its group."""
    table: dict[str, str] = {}
    for line in _SYNONYMS.split("\n"):
        group = [stem(word) for word in line.split()]
        for word in group:
            table.setdefault(word, table.get(group[0], group[0]))
    return table


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
from to · he she · can must · must should · can should · monthly yearly · refund charge · refund pay · promote demote
parent child · teacher student · buyer seller · employer employee · boss worker · hero villain · predecessor successor
cause result · reason result · question answer · minimum maximum · ally enemy · encrypt decrypt · follow lead
"""
ANTONYMS: frozenset[frozenset[str]] = frozenset()
"""Pairs of terms that make opposite questions of the same sentence."""


def _opposites() -> frozenset[frozenset[str]]:
    pairs = [pair.split() for line in _ANTONYMS.split("\n") for pair in line.split("·") if pair.strip()]
    return frozenset(frozenset((term_of(one), term_of(other))) for one, other in pairs)


def term_of(word: str) -> str:
    """What a content word is compared by: the stem that stands for it and its synonyms."""
    fixed = FIXED.get(word) or MARKERS.get(word)
    if fixed is not None:
        return fixed
    root = stem(word)
    return _CANONICAL.get(root, root)


_CANONICAL = _canonical()
ANTONYMS = _opposites()

GENERIC = frozenset({"?"}) | frozenset(
    term_of(word)
    for word in "script story plot character person thing something company customer user text question information "
    "detail situation case matter order content source series people somebody still yet already have they".split()
)
"""Terms that a question may have more of than another, and still ask the same."""
