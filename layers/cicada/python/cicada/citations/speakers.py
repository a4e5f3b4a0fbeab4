"""Whether it is the passage's speaker whom a claim has say something."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cicada.citations.claim import Claim
from cicada.citations.codes import Objection
from cicada.citations.known import Known
from cicada.citations.quotes import holds
from cicada.citations.reading import term_in
from cicada.citations.segments import Turn, segment_of, turns_of
from cicada.citations.terms import matched
from cicada.text.tokens import normalised, tokens

_SAYS = (
    "say says said tell tells told claim claims claimed explain explains explained admit admits admitted insist "
    "insists "
    "insisted state states stated announce announces announced declare declares declared reveal reveals "
    "revealed mention "
    "mentions mentioned complain complains complained confess confesses confessed report reports reported reply "
    "replies "
    "replied answer answers answered ask asks asked assert asserts asserted remark remarks remarked note notes noted "
    "recall recalls recalled remember remembers remembered deny denies denied warn warns warned promise promises "
    "confirm confirms confirmed reproach reproaches argue argues argued believes believed thinks thought "
    "sagt sagte erklärt erklärte behauptet behauptete berichtet berichtete gesteht gestand beteuert meint meinte gibt "
    "erzählt erzählte bestreitet versichert antwortet fragt dit disait affirme explique raconte avoue déclare prétend "
    "assure répond demande reconnaît dice dijo afirma cuenta contó explica admite declara confiesa asegura responde "
    "disse racconta spiega ammette sostiene dichiara confessa risponde si lamenta diz contou conta explicou zegt zei "
    "vertelt beweert verklaart говорит сказал сказала утверждает рассказывает признаёт признает объясняет"
)
_TELLER = re.compile(
    rf"^\W*(?:(?:according to|laut|selon|d'après|según|secondo|segundo|volgens|по словам)\s+(?P<by>[^,:]{{2,40}}?),|"
    rf"(?P<subject>[^,:;]{{2,40}}?)\s+(?:[^\W\d_]+ly\s+|also\s+)?(?:{'|'.join(_SAYS.split())})\b)",
    re.IGNORECASE,
)
_UNSPACED_TELLER = re.compile(
    r"^\W*(?P<subject>[^\s，、。「」：]{1,8}?)(?:によると|によれば|は[^。]*(?:と(?:言|述|話|語|認|説明|主張|答)|そう)|"
    r"(?:说|說|表示|承认|认为|声称|称|告诉|解释|坦言|抱怨|透露))"
)
_NOBODY = frozenset(
    "he she it they we i you who one passage text document author narrator speaker script manual report study guide "
    "rules page section table er sie es il elle ils elles on él ella lui lei ele ela hij zij он она они".split()
)
_REPORTED = re.compile(
    r"\b(?:said|says|told|tells|claimed|claims|asked|admitted|explained|promised|warned|according|swore|swears|wrote|"
    r"sagte|sagt|erzählte|meinte|behauptete|laut|dit|disait|raconté|selon|dijo|dice|contó|según|disse|detto|secondo|"
    r"zei|zegt|сказал|сказала|говорит)\b|と言|说|告诉",
    re.IGNORECASE,
)


def other_speaker(claim: Claim, cited: Sequence[Known]) -> Objection | None:
    """Somebody whom a claim has say what somebody else says in the passages; None for nobody."""
    found = _UNSPACED_TELLER.match(claim.text) if claim.unspaced else _TELLER.match(claim.told)
    if found is None:
        return None
    groups = found.groupdict()
    subject = groups.get("by") or groups.get("subject") or ""
    who = [word for word in tokens(normalised(subject)) if len(word) > 1]
    if not who or _NOBODY & set(who):
        return None
    reasons = []
    for known in cited:
        turns = turns_of(known.source.text)
        if turns:
            reason = _in_turns(claim, known, turns, subject, who)
        elif known.voice:
            reason = _by_voice(known, subject, who, spaced=not claim.unspaced)
        else:
            return None
        if reason is None:
            return None
        reasons.append(reason)
    return Objection("contradicted", reasons[0]) if reasons else None


def _by_voice(known: Known, subject: str, who: Sequence[str], *, spaced: bool) -> str | None:
    """Why it is not whose words the passage is: it speaks of them as of somebody else, and reports nothing."""
    text = normalised(known.source.text)
    voice = set(tokens(known.voice))
    if voice & set(who) or any(part in subject for part in (known.source.locator.voice() or "").split()):
        return None
    heard = tokens(text) if spaced else [text]
    spoken_of = any(word in heard if spaced else subject in text for word in who)
    if not spoken_of or _REPORTED.search(known.source.text):
        return None
    return f"the passage is by {known.source.locator.voice()}, not by {subject.strip()}"


def _in_turns(claim: Claim, known: Known, turns: Sequence[Turn], subject: str, who: Sequence[str]) -> str | None:
    """Why it is not in the turns of who is said to say it, where it is in those of somebody else."""
    keys = {turn.key for turn in turns}
    mine = {key for key in keys if set(tokens(normalised(key))) & set(who)}
    if not mine:
        return None
    own = " ".join(turn.text for turn in turns if turn.key in mine)
    for key in sorted(keys - mine):
        others = " ".join(turn.text for turn in turns if turn.key == key)
        if claim.quotes:
            if all(holds(others, quote) and not holds(own, quote) for quote in claim.quotes):
                return f"{key} says it, not {subject.strip()}"
            continue
        keyed = {term_in(word, claim.language) for one in keys for word in tokens(normalised(one))}
        told = [word.term for word in claim.content if word.term not in keyed]
        theirs, there = segment_of(others, known.language).terms, segment_of(own, known.language).terms
        beyond = [term for term in told if matched(term, theirs) and not matched(term, there)]
        owned = [term for term in told if matched(term, there) and not matched(term, theirs)]
        if len(beyond) > 1 and not owned:
            return f"{key} says it, not {subject.strip()}"
    return None
