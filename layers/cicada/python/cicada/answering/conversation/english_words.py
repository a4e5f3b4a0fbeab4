"""English words by what they do in a question."""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


AUXILIARIES = _set(
    "do does did is are was were am be been being can could will would shall should has have had may might must"
)
WH = _set("who whom whose what which where when why how")
DETERMINERS = _set("the a an my your our some any every each no another all both several many few most two three")
PREPOSITIONS = _set(
    "in on at to from with by for of under behind before after during about into onto over without within near through "
    "against between among beside inside outside until since across around towards toward upon"
)
SUBORDINATORS = _set(
    "when after before while if because since that who whom which whose where why how although though unless until as "
    "and but or than so whether what once"
)
PUNCTUATION = _set(", . ? ! ; : -")
STARTERS = _set("and but or so then also wait hmm hm ok okay well oh yes no yeah please ah right now")
"""What may stand before a question without being part of it."""
CONTINUING = _set("and but or so then")

_HE = "he him his himself"
_SHE = "she her hers herself"
_THEY = "they them their theirs themselves"
_IT = "it its itself"
PERSONAL = _set(f"{_HE} {_SHE} {_THEY} {_IT}")
PEOPLES = _set(f"{_HE} {_SHE} {_THEY}")
"""Those that persons are referred to by."""
POSSESSIVES = _set("his their its")
THINGS = _set(f"{_THEY} {_IT}")
"""Those that things are referred to by."""
DEMONSTRATIVES = _set("this that these those")

INDEFINITE_PERSONS = _set("someone somebody anyone anybody everyone everybody nobody person people others")
PERSONS = INDEFINITE_PERSONS | _set(
    "man woman boy girl child children men women doctor detective inspector constable police policeman officer captain "
    "sailor sailors pirate pirates guest guests host king queen prince princess duke lord lady knight wizard wizards "
    "elf elves dwarf dwarves player players character characters innkeeper priest nun monk nurse teacher student "
    "students servant servants maid butler cook driver neighbour neighbor friend friends brother brothers sister "
    "sisters mother father parents son daughter uncle aunt cousin wife husband widow couple family twins twin baby "
    "killer murderer thief suspect suspects witness witnesses victim author narrator writer reader readers hero "
    "heroine villain soldier soldiers guard guards spy agent crew passenger passengers lawyer judge merchant farmer "
    "keeper stranger visitor visitors owner customer customers user users speaker boss manager lover ghost dog cat"
)
"""Nouns that *he*, *she* and *they* can refer to."""

FUNCTION = (
    AUXILIARIES
    | WH
    | DETERMINERS
    | PREPOSITIONS
    | SUBORDINATORS
    | PUNCTUATION
    | STARTERS
    | PERSONAL
    | DEMONSTRATIVES
    | _set(
        "i you we us me your mine yours not there here 's too either as well again ever never just only even still "
        "exactly really very much more most less least else other others one ones same such next first second third "
        "last long many often far old soon both either neither none anyone anything everything something nothing "
        "anybody somebody everybody nobody someone ever up out than like away back another former latter later "
        "afterwards afterward earlier otherwise instead alone possible true false actually exactly precisely together "
        "it them let lets us kind sort way ways"
    )
)
LIGHT = _set(
    "happen happens happened happening say says said saying mean means meant do doing done go goes went going gone get "
    "gets got work works worked follow follows followed tell told give gave show showed explain elaborate repeat "
    "continue quote compare example detail details reason reasons know knows knew think thinks thought see saw become "
    "became end ended matter matters order name names find found number ago page chapter episode scene line time "
    "colour color age win won list start begin began come came comes"
)
"""Words that tell little of what is asked about."""

COMPARATIVES = _set(
    "older younger bigger smaller taller shorter longer better worse earlier later faster slower richer poorer "
    "stronger weaker larger greater higher lower deeper heavier lighter closer nearer cheaper easier harder safer "
    "smarter hotter colder newer darker brighter braver kinder crueler happier sadder further farther"
)
PLEONASTIC = _set(
    "true possible safe clear known likely necessary important hard easy difficult mean matter take cost feel make "
    "sense worth allowed permitted common normal legal certain time far cold dark hot late early quiet warm foggy "
    "rain rains raining rained snow snows snowing snowed midnight noon night morning evening like so too"
)
"""After *it*, words with which it refers to nothing."""
HERE = _set("story script book novel game text corpus play tale manual document archive")
"""What *this* means the whole corpus with."""
TIMES = _set("night day evening morning afternoon time moment year week point way")

REQUESTS = (
    "tell me more", "say more", "go on", "continue", "carry on", "more details", "in more detail", "elaborate",
    "are you sure", "anything else", "what else", "how do you know", "what makes you say", "for example",
    "give an example", "what if", "says who", "say so", "do so", "done so", "in what way", "in what order",
    "what do you mean", "did you mean", "do you mean", "is there more", "anyone else", "somebody else", "anywhere else",
    "the opposite", "repeat",
)  # fmt: skip
"""Phrases that make sense after something alone."""
POINTERS = (
    "the other", "the others", "the former", "the latter", "the other one", "another one", "which one", "which ones",
    "the same", "the first one", "the second one", "the third one", "the last one", "the first option",
    "the second option", "the rest", "the previous", "the above", "the next one", "better one", "bigger one",
    "that one", "this one", "each other's",
)  # fmt: skip
"""Phrases that point at something named before."""
