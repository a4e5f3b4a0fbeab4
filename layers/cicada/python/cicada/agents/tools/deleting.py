"""Whether a user's message asks to have something deleted, and what: a model's word for it is not enough.

A wish is a word of deletion where a clause begins, or after what asks for something (*please*, *can you*, *I want
to*), without a negation or a question before it in its sentence. What is to be deleted are the words after it (in
German, those before it too), as far as they are names of what is kept and words such as *my profile of*: *delete
Corin's profile* names Corin, *forget what Corin said* and *did Corin drop the lamp?* name nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from cicada.agents.tools.asking import Span, only_asks, sentences_in
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
_MARKS = r".!?;:,\n…–—"
_GAP = rf"[^\w{_MARKS}]*"
"""Up to the next mark, where a clause begins anew."""
_ASKING = (
    rf"(?:^|[{_MARKS}]){_GAP}(?:(?:and|then|now|so|ok|okay|yes|also|just|please|kindly|bitte|und|dann|jetzt)\b{_GAP})*"
    r"(?:(?:can|could|would|will)\s+you\s+|i\s*(?:['’]d|\s+would)?\s*(?:want|like|need|wish)\s+(?:you\s+)?to\s+|"
    r"you\s+(?:can|may|should|must)\s+|let['’]?s\s+|go\s+ahead\s+and\s+|(?:kannst|könntest|würdest)\s+du\s+)?"
    r"(?:(?:please|now|just|also|kindly|bitte|mir|jetzt)\s+)*"
)
_WISH = re.compile(rf"(?:{_ASKING}|\band\s+|\bthen\s+|\bund\s+)(?P<verb>{_DELETION})\b", re.IGNORECASE)
_LAST = re.compile(
    r"(?:^|[;\n])\W*(?:kannst\s+du|könntest\s+du|würdest\s+du|bitte|ich\s+(?:will|möchte))\b(?P<what>[^;\n]+?)"
    r"\b(?:löschen|entfernen|vergessen|streichen)\b",
    re.IGNORECASE,
)
"""German says at its end what is to be done."""
_NOT = PLAIN_NEGATIONS | frozenset("no nie pas ne не".split())
_UNSPACED = re.compile(r"削除|消して|消去|忘れて|删除|刪除|删掉|刪掉|삭제|지워")
_UNSPACED_NOT = re.compile(r"ないで|なく|しない|不要|别|別|勿|지\s?마|않|为什么|為什麼|为何|怎么|怎麼|なぜ|どうして|왜")
"""Denied, or asked why it was done."""
_UNSPACED_KINDS = (
    "档案|檔案|资料|資料|角色|人物|地点|地點|理论|理論|"
    "プロフィール|プロファイル|記録|情報|キャラクター|場所|仮説|프로필|기록|정보|인물|장소|이론"
)
_UNSPACED_BEFORE = (
    rf"(?:^|[\W_]|删除|刪除|删掉|刪掉|削除|消去|忘れて|忘掉|把|将|將|请|請|的|和|与|與|の|は|で|と|{_UNSPACED_KINDS})"
)
_UNSPACED_AFTER = (
    r"(?:さん|ちゃん|くん|님|씨)?(?:$|[\W_]|这|這|那|和|与|與|从|從|删|刪|削|を|は|が|も|に|と|って|이|가|을|를|은|는|도|에|과|와|"
    rf"(?:的|の|의\s?)?(?:{_UNSPACED_KINDS})|的(?=$|[\W_]))"
)
"""What may stand beside a name where nothing parts words: with another letter it is another name, or what is whose."""
_NO_DENIAL = re.compile(
    r"^\W*(?:(?:no|nein|non|nee)\s*,\s*)?(?:(?:i|we)\s+(?:do\s+not|don['’]?t|no\s+longer)\s+(?:need|want|use|like)\s+"
    r"(?:it|him|her|them|this|that)(?:\s+any\s?(?:more|longer))?\s*(?:,|\bso\b))?",
    re.IGNORECASE,
)
"""*No, delete it* and *I don't need it any more, delete it* deny something else."""
_REGION_END = re.compile(r"[.!?…\n]")
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
    return tuple(found for region in _regions(visible(message), names) if (found := _named(region, known)))


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name as they are compared."""
    return tuple(_POSSESSIVE.sub("", _folded(word)) for word in _WORD.findall(name))


def asks_to_delete_unspaced(message: str, name: str) -> bool:
    """The same for languages without spaces: a sentence that has a word of deletion, no negation, and the name."""
    wanted = re.compile(f"{_UNSPACED_BEFORE}{re.escape(_folded(name))}{_UNSPACED_AFTER}")
    return any(
        _UNSPACED.search(one) is not None and not _UNSPACED_NOT.search(one) and wanted.search(_folded(one.strip()))
        for one in re.split(r"[。！？!?\n]", visible(message))
    )


def _regions(message: str, names: Sequence[str]) -> Iterator[str]:
    """Where a message says what it wants to have deleted."""
    quoted = [match.span() for match in QUOTED.finditer(message)]
    named = _stopped(message, names)
    for start, end in sentences_in(message, named):
        text = message[start:end]
        # A name's own words deny nothing.
        plain = "".join("_" if _within(start + at, named) else letter for at, letter in enumerate(text))
        for wish in _WISH.finditer(text):
            verb = wish.start("verb")
            if not (_within(start + verb, quoted) or _denies(plain[:verb]) or only_asks(plain[:verb])):
                after = start + wish.end()
                ends = (mark.start() for mark in _REGION_END.finditer(message, after, end))
                yield message[after : next((at for at in ends if not _within(at, named)), end)]
        for wish in _LAST.finditer(text):
            before = plain[: wish.end("what")]
            if not (_denies(before) or only_asks(before)):
                yield wish["what"]


def _stopped(message: str, names: Sequence[str]) -> list[Span]:
    """Where a name stands in a message that has a mark in it by which a sentence could end."""
    found = []
    for name in names:
        if _REGION_END.search(name):
            words = (re.sub(r"['’]", "['’]", re.escape(word)) for word in name.split())
            pattern = r"(?<!\w)" + r"\s+".join(words) + r"(?!\w)"
            found += [match.span() for match in re.finditer(pattern, message, re.IGNORECASE)]
    return found


def _within(at: int, spans: Sequence[Span]) -> bool:
    return any(start <= at < end for start, end in spans)


def _denies(before: str) -> bool:
    """Whether the sentence in which a word of deletion stands has denied it before."""
    said = _NO_DENIAL.sub("", before.rpartition(";")[2], count=1)
    return any(word in _NOT or word.endswith(("n't", "n’t")) for word in map(_folded, _WORD.findall(said)))


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
