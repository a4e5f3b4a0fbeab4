"""Forms of English words: which are forms of one word, which tell of the past, and which make a passive."""

from __future__ import annotations

from functools import lru_cache

from cicada.index.lexical.words import stemmed

_ENGLISH = "eng"
_FORMS_KEPT = 16_384
_SHORTEST_BASE = 2

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
"""Irregular forms. *better* and *best* stay apart from *good* by the degree that is read before."""

PARTICIPLES = frozenset(
    (
        "said told seen taken slain given made known thought found left lost hidden broken bought sold sent paid kept "
        "held brought stolen written read spoken met run begun chosen felt fought forgotten forgiven eaten drunk "
        "driven built burnt caught won worn thrown taught sworn sung shot rung ridden grown drawn blown bitten "
        "understood spent shown meant led heard dealt dug done fed frozen hung laid lent sought shaken sunk struck "
        "torn wound withdrawn bound beaten put set hit cut let lit shut hurt cast"
    ).split()
)
"""Irregular participles: after a form of *be* they make a passive. The regular ones end in -ed."""

PAST = frozenset(
    (
        "said told went came saw took gave got made knew thought found left lost hid broke lied bought sold sent paid "
        "kept held brought stole wrote spoke met ran began chose fell felt fought forgot forgave ate drank drove built "
        "burnt caught won wore threw taught swore slew slept sang shot sat stood rang rose rode grew flew drew blew "
        "bit became woke understood spent showed meant led heard dealt dug fed froze hung laid lent sought shook sank "
        "struck swam tore wound withdrew bound died"
    ).split()
)
"""Irregular forms that tell of the past, where no form of *be* stands before them."""
_NO_ED = frozenset(
    "need indeed speed feed seed bed red breed bleed deed weed greed freed exceed proceed succeed".split()
)


def stem(word: str) -> str:
    """An English word's stem, irregular forms included."""
    return stemmed(LEMMAS.get(word, word), _ENGLISH).partition("\t")[0]


def has_ed(word: str) -> bool:
    """Whether a word has the ending of a regular past or participle."""
    return word.endswith("ed") and word not in _NO_ED


@lru_cache(_FORMS_KEPT)
def bases(word: str) -> frozenset[str]:
    """The words that a word may be an inflected form of, itself among them.

    A stem is too coarse to tell: *important* and *imported*, *Marie* and *Mary* have the same.
    """
    found = {word, LEMMAS.get(word, word)}
    if word.endswith(("ies", "ied")):
        found.add(f"{word[:-3]}y")
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        found |= {word[:-1], word[:-2]} if word.endswith("es") else {word[:-1]}
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            cut = word[: -len(ending)]
            found |= {cut, f"{cut}e"}
            if cut[-1:] == cut[-2:-1]:
                found.add(cut[:-1])
    return frozenset(base for base in found if len(base) >= _SHORTEST_BASE or base == word)
