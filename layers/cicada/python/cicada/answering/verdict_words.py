"""The words of answers about theories: those that judge, and those that only tell what is kept, sought or not done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from cicada.citations.abstention import abstains
from cicada.profiles.record import Side

STATEMENT = "\ufffc"
"""Stands for one of the user's statements, or for a passage's words, in a sentence that is read."""

_FOR = (
    r"supported|supports|confirmed|confirms|proven|proved|proves|true|correct|likely|probable|plausible|favou?rs|"
    r"justified|well[\s-]founded|"
    r"in\s+favou?r|belegt|bestätigt|bewiesen|wahr|richtig|stimmt|zutreffend|vraie?|prouvée?|confirmée?|cierta?|cierto|"
    r"verdader[ao]|confirmad[ao]|probad[ao]|ver[ao]|confermat[ao]|waar|bevestigd|正しい|支持"
)
_AGAINST = (
    r"contradicted|contradicts|refuted|refutes|disproved|disproven|disproves|debunked|false|incorrect|wrong|unlikely|"
    r"improbable|implausible|untenable|unfounded|widerlegt|widersprochen|falsch|unwahr|fausse?|faux|réfutée?|fals[ao]|refutad[ao]|"
    r"weerlegd|onwaar|間違|否定"
)
_THEORY = r"(?:theor(?:y|ies)|hypothes[ie]s|idea|hunch|suspicion|claim|guess)"
_IS = r"(?:['’](?:s|re)\b|\s+(?:is|are|was|were|must\s+be|looks?|seems?|appears?|stays?|sounds?))"
_CLAUSE = r"[^.!?;:,—–]"
_GOING_ON = r"so|and|but|because|therefore|hence|thus|which|since|as|while|und|aber|also|denn|weil"
_ADJECTIVES = r"true|false|wrong|right|correct|incorrect|likely|unlikely|plausible|implausible|wahr|falsch|richtig"
_VERDICTS: dict[Side, tuple[re.Pattern[str], ...]] = {
    "for": (
        re.compile(rf"\b(?:{_FOR})\b|正しい|支持", re.IGNORECASE),
        re.compile(rf"\b{_THEORY}\s+(?:\w+\s+){{0,2}}?(?:stands|holds|fits|works)\b|\bholds?\s+up\b", re.IGNORECASE),
        re.compile(
            rf"(?:\b(?:{_THEORY}|it|this|that|you)|{STATEMENT}){_IS}\s+(?:\w+\s+){{0,2}}?"
            r"(?:right|sound|valid|convincing|certain|a\s+fact)\b",
            re.IGNORECASE,
        ),
        re.compile(
            r"\b(?:evidence|passages?|text|script|everything)\s+(?:\w+\s+){0,2}?(?:shows?|points?|suggests?)\b",
            re.IGNORECASE,
        ),
        re.compile(r"\bverdict\b\s*(?:is|would\s+be|:|–|—)\s*(?:yes|positive|guilty)\b", re.IGNORECASE),
    ),
    "against": (
        re.compile(rf"\b(?:{_AGAINST})\b|間違|否定", re.IGNORECASE),
        re.compile(rf"\b{_THEORY}\s+(?:\w+\s+){{0,2}}?(?:fails|falls|collapses)\b", re.IGNORECASE),
        re.compile(r"\bverdict\b\s*(?:is|would\s+be|:|–|—)\s*(?:no|negative)\b", re.IGNORECASE),
    ),
}
_NEGATED = re.compile(r"\b(?:not|never|cannot|hardly|nicht|kaum|pas|no|niet)\b|n['’]t\b", re.IGNORECASE)

_NOTHING = re.compile(
    rf"""
    \b(?:no|nothing|none|nobody|neither|not\s+(?:any|one|a\s+single)|nichts|kein\w*|niemand)\b
    (?!\s+(?:doubt|question|one\s+c|less|longer|way|wonder|zweifel))
    (?:(?!\b(?:{_ADJECTIVES}|{_GOING_ON}|doubt|deny|denies)\b){_CLAUSE})*?
    \b(?:evidence|passages?|found|supports?|supported|contradicts?|contradicted|speaks?|says?|mentions?|confirms?|refutes?
      |proves?|disproves?|bears|belege?n?|gefunden|spricht|sagt|(?<=no\s)theor(?:y|ies)|theorien?)\b
    (?:(?!\b(?:{_GOING_ON})\b){_CLAUSE})*
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A negative finding: to the end of its clause, whatever would support or contradict."""
_WHETHER = re.compile(
    rf"\b(?:say|tell|judge|know|decide|determine|clear|open|undecided|sagen|offen)\b[\s,]+(?:whether|if|ob)\b{_CLAUSE}*",
    re.IGNORECASE,
)
_NEITHER = re.compile(
    rf"(?:\b(?:neither|not|cannot|nor|weder)\b|n['’]t\b){_CLAUSE}{{0,40}}?\b(?:{_FOR})\b\s+(?:n?or|noch|oder)\s+"
    rf"(?:\w+\s+)?(?:{_AGAINST})\b",
    re.IGNORECASE,
)
_KEEPING = (
    r"(?:keep|kept|have|hold|noted?|recorded|saved?|filed|stored|stated|deleted|removed|dropped|forgotten|refined|"
    r"reworded|changed|replaced|updated|listed|notiert|gespeichert|gelöscht|geändert)"
)
_REPORTED = re.compile(
    rf"\b(?:i|you|we|ich|du)\b[^.!?;]{{0,30}}?\b(?:{_KEEPING}\b[^.!?;:]{{0,40}}?\b(?:{_THEORY}|theorien?)"
    rf"|theorien?\b[^.!?;:]{{0,20}}?\b{_KEEPING})\b[^.!?;:]{{0,20}}?"
    rf"(?:\bthat\b|\bdass\b|:)(?P<said>(?:(?!,\s+(?:{_GOING_ON})\b(?!\s+(?:that|dass)\b)|[;—–.!?]).)+)",
    re.IGNORECASE,
)
"""*I have noted your theory that …*: what is said after it is the theory, up to where the sentence goes on."""
_ASKS_BACK = re.compile(
    r"^\W*(?:shall|should|may|can)\s+i\b|^\W*(?:do|did|would|could|can)\s+you\s+(?!not\b)|^\W*(?:which|what)\b"
    r"|^\W*(?:soll|darf)\s+ich\b|^\W*(?:meinst|willst|möchtest)\s+du\b|^\W*welche",
    re.IGNORECASE,
)
_TAG = re.compile(
    r",\s*(?:\w+n['’]t|is|are|was|does|do|did|right|no|not|correct|true|oder|nicht)\b[^,]*\?$", re.IGNORECASE
)
_TELLS = re.compile(
    rf"""
    ^\W*(?:(?:so|now|yes|and|done|also|no)\b[\s,:.—–-]*)*(?:
      (?:i|you|we)(?:['’]ve|['’]d|\s+have|\s+had|\s+do|\s+did)?(?:\s+(?:not|n['’]t|never|only|now|already|still|also|\w+ly|to))*
        \s+(?:yet\s+)?{_KEEPING}\b[^;]*\b(?:{_THEORY}|verdicts?|statement|it|them|this|that|one|evidence|passages?)\b
    | (?:i|we)(?:['’]ve|\s+have)?(?:\s+(?:not|\w+ly))*\s+(?:searched|looked|checked|gathered|sought|weighed)\b
    | (?:i|we)\s+(?:could|can|do|did|was|were|am|have)(?:\s+not|n['’]t|not)\b[^;]*
    | (?:i|we)\s+(?:give|gave|record|recorded)\s+no\b[^;]*
    | (?:please\s+)?(?:tell|name|give|ask|say|state|choose|try|look|let|put)\b
    | (?:ich\s+habe|du\s+hast)\b[^;]*\b(?:theorie\w*|gesucht|gesehen)\b
    )
    | ^[^;]*\b(?:{_THEORY}|verdict|statement|evidence|change|deletion|it|they|this|theorie)\b[^;]{{0,60}}?
      \b(?:(?:is|are|was|were|stays?|remains?|has\s+been|have\s+been|had\s+been|has|have|bleibt|ist|wurde)\b\s*
        (?:(?:not|now|still|already|once|yet|just|noch|jetzt|\w+ly)\s+)*
        (?:recorded|kept|noted|made|open|offen|refined|reworded|deleted|removed|changed|updated|stated|filed|listed|unchanged
          |undecided|unjudged|gathered|saved|done|gone|stored|without|on\s+record|in\s+version|version|another\s+version
          |no\s+verdict|no\s+evidence|none|notiert|gelöscht|gespeichert|as\s+(?:it|they)\s+(?:was|were)
          |your\s+only\s+one|not)\b
      | (?:is|says|reads)\s+now\b | now\s+(?:is|says|reads)\b)
    | \bverdict\s*(?::|is)\s*(?:open|none|offen)\b
    | ^\W*(?:(?:this|here)\s+is\s+)?(?:the|your)\s+history\s+of\b
    | ^\W*(?:done|noted|deleted|gone|ok|okay|all\s+right|erledigt|gelöscht|notiert)\b[.!]*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NOT_DONE = re.compile(
    r"^\W*i\s+(?:could|can)(?:\s*not|n['’]t)\b|\b(?:was|were)(?:\s+not|n['’]t)\s+(?:made|done|changed|recorded|deleted|kept)\b",
    re.IGNORECASE,
)
"""What could not be done; the reason follows."""
_SPLIT = re.compile(rf"[;:—–]|,\s+(?=(?:{_GOING_ON}|or|yet|though|although)\b)|\s(?=(?:so|but|because|therefore)\s)")
_BARE = frozenset(
    """
    a an the so thus hence therefore then overall on balance in all my your this that these it its theory hypothesis
    idea claim suspicion hunch guess verdict conclusion is are was be been by from of to and but not clearly strongly
    well best more than evidence text script passages passage says say here both either for against as would i call
    found seems seem appears looks
    die der das deine theorie ist also damit somit von text
    """.split()
)
"""Words that say nothing beside a verdict."""
_BESIDE_WORDS = 2
"""Words of a clause that are too few to state anything."""
_OTHER: dict[Side, Side] = {"for": "against", "against": "for"}
_OTHER_VERDICT = re.compile(
    r"\bverdict\b\s*(?:is|:|–|—)\s*(?!open|offen|none|on\b|not\b|now\b|still\b|recorded|no\b)\w+", re.IGNORECASE
)
"""A verdict in whatever words."""
_WORD = re.compile(r"[^\W\d_]+")


def verdicts_in(told: str) -> frozenset[Side]:
    """On which sides a sentence judges: empty for one that does not.

    What it denies to have found, what it leaves open, and what it only reports as a theory of the user's do not count.

    Args:
        told: the sentence, :data:`STATEMENT` in the place of the user's statements and of quotations.
    """
    if told.rstrip().endswith("?") and _ASKS_BACK.match(told) and not _TAG.search(told):
        return frozenset()
    left = _REPORTED.sub(lambda found: found.group().replace(found["said"], " "), told)
    for excused in (_NEITHER, _WHETHER, _NOTHING):
        left = excused.sub(" ", left)
    sides = set[Side]()
    for clause in re.split(rf"{_SPLIT.pattern}|,", left):
        turned = _NEGATED.search(clause) is not None
        for side, patterns in _VERDICTS.items():
            if any(pattern.search(clause) for pattern in patterns):
                sides.add(_OTHER[side] if turned else side)
    if _OTHER_VERDICT.search(left):
        sides = sides or {"for", "against"}
    return frozenset(sides)


def only_judges(told: str) -> bool:
    """Whether a sentence has no words but those of a verdict and of the theory that it is about."""
    left = told
    for patterns in _VERDICTS.values():
        for pattern in patterns[:1]:
            left = pattern.sub(" ", left)
    return all(word.lower() in _BARE for word in _WORD.findall(left))


def needs_no_evidence(told: str) -> bool:
    """Whether a sentence that does not judge states nothing: it asks, or tells of what is kept, of a search, or of what
    could not be done, in each of its clauses."""
    if told.rstrip().endswith("?") or abstains(told):
        return True
    if _REPORTED.search(told):
        told = _REPORTED.sub(lambda found: found.group().replace(found["said"], " "), told)
    first, *others = [clause.strip() for clause in _SPLIT.split(told)]
    if not first.replace(STATEMENT, "").strip(" ,*•-"):
        return False
    if _NOT_DONE.search(first) and STATEMENT not in told:
        return True
    kinds = [_kind(clause) for clause in (first, *others)]
    return "tells" in kinds and "states" not in kinds


def only_tells_of_keeping(told: str) -> bool:
    """Whether a sentence begins a list of what is kept."""
    return told.rstrip().endswith(":") and _TELLS.search(told) is not None


def _kind(clause: str) -> Literal["tells", "beside", "states"]:
    if abstains(clause) or _NOTHING.search(clause) or _WHETHER.search(clause) or _NEITHER.search(clause):
        return "tells"
    bare = re.sub(rf"^(?:{_GOING_ON}|or|yet|though|although)\s+", "", clause, flags=re.IGNORECASE)
    if _TELLS.search(bare):
        return "tells"
    words = _WORD.findall(bare)
    return "beside" if len(words) <= _BESIDE_WORDS or words[0].lower() in ("not", "neither", "nor") else "states"


def masked(sentence: str, statements: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A sentence with :data:`STATEMENT` in the place of each statement that it repeats, and those statements."""
    found: list[str] = []
    for statement in sorted(statements, key=len, reverse=True):
        for pattern in _patterns(statement):
            sentence, count = pattern.subn(f" {STATEMENT} ", sentence)
            if count:
                found.append(statement)
    return " ".join(sentence.split()), tuple(found)


def _patterns(statement: str) -> Iterator[re.Pattern[str]]:
    words = re.findall(r"\w+", statement)
    if len(words) > 1:
        yield re.compile(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b", re.IGNORECASE)
