"""Reading a question in any language but English: word by word, in its own order.

Nothing here knows a synonym, an inflection or another order of the same words, and many languages tell by an article, a
case or a particle who did what to whom: two questions are taken for the same only when they are so word for word, up
to courtesies, capitals and punctuation.
"""

from __future__ import annotations

import re

from cicada.guards.reading import Reading, Word
from cicada.guards.signs import signs
from cicada.index.lexical.scripts import clusters, is_unspaced
from cicada.text.tokens import normalised, tokens

NEGATIONS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "deu": "nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden nichts ohne weder nirgends",
        "fra": "pas jamais personne rien aucun aucune sans ni nulle guère",
        "spa": "no nunca jamás nadie nada ningún ninguno ninguna sin ni tampoco",
        "ita": "non mai nessuno nessuna niente nulla senza né neanche",
        "por": "não nunca jamais ninguém nada nenhum nenhuma sem nem",
        "nld": "niet geen nooit niemand niets zonder noch nergens",
        "pol": "nie nigdy nikt nikogo nic żaden żadna żadne bez ani",
        "rus": "не нет никогда никто никого ничего ничто без ни нельзя",
        "ukr": "не ні немає ніколи ніхто нікого нічого без",
        "swe": "inte ej aldrig ingen inget inga ingenting utan",
        "dan": "ikke aldrig ingen intet uden",
        "nor": "ikke aldri ingen intet uten",
        "fin": "ei en et emme ette eivät koskaan kukaan mitään ilman",
        "tur": "değil hiç yok asla kimse",
        "ces": "ne není nikdy nikdo nic žádný žádná bez ani",
        "ron": "nu niciodată nimeni nimic niciun nicio fără nici",
        "hun": "nem ne soha senki semmi nélkül sem",
        "ell": "δεν μη μην ποτέ κανείς κανένας τίποτα χωρίς",
        "ara": "لا لم لن ليس ليست غير بدون ما",
        "hin": "नहीं न मत कभी बिना",
        "ind": "tidak bukan tanpa jangan belum",
        "vie": "không chưa chẳng đừng",
        "heb": "לא אין בלי אל",
        "fas": "نه نیست هیچ بدون",
    }.items()
}
"""Words of negation in the most common languages, by ISO 639-3 code."""

_UNSPACED_NEGATIONS = re.compile(
    r"[不没沒無无未非別别勿]|ない|なかった|ません|ずに|なしで|않|없|못|아니|안\s|ไม่|ไม่ได้|မ|មិន"
)
_QUESTION_WORDS = {
    language: frozenset(words.split())
    for language, words in {
        "deu": "wer wen wem wessen was wann wo wohin woher warum wieso weshalb wie welche welcher welches wieviel",
        "fra": "qui que quoi quand où pourquoi comment combien quel quelle quels quelles lequel laquelle",
        "spa": "quién quiénes qué cuándo dónde adónde cómo cuánto cuánta cuántos cuántas cuál cuáles",
        "ita": "chi che cosa quando dove perché come quanto quanta quanti quante quale quali",
        "por": "quem que quando onde como quanto quanta quantos quantas qual quais porquê",
        "nld": "wie wat wanneer waar waarom hoe hoeveel welke welk",
        "pol": "kto kogo komu co kiedy gdzie dlaczego jak ile który która które",
        "rus": "кто кого кому что когда где куда откуда почему зачем как сколько какой какая какие чей",
        "ukr": "хто кого що коли де куди чому як скільки який яка",
        "swe": "vem vad när var varför hur vilken vilket vilka",
        "dan": "hvem hvad hvornår hvor hvorfor hvordan hvilken hvilke",
        "nor": "hvem hva når hvor hvorfor hvordan hvilken hvilke",
        "tur": "kim kimi ne zaman nerede nereye neden niçin nasıl kaç hangi",
    }.items()
}
_LEFT_OUT = {
    language: frozenset(words.split())
    for language, words in {
        "deu": "bitte denn eigentlich genau",
        "fra": "svp exactement donc",
        "spa": "exactamente",
        "ita": "esattamente",
        "por": "exatamente",
        "nld": "alstublieft precies eigenlijk",
        "swe": "snälla egentligen",
        "rus": "пожалуйста же именно",
        "pol": "proszę właściwie dokładnie",
        "tur": "lütfen acaba",
    }.items()
}
"""Courtesies and particles that change nothing of what is asked."""
_POLITE = re.compile(
    r"[,\s]*\b(?:s'il (?:vous|te) pla[iî]t|por favor|per favore|als je ?blieft)\b[,\s]*|"
    r"^(?:请问|請問|请告诉我|請告訴我|教えてください|ちなみに|저기|혹시)[、,，\s]*|"
    r"(?:を|か)?(?:教えてください|おしえてください|でしょうか|ですか|ますか|か|の)?[？?。．.!！\s]*$|[吗嗎呢啊呀吧]+[？?。!！\s]*$"
)
_HAS_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"(?<!^)(?<![.!?:¿¡\"«„“] )(?<![¿¡\"«„“])\b([^\W\d_a-z][^\W\d_]+)")
_FORMAL = re.compile(r"(?<!^)(?<![.!?:„“\"] )\b(?:Sie|Ihnen|Ihr(?:e[mnrs]?)?)\b")
"""German tells *you* from *they*, *her* and *you all* by a capital alone; short questions are often taken for another
language."""
_CAPITALISED_NOUNS = frozenset({"deu"})
"""Languages where a capital is no sign of a name."""


def read_other(text: str, language: str) -> Reading:
    """Read a question. Every word counts, in the order of the sentence, but for courtesies."""
    plain = normalised(text, dotless_i=language == "tur").strip()
    found = tokens(_POLITE.sub(" ", plain)) or tokens(plain)
    negations, asked = NEGATIONS.get(language, frozenset()), _QUESTION_WORDS.get(language, frozenset())
    left_out = _LEFT_OUT.get(language, frozenset())
    negated = [("not",)] * len(_UNSPACED_NEGATIONS.findall(plain))
    kinds: list[str] = []
    numbers: list[str] = []
    words: list[Word] = []
    for token in found:
        if is_unspaced(token):
            words += [Word(character, shown=character) for character in clusters(token)]
            continue
        if _HAS_DIGIT.search(token):
            numbers.append(token)
        elif token in negations:
            negated.append((token,))
        elif token in asked:
            kinds.append(token)
        elif token in left_out:
            continue
        words.append(Word(token, shown=token))
    names = frozenset(
        normalised(name) for name in _NAME.findall(text) if name[0].isupper() and language not in _CAPITALISED_NOUNS
    )
    formal = _FORMAL.findall(text)
    return Reading(
        " ".join(kinds),
        tuple(negated),
        (*numbers, *signs(text)),
        names,
        tuple(words),
        persons=tuple((form, "") for form in formal),
        verbatim=True,
    )
