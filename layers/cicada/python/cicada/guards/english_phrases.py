"""English phrases, rewritten to the plain words that they stand for before a question is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WHAT = "(?:what|which)"
_BE = "(?:is|was|are|were)"
_I = "(?:i|we|you|one|people|somebody|someone|customers?|users?)"
_PERSON = "(?:person|one|character|man|woman)"
_ALLOWED = "(?:allowed|permitted|able|eligible)"
_PLACE = "(?:place|location|spot)"
_IN_A_PHRASE = "(?= (?:to|for|in|at|on|with|from|after|before|within|without)\\b|$)"

_POLITE = (
    "(?:can|could|would|will) (?:you|somebody|someone|anybody|anyone) (?:please |kindly |maybe )?"
    "(?:tell|explain to|remind|show|inform|help) (?:me|us)(?: understand)?",
    "(?:can|could|would) you (?:please |kindly )?(?:explain|describe|clarify)",
    "(?:please |kindly )?(?:tell|remind|inform) (?:me|us)",
    "(?:do|does|would) (?:you|anyone|anybody|somebody|someone) (?:happen to )?(?:know|remember|recall)",
    "(?:i |we )?(?:would|d) (?:like|love) to (?:know|understand|learn|find out|hear)",
    "(?:i |we )(?:want|need|wish) to (?:know|understand|learn|find out)",
    "i(?: am| m)? (?:was )?(?:just )?wonder(?:ing)?",
    "(?:i am |i m )?(?:just )?curious",
    "(?:any|have you got any|do you have any) idea",
    "(?:one |quick )?question",
    "is there (?:any )?information (?:on|about)",
    "what do (?:we|you) know about",
    "(?:please )?(?:explain|describe|clarify)(?: to me)?",
)
"""What may stand before a question without being a part of it."""

_COURTESIES: tuple[tuple[str, str], ...] = (
    (r"\bunable to\b", "not can"),
    (r"\b(wo|ca)n't\b", r"\1 not"),
    (r"n't\b", " not"),
    (r"\bcannot\b|\bca not\b", "can not"),
    (r"\bwo not\b", "will not"),
    (r"\b(who|what|when|where|why|how|that|it|he|she|there|here)'s\b", r"\1 is"),
    (r"\b(\w+)'re\b", r"\1 are"),
    (r"\b(\w+)'ve\b", r"\1 have"),
    (r"\b(\w+)'ll\b", r"\1 will"),
    (r"\b(\w+)'d\b", r"\1 would"),
    (r"\b(i)'m\b", r"\1 am"),
    (r"^(?:so|well|and|but|ok|okay|hi|hello|hey|please)[ ,]+", ""),
    (rf"^(?:{'|'.join(_POLITE)})\b[ ,:]*(?:if |whether )?", ""),
    (r"(?<!\bto)[ ,]+(?:please|thanks|thank you)$", ""),
    (r"\b(who|what|which|when|where|why|how) (?:exactly|precisely|actually|really)\b", r"\1"),
    (r"[ ,]+in the (?:script|story|plot)$", ""),
    (r"^is it true that\b", "does"),
    (r"\ba (few|little)\b", r"a\1"),
    (r"\bsuch as\b", "like"),
    (rf"\bhow (?:do|does|can|could|should|would|may|might) {_I}\b|\bhow to\b", "how"),
)
"""Contractions, and what stands before the question."""

_REWRITES: tuple[tuple[str, str], ...] = (
    # What is asked for.
    (
        "^(?:please )?(?:list|name|give me|give|show me|show|identify|state|enumerate)(?: all)?"
        f"(?= the| of| every| each)|^{_WHAT} are the names of",
        "list_of",
    ),
    (rf"^what {_BE} (.+?) called$", r"what is the name of \1"),
    (r"^what (?:does|do|did) (.+?) mean$", r"what mean \1"),
    (r"^(?:who|which|what) (is|was|are) ([\w -]+?), (\w+) or (\w+)$", r"\1 \3 or \4 \2"),
    (r"\bmore expensive\b", "cost more"),
    (r"\bless expensive\b|\bcheaper\b", "cost less"),
    (
        rf"\bhow come\b|\b(?:for )?{_WHAT} reasons?\b|"
        rf"\bwhat {_BE} the (?:reasons?|causes?) (?:for|why|that|behind|of)\b|\bwhat {_BE} the reasons?\b|"
        r"\bthe reasons? (?:why|for|behind|that)\b|\bwhat (?:makes|made|caused|causes)\b",
        "why",
    ),
    (rf"\b(?:at|on|in) {_WHAT} (?:point|moment)\b|\b(?:at )?what point in time\b", "when"),
    (rf"\b(?:at )?{_WHAT} time\b|\bwhat {_BE} the time (?:of|that|when|at which)\b", "what_time"),
    (rf"\b(?:on )?{_WHAT} (?:day|date)\b|\bwhat {_BE} the (?:day|date) (?:of|that|when|on which)\b", "what_day"),
    (
        rf"\b(?:in|at) {_WHAT} {_PLACE}\b|\b{_WHAT} {_PLACE}\b|\bwhereabouts\b|"
        rf"\bwhat {_BE} the (?:location|place|whereabouts) (?:of|where)\b",
        "where",
    ),
    (
        rf"\bin {_WHAT} (?:way|manner)\b|\bby {_WHAT} means\b|"
        rf"\bwhat {_BE} the (?:best |right |correct )?(?:ways?|procedure|process|steps?|method) (?:to|for|of)\b|"
        rf"\bwhat steps (?:do|should|must) {_I} (?:take|follow) to\b|"
        rf"\bwhat do {_I} (?:have|need) to do to\b|\bhow go about\b|"
        rf"\bhow (?:is it|am i|are we|are you) (?:possible|able|supposed) to\b",
        "how",
    ),
    (
        rf"\b{_WHAT} (?:{_PERSON}|individual|people|characters)\b|\bwho {_BE} it that\b|"
        rf"\bwho {_BE} the {_PERSON} (?:who|that)\b|\bwhat {_BE} the name of the {_PERSON} (?:who|that)\b",
        "who",
    ),
    (rf"\bwhat {_BE} it that\b|\bwhat things?\b", "what"),
    (rf"\bwhat {_BE} the (?:total )?(?:number|amount|count) of\b|\bwhat number of\b|\bthe number of\b", "how_many"),
    (r"\bhow many times\b", "how_many times"),
    (r"\bhow (?:often|frequently|regularly)\b|\bwith what frequency\b", "how_often"),
    (r"\bhow many\b", "how_many"),
    (
        rf"\bhow much time\b|\bwhat length of time\b|\bfor how long\b|\bhow long\b|"
        rf"\bwhat {_BE} the (?:duration|length) of\b",
        "how_long",
    ),
    (rf"\bhow old {_BE}\b|\bwhat age {_BE}\b|\bwhat {_BE} the age of\b", "how_old"),
    (r"\bhow (?:much|expensive)\b|\bwhat does it cost to\b", "how_much"),
    (r"\bhow far\b", "how_far"),
    (r"\bwhat is meant by\b|\bwhat is the (?:meaning|definition|sense) of\b", "what mean"),
    (
        r"\bwhat (?:does|do|did) the (policy|manual|handbook|rulebook|guide|contract|terms|rules|agreement|document|"
        r"regulations) (?:say|state|tell us|tell|mention|specify|prescribe) (?:about|on|regarding|concerning)\b",
        r"what is the \1 on",
    ),
    # Permission and duty.
    (rf"\b(?:am|are|is) {_I} {_ALLOWED} to\b", "can"),
    (
        r"\bis it (?:possible|allowed|permitted|ok|okay) (?:to|for me to|for us to)\b|\bis there (?:a|any) way to\b",
        "can",
    ),
    (rf"\b(?:{_BE}|am|be) {_ALLOWED} to\b", "can"),
    (rf"\b(?:{_BE}|am) ((?:the |a |an )?\w+) {_ALLOWED} to\b", r"can \1"),
    (rf"^(?:is|are) (.+?) (?:possible|allowed|permitted|ok|okay){_IN_A_PHRASE}", r"can \1"),
    (rf"^(?:is|are) (.+?) (?:mandatory|required|obligatory|necessary|compulsory){_IN_A_PHRASE}", r"must \1"),
    (r"^can you\b", "do you"),
    (r"\b(?:do|does|did) (\w+(?: \w+)?) (?:have|need|has) to\b", r"must \1"),
    (r"\b(?:have|has|had|need|needs|needed|(?:is|are|am) (?:required|obliged)) to\b", "must"),
    (rf"\b(?:{_BE}|am) supposed to\b", "should"),
    (r"\bis it (?:necessary|required|mandatory|obligatory) (?:to|for me to|that i)\b", "must"),
    (rf"\b{_BE} not able to\b", "can not"),
    # Verbs and prepositions of several words.
    (r"\bpass(?:es|ed)? away\b|\blos(?:es?|t) (?:his|her|their) li(?:fe|ves)\b|\bmeets? (?:his|her) end\b", "die"),
    (r"\b(?:takes?|took|taken) place\b", "happen"),
    (r"\b(?:gets?|got) rid of\b", "delete"),
    (r"\b(?:gives?|gave) up\b", "abandon"),
    (r"\b(?:gives?|gave|given|sends?|sent) back\b", "return"),
    (r"\b(?:get|gets|got|have) (?:my|our|your|the|their) money back\b|\bmoney back\b", "refund"),
    (r"\b(turn|switch)(?:ed|s|ing)? (on|off)\b", r"\1-\2"),
    (r"\b(turn|switch)(?:ed|s|ing|es)? ((?:the |a |my |your )?\w+) (on|off)\b", r"\1-\3 \2"),
    (r"\bset(?:s|ting)? up\b", "install"),
    (r"\bsign(?:s|ed|ing)? up\b", "register"),
    (r"\b(?:sign|log)(?:s|ged|ed|ing)? (?:in|on)(?:to)?\b", "login"),
    (r"\b(?:runs?|ran|running) away\b", "escape"),
    (r"\blook(?:s|ed|ing)? for\b", "seek"),
    (r"\bin favou?r of\b", "for"),
    (r"\bin order to\b", "to"),
    (r"\bprior to\b", "before"),
    (r"\bsubsequent to\b", "after"),
    (r"\bno one\b", "nobody"),
    (r"\bat least\b", "minimum"),
    (r"\bat most\b|\bup to\b|\bno more than\b", "maximum"),
    (r"\bat first\b", "first"),
    (r"\bas well as\b|\balong with\b|\btogether with\b", "and"),
)
_COMPILED, _COMPILED_COURTESIES = (
    tuple((re.compile(pattern), replacement) for pattern, replacement in table) for table in (_REWRITES, _COURTESIES)
)
_TAG = re.compile(
    r",\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)(?:n't| not)? "
    r"(?:it|he|she|they|you|we|i|there)\s*\??$|,\s*right\s*\??$"
)
"""*…, didn't she?*: asks for agreement, not for anything else."""
_PUNCTUATION = re.compile(r"[^\w\s',-]+")


def courteous(text: str) -> str:
    """A normalised question with its contractions in full, without courtesies, and without signs but for , - and '."""
    text, tags = _TAG.subn("", text.strip())
    if tags:
        text = f"does {text}"
    return _rewritten(" ".join(_PUNCTUATION.sub(" ", text).split()), _COMPILED_COURTESIES)


def plain(text: str) -> str:
    """What :func:`courteous` gives, with its phrases rewritten."""
    return _rewritten(text, _COMPILED)


def _rewritten(text: str, table: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement, text)
    return text
