"""Whether a user's message asks to have something deleted, and what: a model's word for it is not enough.

A wish is a word of deletion where a sentence begins, or after what asks for something (*please*, *can you*, *I want
to*), without a negation before it. What is to be deleted are the words after it (in German, those before it too), as
far as they are names of what is kept and words such as *my profile of*: *delete Corin's profile* names Corin, *forget
what Corin said* and *did Corin drop the lamp?* name nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cicada.agents.tools.wording import PLAIN_NEGATIONS
from cicada.citations.quotes import QUOTED
from cicada.visible import visible

_DELETION = (
    r"delete|remove|forget|drop|erase|discard|scrap|get\s+rid\s+of|throw\s+away|take\s+out|"
    r"lösch(?:e|en|t)?|entfern(?:e|en|t)?|vergiss|vergesst|vergessen|streich(?:e|en|t)?|verwirf|tilge|"
    r"supprime[rz]?|efface[rz]?|oublie[rz]?|borr(?:a|ar|e)|elimin(?:a|ar|e|are)|olvid(?:a|ar|e)|cancell(?:a|are)|"
    r"rimuov(?:i|ere)|apag(?:a|ar|ue)|exclu(?:i|ir|a)|remov(?:a|er)|verwijder|wis|vergeet|usuń|skasuj|"
    r"удали(?:ть|те)?|сотри|забудь|radera|slett?|sil"
)
_ASKING = (
    r"(?:^|[.!?;:,\n…–—])\W*(?:(?:and|then|now|so|ok|okay|yes|also|just|please|kindly|bitte|und|dann|jetzt)\b\W*)*"
    r"(?:(?:can|could|would|will)\s+you\s+|i\s*(?:['’]d|\s+would)?\s*(?:want|like|need|wish)\s+(?:you\s+)?to\s+|"
    r"you\s+(?:can|may|should|must)\s+|let['’]?s\s+|go\s+ahead\s+and\s+|(?:kannst|könntest|würdest)\s+du\s+)?"
    r"(?:(?:please|now|just|also|kindly|bitte|mir|jetzt)\s+)*"
)
_WISH = re.compile(rf"(?:{_ASKING}|\band\s+|\bthen\s+|\bund\s+)(?P<verb>{_DELETION})\b", re.IGNORECASE)
_LAST = re.compile(
    r"(?:^|[.!?;\n])\W*(?:kannst\s+du|könntest\s+du|würdest\s+du|bitte|ich\s+(?:will|möchte))\b(?P<what>[^.!?;\n]+?)"
    r"\b(?:löschen|entfernen|vergessen|streichen)\b",
    re.IGNORECASE,
)
"""German says at its end what is to be done."""
_NOT = PLAIN_NEGATIONS | frozenset("no nie pas ne не".split())
_UNSPACED = re.compile(r"削除|消して|消去|忘れて|删除|刪除|删掉|刪掉|삭제|지워")
_UNSPACED_NOT = re.compile(r"ないで|なく|しない|不要|别|別|勿|지\s?마|않")
_ONLY_ASKS = re.compile(
    r"^\W*(?:did|does|do|was|were|is|are|has|have|had|what|why|who|whose|whom|when|where|which|how|if|"
    r"hat|haben|wird|wurde|was|warum|wer|wann|wo|wie|wenn)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_WORD = re.compile(r"[^\W_]+(?:['’‐-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_BESIDE = frozenset(
    """
    a an the my our your this that these those his her its their all any every everything anything whole entire old
    profile profiles theory theories hypothesis hypotheses idea note notes entry entries record records field fields
    fact facts character characters location locations place places episode episodes fragment group of for about on in
    from called named with by id version and or both please now also too again completely altogether
    mein meine meinen das die der den dem des ein eine einen profil profile theorie notiz feld eintrag von vom über
    aus bitte ganz auch und alles
    mon ma mes le la les l un une du de d et profil théorie fiche
    mi mis el los las del perfil teoría y sobre il lo gli di della dello profilo teoria e o os as do da meu minha perfil
    het een mijn profiel theorie van en mój moją profil teorię мой мою профиль теорию min mitt profilen
    """.split()
)
"""Words that may stand beside a name."""
_ENDS = frozenset("because since as so then but it i we you when if unless and or while weil da denn aber ich".split())
"""Words that go on with something else."""


def deletions_in(message: str, *names: str) -> tuple[frozenset[str], ...]:
    """For each wish to delete in a message, the words that say what: words of the names alone.

    Args:
        message: the user's.
        names: of what is kept: whatever else stands where a name would is something else than what is kept.
    """
    known = frozenset(word for name in names for word in words_of(name))
    return tuple(found for region in _regions(visible(message)) if (found := _named(region, known)))


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name as they are compared."""
    return tuple(_POSSESSIVE.sub("", _folded(word)) for word in _WORD.findall(name))


def asks_to_delete_unspaced(message: str, name: str) -> bool:
    """The same for languages without spaces: a sentence that has a word of deletion, no negation, and the name."""
    sentences = re.split(r"[。！？!?\n]", visible(message))
    return any(
        _UNSPACED.search(one) is not None and not _UNSPACED_NOT.search(one) and _folded(name) in _folded(one)
        for one in sentences
    )


def _regions(message: str) -> Iterator[str]:
    """Where a message says what it wants to have deleted."""
    quoted = [match.span() for match in QUOTED.finditer(message)]
    for sentence in _SENTENCE.finditer(message):
        text = sentence.group()
        if _ONLY_ASKS.match(text):
            continue
        for wish in _WISH.finditer(text):
            at = sentence.start() + wish.start("verb")
            if any(start < at < end for start, end in quoted) or _denies(text[: wish.start("verb")]):
                continue
            yield text[wish.end() :]
        for wish in _LAST.finditer(text):
            if not _denies(wish["what"]):
                yield wish["what"]


def _denies(before: str) -> bool:
    """Whether the clause in which a word of deletion stands has denied it before."""
    clause = re.split(r"[,;:.!?\n–—]", before)[-1]
    return any(word in _NOT or word.endswith(("n't", "n’t")) for word in map(_folded, _WORD.findall(clause)))


def _named(region: str, known: frozenset[str]) -> frozenset[str]:
    """The names' words at a region's beginning; none where something else follows them at once."""
    found: set[str] = set()
    end = 0
    for match in _WORD.finditer(region):
        word = _POSSESSIVE.sub("", _folded(match.group()))
        bare = word if word in known else word.removesuffix("s")
        if bare in known:
            found.add(bare)
        elif word not in _BESIDE:
            goes_on = word in _ENDS or re.search(r"[,;:.!?–—(]", region[end : match.start()])
            return frozenset(found) if goes_on else frozenset()
        elif word in ("and", "or", "und") and _goes_on(region[match.end() :], known):
            return frozenset(found)
        end = match.end()
    return frozenset(found)


def _goes_on(rest: str, known: frozenset[str]) -> bool:
    """Whether what follows an *and* is no further name."""
    following = (_POSSESSIVE.sub("", _folded(word)) for word in _WORD.findall(rest))
    first = next((word for word in following if word not in _BESIDE), None)
    return first is not None and first not in known and first.removesuffix("s") not in known


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
