"""Words of negation in the most common languages."""

from __future__ import annotations

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
