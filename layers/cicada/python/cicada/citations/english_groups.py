"""English words that can stand for each other in a report of a passage, and words that mean the opposite.

The synonyms are wider than those that questions are compared by: here every other word of the sentence is compared too.
"""

from __future__ import annotations

SYNONYMS = """
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
hate dislike detest loathe
like enjoy
cancel call-off
end finish terminate
happen occur take-place
eat consume
sleep nap rest
carry transport convey
travel go ride
pay spend
guest visitor
lamp light
warn alert
flood inundate
damage attack
steep slope gradient
locate situate
occupy hold
contain include comprise
watch observe
see notice
look gaze
cover include
work function operate
stop halt
make produce manufacture
cut trim prune
join enter
win prevail
hurt injure injury wound
meet meeting gather assemble assembly
protect guard shield
move shift
remove take-away detach
put place set lay
raise lift
empty vacant
quarrel argument dispute
money cash
rich wealthy
clever intelligent bright
tidy neat
old elderly aged
new recent
happy glad pleased
sad unhappy
angry furious cross
strange odd peculiar
important significant essential vital crucial
enough sufficient
main principal primary
whole entire complete
various different several
near close nearby
silent quiet
obligatory mandatory compulsory required must
optional voluntary
suitable appropriate proper
broken defective faulty
dangerous hazardous risky
permission consent approval
fee charge
wage salary pay
customer client
firm company business
town village city
river stream
storm tempest
fire blaze
house building
top summit peak
edge rim
purpose aim goal
result outcome finding
plan scheme project
rule regulation
law statute
duty obligation
right entitlement
paper document
goods items products merchandise
rubbish waste garbage trash
machine device appliance apparatus unit
switch button
wire cable
tap faucet
lift elevator
autumn fall
rest remainder
store warehouse
soldier troop
sailor seaman
priest vicar parson reverend
teacher instructor
pupil student
drawing sketch
found establish
lead head run manage
own possess
need want
hire engage recruit employ
dismiss fire sack
resign quit
return give-back bring-back
swear vow
lie deceive
cry weep
shout yell
hit strike
throw toss
pull drag
push shove
hurry rush
wait await
search look
visit call
explain clarify
admit concede confess
promise pledge
propose suggest recommend advise
advice recommendation
oppose object resist
agree consent concur
measure gauge
weigh weight
heat warm
cool chill
mix stir blend combine
bake roast
wash rinse clean
wipe dry
store keep
open unlock
connect attach link
test trial
check inspect examine
record log register
fix mend repair
bend curve
break crack
fold crease
hang suspend
spread distribute
share divide split
"""
"""One group a line."""

MORE_ANTONYMS = """
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
including except · including without · until after · first last · before after · above below · over under · up down
more less · most least · inside outside · all some
all none · always never · often never · uncle aunt · bright dark · bright dim · solid hollow
solid liquid · noisy quiet · careful careless · polite rude · generous mean · patient impatient
visible hidden · natural artificial · ancient modern · odd even · central outer · inner outer · fresh stale · raw cooked
ripe unripe · sober drunk · single married · tight loose · rough calm · bold shy · lazy busy · awake asleep
arrival departure
entrance exit · victory defeat · peace war · war truce · birth death · sunrise sunset · ceiling floor · roof cellar
attic cellar
beginning end · start end · begin finish · assemble dismantle · attach detach · pull push · float sink
freeze thaw · heat cool
fill empty · tighten loosen · widen narrow · accelerate brake · earn spend · save spend · save waste
reward punish · bless curse
thank blame · praise blame · forgive blame · invite expel · welcome expel · join leave · unite divide
create destroy · build demolish
build destroy · hope despair · smile frown · pass fail · catch drop · lift lower · stretch shrink · multiply divide
whisper shout
maximum minimum · max min · plus minus · positive negative · active passive · local remote · local global
domestic foreign
native foreign · urban rural · vertical horizontal · upper bottom · downstairs upstairs · inland coastal · hit miss
attend miss
remember forget · prove disprove · agree refuse · consent refuse · volunteer refuse · full half · full part-time
more fewer · less more · fewer greater · higher lower · larger smaller · at_most at_least · only also
"""
"""Pairs, besides those that questions are compared by."""
