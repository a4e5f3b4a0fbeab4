"""Words that a completed question must have as the question has them, and what is said of one that has not."""

from __future__ import annotations

import re

NAME = "a name of the question is missing"
NUMBER = "a number of the question is missing"
NEGATION = "it is negated in another way"
KIND = "it asks in another way"
ADDED = "it asks for something else besides"
WORDS = "it is another question"
ORDER = "it has the words of the question in another order"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NEGATIONS = _set("not no never nobody nothing none neither nor nowhere without hardly")
"""In English."""
TELLING = _set(
    "can could will would shall should may might must before after during until since without against under over "
    "inside outside behind from to for with about by every only never always still two three first second third last"
)
"""Small words of English that no completion replaces."""
ORDINALS = _set("first second third last")
"""They point at something named before where *one* follows them, or nothing."""
WANTED = _set("tell list name give show explain describe compare summarize summarise quote find repeat continue say go")
"""Verbs that requests begin with."""
ADDRESS = _set("i me my mine we us our ours you your yours myself yourself")
"""Words for those who speak with each other."""
SUBORDINATE = _set("when where while if because although though since after before once until as")
"""What a clause begins with that stands before its question, unless an auxiliary follows."""
ABOUT = (("what", "about"), ("how", "about"))
"""What a question begins with that takes up the one before it."""

FOREIGN_NEGATIONS = {
    language: _set(words)
    for language, words in {
        "deu": "nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden nichts ohne weder",
        "fra": "pas jamais rien aucun aucune sans ni guère",
        "spa": "no nunca jamás nadie nada ningún ninguno ninguna sin ni tampoco",
        "ita": "non mai nessuno nessuna niente nulla senza né",
        "por": "não nunca jamais ninguém nada nenhum nenhuma sem nem",
        "nld": "niet geen nooit niemand niets zonder noch",
        "swe": "inte ej aldrig ingen inget inga ingenting utan",
        "pol": "nie nigdy nikt nikogo nic żaden żadna żadne bez ani",
        "rus": "не нет никогда никто никого ничего ничто без ни нельзя",
    }.items()
}
"""By ISO 639-3 code."""
UNSPACED_NEGATION = re.compile(r"[不没沒無无未非]|ない|なかった|ません|ずに|なしで|않|없|못|아니")
UNSPACED_ASKING = re.compile(
    r"なぜ|どうして|なんで|誰|だれ|何時|何人|何|いつ|どこ|どれ|どの|どう|いくつ|いくら|为什么|為什麼|为何|怎么|怎麼|谁|"
    r"什么|什麼|哪|多少|왜|누구|누가|무엇|뭐|언제|어디|어떻게|몇|어느"
)
"""Question words of scripts without spaces, and of Korean."""
