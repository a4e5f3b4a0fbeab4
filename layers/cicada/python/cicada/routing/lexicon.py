"""Word classes that phrases refer to as ``@name``. A new word is one word here."""

from __future__ import annotations

_CLASSES: dict[str, str] = {
    # --- who and what is spoken of ---
    "any": "any anything anybody anyone something somewhere anywhere some much many enough",
    "my": "my our mine",
    "pronoun": "he she they him her them his hers their theirs it",
    "person": "he she they him her them his hers their theirs",
    "be": "is are was were be been 's am",
    "aux": "do does did is are was were can could will would should has have had may might must 's am",
    "modal": "can could may might must will would",
    "fact_asked": "who whom whose where when which",
    "asking": "who whom whose where when which what how why is are was were do does did can could should would will has have had",
    "embedded": "how why what whether",
    "unit": "episode episodes chapter chapters act scene scenes part arc page pages line lines volume session route day",
    "place_in_text": "scene scenes line lines quote quotes passage passages part page chapter episode moment place bit "
    "dialogue sentence paragraph message exchange conversation where when how who what which",
    "amount": "many much old tall long far often big deep high large heavy wide late early fast soon young",
    "text_source": "text script story book novel game source evidence anything something scene chapter episode passage passages canon dialogue manual record log it that this there narrative narration ending timeline facts clues everything",
    "say": "say says said ask asks asked reply replies replied answer answers answered cry cries cried shout shouts "
    "shouted whisper whispers whispered mutter mutters muttered tell tells told",
    # --- the asker's own store ---
    "profile": "profile profiles dossier dossiers bio bios",
    "record": "profile profiles note notes notebook entry entries record records dossier dossiers bio bios bookmark bookmarks annotation annotations journal memo memos",
    "kind": "characters character locations location places people persons items theories theory npcs npc factions "
    "quotes scenes suspects clues timelines pages stuff things everything anything relationships groups monsters",
    "kept": "saved noted stored recorded bookmarked written jotted kept logged created added made wrote filed collected",
    "keep": "save note jot write put add record store log file append insert keep pin bookmark attach stick enter",
    "manage": "show view see list display open pull bring load fetch get give read print browse edit update change modify "
    "correct fix set delete remove erase clear drop wipe rename merge copy duplicate export download import archive "
    "create make start build new generate draft begin add append put save write record note attach insert share move "
    "search find scrap discard trash undo restore revise extend replace check overwrite amend tag combine split",
    "alter": "edit update modify delete remove erase rename merge duplicate export archive create append overwrite amend "
    "discard trash revise",
    "this": "this that it these those following",
    # --- claims and what speaks for them ---
    "theory": "theory theories hypothesis hypotheses hunch hunches conjecture headcanon",
    "idea": "theory theories hypothesis hypotheses hunch hunches conjecture headcanon claim claims idea suspicion guess "
    "notion assumption interpretation reading view thesis premise argument possibility assertion belief statement "
    "accusation speculation",
    "claim": "think believe suspect bet claim reckon assume argue maintain suppose guess posit propose conclude wager swear doubt hypothesize hypothesise theorize theorise speculate presume contend",
    "certain": "convinced sure certain positive confident persuaded",
    "adverb": "pretty quite fairly really very still just also now strongly almost always absolutely firmly honestly "
    "actually totally completely increasingly kind sort of starting beginning to personally do rather half seriously "
    "truly would can not 100 so have had got",
    "evidence": "evidence proof proofs clue clues hint hints indication indications sign signs argument arguments support "
    "passage passages quote quotes facts backing confirmation grounds textual",
    "backing": "evidence proof proofs clue clues hint hints indication indications argument arguments support",
    "for": "for against",
    "uphold": "support supports supported back backs backed confirm confirms contradict contradicts refute refutes disprove disproves prove proves corroborate corroborates undermine undermines validate validates substantiate substantiates suggest suggests imply implies indicate indicates debunk debunks falsify falsifies contradicting supporting supported disagrees disagree confirming",
    "test": "refute debunk disprove validate falsify confirm corroborate verify rebut challenge substantiate disconfirm",
    "weigh": "refute debunk disprove validate falsify confirm corroborate verify rebut challenge substantiate test check "
    "evaluate assess analyze analyse examine critique support prove attack defend judge weigh review rate investigate "
    "discuss consider probe scrutinize strengthen question try explore compare criticize criticise disconfirm",
    "likely": "plausible likely probable possible conceivable believable credible convincing reasonable true tenable solid "
    "consistent realistic correct sound",
    "holds": "hold up|water",
    # --- complex questions ---
    "analyse": "compare contrast analyze analyse explain explore summarize summarise discuss outline interpret examine evaluate elaborate assess dissect unpack reconstruct juxtapose clarify investigate synthesize synthesise recap illustrate reconcile correlate trace rank retell recount paraphrase untangle",
    "analysis": "analysis comparison explanation overview summary breakdown synopsis recap rundown discussion interpretation evaluation examination reconstruction walkthrough timeline chronology",
    "depth": "depth detail detailed thorough full complete comprehensive critical deep close",
    "difference": "difference differences similarity similarities parallel parallels contrast contrasts distinction "
    "commonalities comparison connection connections relationship relation relations interplay tension link",
    "differ": "differ differs differed different differently alike similar contrast contrasts unlike dissimilar",
    "develop": "work works affect affects affected influence influences influenced shape shapes shaped change changes changed relate relates related develop develops developed evolve evolves evolved contribute contributes contributed mirror mirrors mirrored symbolize symbolise reflect reflects reflected connect connects connected linked fit fits tie ties tied matter matters interact interacts drive drives driven portray portrays portrayed foreshadow foreshadows explain lead leads led function functions represent represents cause causes caused impact impacts impacted combine combines transform transforms undermine undermines stack scale justify justifies intertwined react reacts respond responds treat treats depict depicts handle handles approach approaches view views viewed perceive perceives",
    "meaning": "significance symbolism meaning role theme themes motif motifs importance consequences implications impact influence evolution development dynamics dynamic causes relevance message psychology arc nature function",
    # --- the service and its rules ---
    "service": "subscription subscriptions refund refunds refunded invoice invoices pricing gdpr billing chargeback unsubscribe paypal autorenew iban overcharged",
    "business": "policy policies price prices pricing cost costs fee fees charge charges charged plan plans account accounts "
    "password data privacy payment payments bill bills billed billing discount discounts terms cancellation cancelation "
    "tier tiers licence license licensing trial receipt receipts vat tax taxes refund refunds invoice invoices "
    "subscription subscriptions renewal quota quotas rate limits sla conditions cookies compliance retention coupon voucher "
    "premium membership gdpr rates guidelines cancellations",
    "account": "account subscription plan password data payment payments card bill invoice invoices receipt receipts billing "
    "membership trial conversations chats uploads email login refund money history questions queries privacy documents "
    "files messages order purchase licence license seat seats workspace information username address",
    "treat": "store keep retain sell share log track collect use encrypt train process offer accept charge refund bill delete "
    "support give provide handle send save bill renew expose comply read protect record monitor analyze require have cost",
    "data": "data information conversations questions chats messages files uploads documents queries history scripts personal email emails cookies prompts content logs script text file document",
    "you": "you your yours cicada",
    "plan": "pro premium basic free team teams enterprise standard starter student business plus paid monthly annual yearly "
    "family individual",
    "leave": "cancel unsubscribe upgrade downgrade pay renew resubscribe",
    "jot": "save note jot write record store log bookmark pin remember memorize memorise",
    "put": "put add append insert file stick attach enter include",
    "change": "update change modify correct fix set delete remove erase clear rename edit tag mark replace revise amend put add",
    "speak": "speak speaks spoke speaking point points pointing argue argues hint hints hinting",
    "said": "said says asked asks cried cries whispered whispers replied replies answered answers shouted shouts muttered mutters",
    "number": "one two three four five six seven eight nine ten first second third fourth last 1 2 3 4 5 6 7 8 9 10 11 12 i ii iii iv v",
    "remark": "that this it i you we those these",
    "asked": "who whom whose where when which",
    "container": "bag bags room box locker lockers board file files photo photos staff folder",
    "preposition": "in on at to from with by for of under behind before after during about",
    "relative": "who whom whose which that where when what why how whether if because than like while",
    "finite": "is are was were must has have had can could did will would does never",
    "speaker": "i you we it this that there he she they here what who these those me my",
    "safe": "safe fair right reasonable plausible accurate correct justified legitimate wrong",
    "cheapest": "cheapest best right smallest biggest cheaper paid free largest",
    # --- chat ---
    "chat": "hi hello hey heya hiya yo hallo thanks thank thx ty tysm cheers bye goodbye cya welcome morning evening afternoon night day good great nice cool awesome amazing perfect excellent wonderful brilliant fantastic lovely super sweet fine neat ok okay okey alright yes yeah yep yup no nope sure right lol haha hahaha hehe rofl lmao wow oh ah aha hm hmm um uh well so very much a an the lot lots many all that this it is was be been for now today tonight tomorrow later soon again then there and or but just too you your are i am me my we us have has had really truly help helpful helping answer answers job work best bot friend buddy mate everyone everybody folks guys dear sir madam team cicada assistant please sorry testing test hope helps helped long weekend week one see done doing going to by in at with of appreciate appreciated useful kind fun funny interesting joke chat time back here until till next meet meeting glad happy enjoy enjoyed not bad will must go leaving off bed sleep rest take care god ciao ping love like loved liked got understood noted makes sense made enough nothing else thing things everything quick fast clear smart clever genius hero legend star big huge lifesaver need needed wanted as always old little bit such out x xx d p on up what 's want say around found typos questions more monday tuesday wednesday thursday friday saturday sunday trying call case wrong fault mistake minute moment second break lunch coffee home never know try",
}

LEXICON: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _CLASSES.items()}

_MISTYPED_CLASSES = [
    "profile",
    "record",
    "manage",
    "theory",
    "idea",
    "backing",
    "test",
    "weigh",
    "analyse",
    "analysis",
    "difference",
    "service",
    "business",
    "leave",
]
_MISTYPED_WORDS = [
    "what",
    "which",
    "where",
    "when",
    "show",
    "list",
    "hello",
    "thanks",
    "thank",
    "good",
    "morning",
    "evening",
    "night",
    "afternoon",
    "goodbye",
    "character",
    "characters",
    "believe",
    "think",
    "suspect",
    "convinced",
    "should",
    "could",
    "would",
    "does",
    "explain",
    "theory",
    "support",
    "supports",
]
KEYWORDS = frozenset(_MISTYPED_WORDS).union(*(LEXICON[name] for name in _MISTYPED_CLASSES))
"""The words that decide routes, and are looked for under their misspellings too."""
