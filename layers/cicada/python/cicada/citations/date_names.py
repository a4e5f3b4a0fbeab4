"""Names of months, days of the week and seasons."""

from __future__ import annotations

from functools import lru_cache

from cicada.index.lexical.words import stemmed

_ENGLISH = frozenset(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
_OTHERS = {
    "deu": "januar jänner februar märz april mai juni juli august september oktober november dezember montag dienstag "
    "mittwoch donnerstag freitag samstag sonnabend sonntag frühling frühjahr sommer herbst winter",
    "fra": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre lundi mardi mercredi "
    "jeudi vendredi samedi dimanche printemps automne hiver",
    "spa": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes "
    "miércoles jueves viernes sábado domingo primavera verano otoño invierno",
    "ita": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre lunedì "
    "martedì "
    "mercoledì giovedì venerdì sabato domenica primavera estate autunno inverno",
    "por": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro segunda-feira "
    "terça-feira quarta-feira quinta-feira sexta-feira sábado domingo primavera verão outono inverno",
    "nld": "januari februari maart april mei juni juli augustus september oktober november december maandag dinsdag "
    "woensdag donderdag vrijdag zaterdag zondag lente zomer herfst winter",
    "swe": "januari februari mars april maj juni juli augusti september oktober november december måndag tisdag onsdag "
    "torsdag fredag lördag söndag sommar höst vinter",
    "pol": "styczeń stycznia luty lutego marzec marca kwiecień kwietnia maj maja czerwiec czerwca lipiec lipca "
    "sierpień "
    "sierpnia wrzesień września październik października listopad listopada grudzień grudnia poniedziałek wtorek środa "
    "środę czwartek piątek sobota sobotę niedziela niedzielę wiosna lato jesień zima",
    "rus": "январь января январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае июнь "
    "июня июне "
    "июль июля июле август августа августе сентябрь сентября сентябре октябрь октября октябре ноябрь ноября ноябре "
    "декабрь декабря декабре понедельник понедельникам вторник вторникам среда среду средам четверг четвергам пятница "
    "пятницу пятницам суббота субботу субботам воскресенье воскресеньям весна весной осень осенью зима зимой",
}
_OTHER_WORDS_TOO = frozenset("estate lato lente luty mars vår winter".split())
"""Words of one language that are others in another."""
_ANYWHERE = frozenset(word for words in _OTHERS.values() for word in words.split()) - _ENGLISH - _OTHER_WORDS_TOO


@lru_cache(64)
def _stems(language: str) -> frozenset[str]:
    return frozenset(stemmed(word, language) for word in _OTHERS.get(language, "").split())


def is_date_name(word: str, term: str, language: str, *, capital: bool) -> bool:
    """Whether a word names a month, a day of the week or a season.

    Args:
        word: in normal form.
        term: what it is compared by.
        language: of its sentence, ISO 639-3.
        capital: whether it is written with one, as English names are: *march* and *may* are other words.
    """
    return (word.removesuffix("s") in _ENGLISH and capital) or word in _ANYWHERE or term in _stems(language)
