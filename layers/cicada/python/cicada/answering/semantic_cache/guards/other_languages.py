"""Reading a question in any language but English: word by word, in its own order.

Nothing here knows a synonym or another order of the same words: two questions are taken for the same only when they are
so nearly word for word, up to articles, auxiliaries, inflections, case, accents and punctuation.
"""

from __future__ import annotations

import re

from cicada.answering.semantic_cache.guards.reading import Reading, Word
from cicada.index.lexical.scripts import clusters, is_unspaced
from cicada.index.lexical.tokens import normalised, tokens
from cicada.index.lexical.words import stemmed

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
        "deu": "der die das den dem des ein eine einen einem einer eines bitte denn eigentlich genau",
        "fra": "le la les l un une des est-ce s'il plaît svp exactement donc",
        "spa": "el la los las un una unos unas por favor exactamente",
        "ita": "il lo la gli le un uno una per favore esattamente",
        "por": "o a os as um uma uns umas por favor exatamente",
        "nld": "de het een alstublieft precies eigenlijk dan",
        "swe": "en ett snälla egentligen",
        "rus": "пожалуйста же именно ли",
        "pol": "proszę właściwie dokładnie",
        "tur": "lütfen bir acaba",
    }.items()
}
_POLITE = re.compile(
    r"^(?:请问|請問|请告诉我|請告訴我|教えてください|ちなみに|저기|혹시)[、,，\s]*|"
    r"(?:を|か)?(?:教えてください|おしえてください|でしょうか|ですか|ますか|か|の)?[？?。．.!！\s]*$|[吗嗎呢啊呀吧]+[？?。!！\s]*$"
)
_HAS_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"(?<!^)(?<![.!?:¿¡\"«„“] )(?<![¿¡\"«„“])\b([^\W\d_a-z][^\W\d_]+)")
_CAPITALISED_NOUNS = frozenset({"deu"})
"""Languages where a capital is no sign of a name."""


def read_other(text: str, language: str) -> Reading:
    """Read a question. Every word counts, in the order of the sentence, but for articles and politeness."""
    plain = normalised(text, dotless_i=language == "tur").strip()
    found = tokens(_POLITE.sub("", plain)) or tokens(plain)
    negations, asked = NEGATIONS.get(language, frozenset()), _QUESTION_WORDS.get(language, frozenset())
    left_out = _LEFT_OUT.get(language, frozenset())
    negated = len(_UNSPACED_NEGATIONS.findall(plain))
    kinds: list[str] = []
    numbers: list[str] = []
    words: list[Word] = []
    for token in found:
        if is_unspaced(token):
            words += [Word(character, shown=character) for character in clusters(token)]
        elif _HAS_DIGIT.search(token):
            numbers.append(token)
            words.append(Word(token, shown=token))
        elif token in negations:
            negated += 1
        elif token in asked:
            kinds.append(token)
        elif token not in left_out:
            words.append(Word(stemmed(token, language), shown=token))
    names = frozenset(
        stemmed(normalised(name), language)
        for name in _NAME.findall(text)
        if name[0].isupper() and language not in _CAPITALISED_NOUNS
    )
    return Reading(" ".join(kinds), negated % 2 == 1, tuple(sorted(numbers)), names, tuple(words))
