"""Word classes that phrases refer to as ``@name``. A new word is one word here; a class may contain others."""

from __future__ import annotations

# How questions are built.
_BUILD = """
fact_asked: who whom whose where when which
asking: @fact_asked what how why is are was were do does did can could should would will has have had
preposition: in on at to from with by for of under behind before after during about
aux: do does did is are was were can could will would should has have had may might must 's am
finite: is are was were must has have had can could did will would does never
relative: @fact_asked that what why how whether if because than like while
speaker: i you we it this that there he she they here what who these those me my
dialogue: i you me we us your my
remark: that this it i you we those these
amount: many much old tall long far often big deep high large heavy wide late early fast soon young
number: one two three four five six seven eight nine ten first second third fourth last 1 2 3 4 5 6 7 8 9 10 11 12 i
    ii iii iv v
person: he she they him her them his hers their theirs
"""
# The text and its parts.
_TEXT = """
unit: episode episodes chapter chapters act scene scenes part arc page pages line lines volume session route day
place_in_text: scene scenes line lines quote quotes passage passages part page chapter episode moment place bit
    dialogue sentence paragraph message exchange conversation where when how who what which
text_source: text script story book novel game source evidence anything something scene chapter episode passage
    passages canon dialogue manual record log it that this there narrative narration ending timeline facts clues
    everything
said: said says asked asks cried cries whispered whispers replied replies answered answers shouted shouts muttered
    mutters
"""
# What askers keep.
_STORE = """
profile: profile profiles dossier dossiers bio bios
record: @profile note notes notebook entry entries record records bookmark bookmarks annotation annotations journal
    memo memos
kind: characters character locations location places people persons items theories theory npcs npc factions quotes
    scenes suspects clues timelines pages stuff things everything anything relationships groups monsters
item: character location npc place person item faction
kept: saved noted stored recorded bookmarked written jotted kept logged created added made wrote filed collected
jot: save note jot write record store log bookmark pin remember memorize memorise
put: put add append insert file stick attach enter include
change: update change modify correct fix set delete remove erase clear rename edit tag mark replace revise amend put
    add
alter: edit update modify delete remove erase rename merge duplicate export archive create append overwrite amend
    discard trash revise
manage: show view see list display open pull bring load fetch get give read print browse edit update change modify
    correct fix set delete remove erase clear drop wipe rename merge copy duplicate export download import archive
    create make start build new generate draft begin add append put save write record note attach insert share move
    search find scrap discard trash undo restore revise extend replace check overwrite amend tag combine split
this: this that it these those following
"""
# Claims, and what speaks for them.
_CLAIMS = """
theory: theory theories hypothesis hypotheses hunch hunches conjecture headcanon
idea: @theory claim claims idea suspicion guess notion assumption interpretation reading view thesis premise
    possibility assertion belief accusation speculation
telling: alibi alibis story stories explanation explanations account accounts testimony testimonies statement statements
    confession timeline chronology case logic reasoning conclusion evidence facts dates times details version excuse
    motive motives clue clues pieces argument arguments
claim: think believe suspect bet claim reckon assume argue maintain suppose guess posit propose conclude wager swear
    doubt hypothesize hypothesise theorize theorise speculate presume contend
certain: convinced sure certain positive confident persuaded
culprit: culprit killer murderer thief traitor spy mastermind villain impostor liar
stranger: @culprit stranger strangers accomplice accomplices twin twins double witness witnesses man men woman women
    people persons
deed: took lied killed murdered stole hid wrote knew faked forged staged framed planted poisoned drowned burned swapped
    switched betrayed planned warned hired paid followed met told sent fled buried destroyed pretended invented
    borrowed sold bought overheard tricked
acted: @deed moved opened closed locked unlocked saw heard used removed replaced changed found lost broke threw dropped
    pushed came went left gave brought stayed slept woke kept made did let helped watched returned entered learned
passive: is are was were be being been am get gets got has have had not
any: any anything anybody anyone something somewhere anywhere some much many enough
backing: evidence proof proofs clue clues hint hints indication indications argument arguments support
container: bag bags room box locker lockers board file files photo photos staff folder
evidence: @backing sign signs passage passages quote quotes facts backing confirmation grounds textual
uphold: support supports supported back backs backed confirm confirms contradict contradicts refute refutes disprove
    disproves prove proves corroborate corroborates undermine undermines validate validates substantiate substantiates
    suggest suggests imply implies indicate indicates debunk debunks falsify falsifies contradicting supporting
    disagrees disagree confirming
speak: speak speaks spoke speaking point points pointing argue argues hint hints hinting
test: refute debunk disprove validate falsify confirm corroborate verify rebut challenge substantiate disconfirm
weigh: @test test check evaluate assess analyze analyse examine critique support prove attack defend judge weigh
    review rate investigate discuss consider probe scrutinize strengthen question try explore compare criticize
    criticise
likely: plausible likely probable possible conceivable believable credible convincing reasonable true tenable solid
    consistent realistic correct sound
safe: safe fair right reasonable plausible accurate correct justified legitimate wrong
"""
# Complex questions.
_COMPLEX = """
analyse: compare contrast analyze analyse explain explore summarize summarise discuss outline interpret examine
    evaluate elaborate assess dissect unpack reconstruct juxtapose clarify investigate synthesize synthesise recap
    illustrate reconcile correlate trace rank retell recount paraphrase untangle
analysis: analysis comparison explanation overview summary breakdown synopsis recap rundown discussion interpretation
    evaluation examination reconstruction walkthrough timeline chronology
depth: depth detail detailed thorough full complete comprehensive critical deep close
difference: difference differences similarity similarities parallel parallels contrast contrasts distinction
    commonalities comparison connection connections relationship relation relations interplay tension link
differ: differ differs differed different differently alike similar contrast contrasts unlike dissimilar
develop: work works affect affects affected influence influences influenced shape shapes shaped change changes changed
    relate relates related develop develops developed evolve evolves evolved contribute contributes contributed mirror
    mirrors mirrored symbolize symbolise reflect reflects reflected connect connects connected linked fit fits tie
    ties tied matter matters interact interacts drive drives driven portray portrays portrayed foreshadow foreshadows
    explain lead leads led function functions represent represents cause causes caused impact impacts impacted combine
    combines transform transforms undermine undermines stack scale justify justifies intertwined react reacts respond
    responds treat treats depict depicts handle handles approach approaches view views viewed perceive perceives
meaning: significance symbolism meaning role theme themes motif motifs importance consequences implications impact
    influence evolution development dynamics dynamic causes relevance message psychology arc nature function
"""
# The service and its rules.
_SERVICE = """
service: subscription subscriptions refund refunds refunded invoice invoices pricing gdpr billing chargeback
    unsubscribe paypal autorenew iban overcharged
business: policy policies price prices pricing cost costs fee fees charge charges charged plan plans account accounts
    password data privacy payment payments bill bills billed billing discount discounts terms cancellation cancelation
    tier tiers licence license licensing trial receipt receipts vat tax taxes refund refunds invoice invoices
    subscription subscriptions renewal quota quotas rate limits sla conditions cookies compliance retention coupon
    voucher premium membership gdpr rates guidelines cancellations
document: policy policies use statement notice
account: account subscription plan password data payment payments card bill invoice invoices receipt receipts billing
    membership trial conversations chats uploads email login refund money history questions queries privacy documents
    files messages order purchase licence license seat seats workspace information username address
data: data information conversations questions chats messages files uploads documents queries history scripts personal
    email emails cookies prompts content logs script text file document
treat: store keep retain sell share log track collect use encrypt train process offer accept charge refund bill delete
    support give provide handle send save renew expose comply read protect record monitor analyze require have cost
treated: stored used shared kept sold encrypted deleted trained training train read seen
plan: pro premium basic free team teams enterprise standard starter student business plus paid monthly annual yearly
    family individual
cheapest: cheapest best right smallest biggest cheaper paid free largest
leave: cancel unsubscribe upgrade downgrade pay renew resubscribe
"""
# Small talk.
_CHAT = """
agent: ai intelligence assistant bot robot human machine person chatbot computer program model girl boy man woman
praise: best awesome great welcome amazing helpful kind funny brilliant genius star legend hero lifesaver sweet nice
    good smart wonderful
tongue: english german french japanese spanish chinese korean italian russian latin dutch portuguese polish swedish
    turkish arabic hindi
chat: question something anything again tired laugh ask talking speaking human go ugh alrighty okey dokey xd 1 2 let 3
    t_t working hi hello hey heya hiya yo hallo thanks thank thx ty tysm cheers bye goodbye cya welcome morning
    evening afternoon night day good great nice cool awesome amazing perfect excellent wonderful brilliant fantastic
    lovely super sweet fine neat ok okay alright yes yeah yep yup no nope sure right lol haha hahaha hehe rofl lmao
    wow oh ah aha hm hmm um uh well so very much a an the lot lots many all that this it is was be been for now today
    tonight tomorrow later soon then there and or but just too you your are i am me my we us have has had really truly
    help helpful helping answer answers job work best bot friend buddy mate everyone everybody folks guys dear sir
    madam team cicada assistant please sorry testing test hope helps helped long weekend week one see done doing going
    to by in at with of appreciate appreciated useful kind fun funny interesting joke chat time back here until till
    next meet meeting glad happy enjoy enjoyed not bad will must leaving off bed sleep rest take care god ciao ping
    love like loved liked got understood noted makes sense made enough nothing else thing things everything quick fast
    clear smart clever genius hero legend star big huge lifesaver need needed wanted as always old little bit such out
    x xx d p on up what 's want say around found typos questions more monday tuesday wednesday thursday friday
    saturday sunday trying call case wrong fault mistake minute moment second break lunch coffee home never know try
"""


def _classes(*blocks: str) -> dict[str, frozenset[str]]:
    """Read lines of ``name: word word @class…``; a line that begins with a space goes on with the one before."""
    classes: dict[str, frozenset[str]] = {}
    for line in "".join(blocks).replace("\n ", " ").split("\n"):
        name, _, words = line.partition(": ")
        listed = [classes[word[1:]] if word.startswith("@") else (word,) for word in words.split()]
        if name:
            classes[name] = frozenset(word for group in listed for word in group)
    return classes


LEXICON = _classes(_BUILD, _TEXT, _STORE, _CLAIMS, _COMPLEX, _SERVICE, _CHAT)
"""All classes by name."""

_MISTYPED_CLASSES = """
profile record manage theory idea backing test weigh analyse analysis difference service business leave fact_asked
"""
_MISTYPED_WORDS = """
what show hello thanks thank good morning evening night afternoon goodbye character characters believe think suspect
convinced should could would does explain support supports
"""
KEYWORDS = frozenset(_MISTYPED_WORDS.split()).union(*(LEXICON[name] for name in _MISTYPED_CLASSES.split()))
"""The words that decide routes, and are looked for under their misspellings too."""
