"""English function words and number words, as questions use them: what may be left out, and what gives a part."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED = _words(
    "a an the that is are was were be been being am do does did doing done has have had having will would shall "
    "actually really basically ever of s"
)
"""Words that carry no part of what is asked, once phrases, tense, negations, numbers and question words were read."""

PERSONS = {
    "i": "i", "we": "we", "you": "you", "my": "my", "mine": "my", "our": "our", "ours": "our", "your": "your",
    "yours": "your",
}  # fmt: skip
"""Who is asking and who is asked. Left out, and compared apart: in many questions they stand for anybody."""

FIXED = {
    "he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "hers": "she", "they": "they", "them": "they",
    "their": "they", "theirs": "they", "me": "me", "us": "us",
    "himself": "himself", "herself": "herself", "themselves": "themselves", "myself": "myself", "yourself": "yourself",
    "itself": "itself", "can": "can", "could": "can", "may": "can", "might": "might", "must": "must",
    "should": "should", "ought": "should", "without": "with", "unless": "if-not", "everyone": "everybody",
    "everybody": "everybody", "everything": "everything", "all": "all", "every": "every", "each": "every",
    "someone": "somebody", "anyone": "somebody", "anybody": "somebody", "somebody": "somebody",
    "something": "something", "anything": "something", "only": "only", "last": "last", "final": "last", "first": "1",
    "once": "once", "twice": "twice", "single": "single", "half": "half", "dozen": "12", "others": "others",
    "another": "another", "shipping": "delivery", "delivery": "delivery",
    "this": "this", "these": "these", "those": "those", "one": "one",
    "have_got": "have", "its": "it",
}  # fmt: skip
"""Words with a fixed reading, before any stemming."""

MARKERS = {
    "to": "to", "toward": "toward", "towards": "toward", "onto": "onto", "into": "into", "from": "from",
    "before": "before", "after": "after", "than": "than", "until": "until", "till": "until", "since": "since",
    "against": "against", "by": "by", "instead": "instead", "like": "like", "unlike": "unlike",
}  # fmt: skip
"""Prepositions whose word has a fixed place in the order of a sentence."""

LOOSE_MARKERS = _words(
    "in on at for with about during within inside outside throughout regarding concerning as between among amongst "
    "over under underneath near behind above below beneath beside besides beyond through across along around round "
    "off out up down per via despite upon past opposite"
)
"""Prepositions whose phrases can stand anywhere."""

_LIKE_ONE = (
    _words("about regarding concerning"),
    _words("in inside"),
    _words("among amongst"),
    _words("on upon"),
    _words("around round"),
    _words("under underneath beneath"),
)
"""Groups of which one may stand for the other. *For*, *over*, *to* and *from* are alone."""
_WITH_A_NUMBER = _words("in on at during")
_ON_A_TOPIC = _words("about on for regarding concerning")
TOPICAL = _words("policy polici rule regul guidelin law advic term section chapter")
"""Terms whose *on*, *about* and *for* are one: *the policy on refunds*, *for refunds*."""


def interchangeable(one: str, other: str, *, counted: bool, topical: bool) -> bool:
    """Whether two prepositions make the same of the word after them.

    Args:
        one: a preposition.
        other: another, or the same.
        counted: whether the word is a thing with a number (*episode 3*), for which *in*, *on* and *at* are one.
        topical: whether it belongs to a word such as *policy*.
    """
    if one == other or any(one in group and other in group for group in _LIKE_ONE):
        return True
    both = {one, other}
    return (counted and both <= _WITH_A_NUMBER) or (topical and both <= _ON_A_TOPIC)


BE = _words("is are was were be been being am")

NEGATIONS = {
    "not": "not", "cannot": "not", "no": "no", "never": "never", "nobody": "nobody", "nothing": "nothing",
    "none": "none", "neither": "neither", "nor": "nor", "without": "without", "nowhere": "nowhere", "hardly": "hardly",
}  # fmt: skip

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

DEGREES = {"better": "more", "worse": "more", "best": "most", "worst": "most"}
