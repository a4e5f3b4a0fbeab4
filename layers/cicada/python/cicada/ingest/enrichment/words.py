"""Words that tell names from other capitalised words."""

from __future__ import annotations

from functools import cache

from cicada.index.lexical.stopwords import FREQUENT

PARTICLES = frozenset(
    "of de del della di da do dos das du des la le van von der den ter ten zu zum al el bin ibn y e af av".split()
)
"""Small words that stand inside of names."""
OF_WHAT = frozenset(
    "university college school academy faculty institute institution department ministry office bureau board bank "
    "house chamber council court church cathedral museum library theatre order society league union association "
    "federation kingdom republic state states city county province duchy bay gulf isle island cape sea lake port "
    "tower bridge gate battle siege treaty peace fire flood war book song lord game".split()
)
"""What is named by an ``of``; other names that one stands between are two."""
HONORIFICS = frozenset(
    "mr mrs ms miss mx dr prof professor sir dame lord lady duke duchess baron baroness count countess king queen "
    "prince princess captain commander colonel general major lieutenant sergeant corporal admiral constable "
    "inspector detective officer judge father mother brother sister uncle aunt auntie reverend pope saint "
    "president minister senator mayor herr frau doktor monsieur madame mme mademoiselle señor señora don doña sr "
    "sra signor signora".split()
)
"""Left out before names, and no names by themselves."""

_DATES = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december mon tue tues wed thu thurs fri sat sun jan feb mar apr jun jul aug sep "
    "sept oct nov dec christmas easter lent spring summer autumn winter montag dienstag mittwoch donnerstag "
    "freitag samstag sonntag januar februar märz mai juni juli oktober dezember lundi mardi mercredi jeudi "
    "vendredi samedi dimanche janvier février mars avril juin juillet août septembre octobre novembre décembre "
    "lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto "
    "septiembre octubre noviembre diciembre am pm bc ad"
)
_TONGUES = (
    "english french german spanish italian portuguese dutch japanese chinese korean russian arabic latin greek "
    "polish swedish danish norwegian finnish turkish american british european asian african"
)
_FORMATS = (
    "iso iec din en ansi astm ieee rfc jis nm mm cm ml mg psi pdf csv json xml html css url uri api http https "
    "www sql ok id usb pin faq tbd tba n/a eta asap diy cd dvd tv pc it ai ui ux cpu gpu ram rom ssd led lcd gps "
    "sms vat hr pr qa rpm ac dc hz kg km note warning caution danger important tip todo and not or must shall may "
    "never always do don't stop yes no on off all any i ii iii iv v vi vii viii ix x xi xii"
)
_REFERENCES = (
    "section chapter page figure fig table step appendix part volume vol article clause item note line row column "
    "level phase version act scene episode example exhibit annex question answer rule day week unit lesson form "
    "option type"
)
_OPENERS = (
    "yesterday today tomorrow tonight later earlier then however meanwhile once perhaps maybe still instead "
    "afterwards suddenly finally eventually soon again also now never always often sometimes usually please thank "
    "thanks hello hi yes no oh ah well sure okay nobody somebody everybody everyone someone anyone nothing "
    "something everything ask tell contact call see use set turn open close check press remove replace install "
    "send write read give take put keep let make find get go come look show say call add run start stop wait "
    "click select choose enter type visit meet follow turn clean drain fill refer note ensure remember imagine "
    "consider according despite although though because since unless until while whether before after during "
    "between among under over above below behind beside near inside outside within without beyond against towards "
    "across along around through throughout each every both either neither several many most few some such "
    "another other same only even just about except including regarding concerning following given based like "
    "unlike when where why how who whom whose which what this that these those there here it its he she they we "
    "you my your our their his her is are was were does did has have had can could will would should may might "
    "must"
)
_COMMON = frozenset(f"{_DATES} {_TONGUES} {_FORMATS} {_OPENERS}".split())


@cache
def common_words(language: str) -> frozenset[str]:
    """Words that are no names by themselves, in lower case.

    Dates, tongues, formats, what sentences often begin with, and the most frequent words of English and of a language.

    Args:
        language: ISO 639-3.
    """
    return _COMMON | FREQUENT.get(language, frozenset()) | FREQUENT["eng"]


DESCRIBING = frozenset(
    "old new great good little big young poor dear first second third last next high low upper lower north south east "
    "west red black white green blue".split()
)
"""Words that begin names, and are none by themselves."""
REFERENCES = frozenset(_REFERENCES.split())
"""No names where a number follows."""
NAMING_FIELDS = frozenset(
    "name names person author owner customer client contact company supplier vendor manufacturer maker brand city town "
    "country location site place station speaker character by reporter engineer technician manager keeper".split()
)
"""Words in the names of columns whose values are names."""
NARRATORS = frozenset({"narrator", "narration", "narrative", "stage direction", "stage directions"})
"""Speakers who are nobody."""
