"""Whether a user's message asks to have something deleted, and what: a model's word for it is not enough.

A wish is a word of deletion where a clause begins, or after what asks for something (*please*, *can you*, *I want
to*), in a message that has denied and asked nothing before. What is to be deleted are the words after it (in German,
those before it too), as far as they are names of what is kept and words such as *my profile of*: *delete Corin's
profile* names Corin, *forget what Corin said* and *did Corin drop the lamp?* name nothing. What is deleted is gone:
whatever is in doubt is no wish.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from cicada.agents.tools.asking import GAP, MARKS, first_question
from cicada.agents.tools.wording import PLAIN_NEGATIONS
from cicada.citations.quotes import QUOTED
from cicada.profiles.rules import folded
from cicada.visible import visible

_DELETION = (
    r"delete|remove|forget|drop|erase|discard|scrap|get\s+rid\s+of|throw\s+away|take\s+out|"
    r"lösch(?:e|en|t)?|entfern(?:e|en|t)?|vergiss|vergesst|vergessen|streich(?:e|en|t)?|verwirf|tilge|"
    r"supprime[rz]?|efface[rz]?|oublie[rz]?|borr(?:a|ar|e)|elimin(?:a|ar|e|are)|olvid(?:a|ar|e)|cancell(?:a|are)|"
    r"rimuov(?:i|ere)|apag(?:a|ar|ue)|exclu(?:i|ir|a)|remov(?:a|er)|verwijder|wis|vergeet|usuń|skasuj|"
    r"удали(?:ть|те)?|сотри|забудь|radera|slett?|sil"
)
_ASKING = (
    rf"(?:^|[{MARKS}]){GAP}(?:(?:and|then|now|so|ok|okay|yes|also|just|please|kindly|bitte|und|dann|jetzt)\b{GAP})*"
    r"(?:(?:can|could|would|will)\s+you\s+|i(?:\s*['’]d|\s+would)?\s*(?:want|like|need|wish)\s+(?:you\s+)?to\s+|"
    r"you\s+(?:can|may|should|must)\s+|let['’]?s\s+|go\s+ahead\s+and\s+|(?:kannst|könntest|würdest)\s+du\s+)?"
    r"(?:(?:please|now|just|also|kindly|bitte|mir|jetzt)\s+)*"
)
_WISH = re.compile(rf"(?:{_ASKING}|\band\s+|\bthen\s+|\bund\s+)(?P<verb>{_DELETION})\b", re.IGNORECASE)
_LAST = re.compile(
    rf"(?:^|[.!?;\n]){GAP}(?:kannst\s+du|könntest\s+du|würdest\s+du|bitte|ich\s+(?:will|möchte))\b(?P<what>[^!?;\n]+?)"
    r"\b(?:löschen|entfernen|vergessen|streichen)\b",
    re.IGNORECASE,
)
"""German says at its end what is to be done: all that stands before is what it is done to."""
_NOT = PLAIN_NEGATIONS | frozenset("no nie pas ne не".split())
_UNSPACED = "删除|刪除|删掉|刪掉|忘掉|削除|消去|消して|忘れて|삭제|지워"
_UNSPACED_FILE = "档案|檔案|资料|資料|プロフィール|プロファイル|記録|情報|프로필|기록|정보"
_UNSPACED_KIND = rf"(?:{_UNSPACED_FILE}|角色|人物|地点|地點|理论|理論|キャラクター|場所|仮説|인물|장소|이론)[的の]?"
_UNSPACED_POLITE = "请|請|麻烦|麻煩|你|帮我|幫我"
_UNSPACED_END = "吧|谢谢|謝謝|して|ください|下さい|くれ|ほしい|お願い(?:します)?|해|줘|주세요|하세요|부탁"
"""None of them begins with another: a run of them is read in one way."""
_NO_DENIAL = re.compile(
    r"\W*(?:(?:no|nein|non|nee)\s*[,.!]\s*)?(?:(?:i|we)\s+(?:do\s+not|don['’]?t|no\s+longer)\s+(?:need|want|use|like)\s+"
    r"(?:it|him|her|them|this|that)(?:\s+any\s?(?:more|longer))?\s*(?:[,.;]|\bso\b))?",
    re.IGNORECASE,
)
"""*No, delete it* and *I don't need it any more, delete it* deny something else."""
_REGION_END = re.compile(r"[.!?…](?!\w)|\n")
_PAUSE = re.compile(r"[,;:.!?–—(]")
"""With a space beside it: *Corin–Vale* is one name."""
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
_ENDS = frozenset("because since as so then but weil da denn aber".split())
"""Words that go on with something else."""
_NEXT = frozenset("show tell list find search create make add keep give start zeig zeige nenne suche erstelle".split())
"""What goes on with something else after *and*, where another word may be a part of a name that is not known."""
_SHORT = 2
"""Letters that a name has at least which is found where nothing parts words."""


def deletions_in(message: str, *names: str) -> tuple[frozenset[str], ...]:
    """For each wish to delete in a message, the words that say what: words of the names alone.

    Args:
        message: the user's.
        names: of what is kept: whatever else stands where a name would is something else than what is kept.
    """
    known = frozenset(word for name in names for word in words_of(name))
    return tuple(found for found in _found(visible(message), names, known) if found)


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name as they are compared."""
    return tuple(_POSSESSIVE.sub("", _folded(word)) for word in _WORD.findall(name))


def asks_to_delete_unspaced(message: str, name: str, *owners: str) -> bool:
    """The same for languages without spaces: a message that asks for this one deletion and has no other words.

    Args:
        message: the user's.
        name: of what is to be deleted.
        owners: names of whose it may be said to be.
    """
    said, name = folded(message), folded(name)
    if len(name) < _SHORT or name not in said:
        return False
    whose = "|".join(re.escape(folded(one)) for one in owners) or "(?!)"
    what = (
        rf"\s?(?:我的)?(?:(?:{whose})(?:さん)?(?:的|の|의\s?))?(?:{_UNSPACED_KIND})?\s?[“「『《\"'‘(]*{re.escape(name)}"
        rf"[”」』》\"'’)]*(?:さん|ちゃん|くん|님|씨)?(?:\s?[的の의]?\s?(?:{_UNSPACED_FILE})[을를]?|{_object(name)})?\s?を?\s?"
    )
    wish = rf"(?:{_UNSPACED}){what}|(?:把|将|將)?{what}(?:{_UNSPACED})"
    return bool(
        re.fullmatch(rf"(?:(?:{_UNSPACED_POLITE})\s?)*(?:{wish})(?:[\s,]?(?:{_UNSPACED_END}))*[\s.!。~…]*", said)
    )


def _object(name: str) -> str:
    """The particle of a name's object in Korean, as its last syllable has it: 가을 is a name, and no 가 with 을."""
    syllable = ord(name[-1]) - ord("가")
    if not 0 <= syllable <= ord("힣") - ord("가"):
        return "[을를]"
    return "을" if syllable % 28 else "를"


def _found(message: str, names: Sequence[str], known: frozenset[str]) -> Iterator[frozenset[str]]:
    """What each wish names, be it nothing."""
    free = min(_first_denial(message), first_question(message))
    quoted = {at for match in QUOTED.finditer(message) for at in range(*match.span())}
    named = _stopped(message, names)
    # A mark within a name ends nothing.
    plain = "".join(" " if at in named else letter for at, letter in enumerate(message))
    for wish in _WISH.finditer(message):
        verb = wish.start("verb")
        if verb < free and verb not in quoted and verb not in named:
            end = _REGION_END.search(plain, wish.end())
            yield _named(message[wish.end() : end.start() if end else None], known)
    for wish in _LAST.finditer(message):
        if wish.end("what") < free:
            yield _named(wish["what"], known, whole=True)


def _stopped(message: str, names: Sequence[str]) -> set[int]:
    """Where a name stands in a message that has a mark in it by which what is named could end."""
    found: set[int] = set()
    for name in names:
        if _REGION_END.search(name):
            words = (re.sub(r"['’]", "['’]", re.escape(word)) for word in name.split())
            pattern = r"(?<!\w)" + r"\s+".join(words) + r"(?!\w)"
            found.update(at for match in re.finditer(pattern, message, re.IGNORECASE) for at in range(*match.span()))
    return found


def _first_denial(message: str) -> int:
    """Where a message denies something, be it within a name; beyond its end where it nowhere does."""
    begins = _NO_DENIAL.match(message)
    for match in _WORD.finditer(message, begins.end() if begins else 0):
        word = _folded(match.group())
        if word in _NOT or word.endswith(("n't", "n’t")):
            return match.start()
    return len(message) + 1


def _named(region: str, known: frozenset[str], *, whole: bool = False) -> frozenset[str]:
    """The names' words at a region's beginning; none where something else follows them at once.

    If ``whole``, nothing else may follow them at all.
    """
    found: set[str] = set()
    end = 0
    before = ""
    for match in _WORD.finditer(region):
        word = _POSSESSIVE.sub("", _folded(match.group()))
        bare = word if word in known else word.removesuffix("s")
        if bare in known:
            found.add(bare)
        elif word not in _BESIDE:
            gap = region[end : match.start()]
            goes_on = word in _ENDS or (before in ("and", "und") and word in _NEXT)
            goes_on = goes_on or (_PAUSE.search(gap) is not None and any(map(str.isspace, gap)))
            return frozenset(found) if goes_on and not whole else frozenset()
        end, before = match.end(), word
    return frozenset(found)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
