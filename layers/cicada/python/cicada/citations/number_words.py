"""Words for numbers, and units, in the languages that answers are most often in."""

from __future__ import annotations

import re
from decimal import Decimal


def _counted(words: str, start: int = 0, step: int = 1) -> dict[str, int]:
    """Alternatives of one number are joined by a slash."""
    return {word: start + at * step for at, group in enumerate(words.split()) for word in group.split("/")}


_ENGLISH = (
    _counted(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    )
    | _counted("twenty thirty forty/fourty fifty sixty seventy eighty ninety", 20, 10)
    | _counted(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        1,
    )
    | {"once": 1, "twice": 2, "thrice": 3, "double": 2, "triple": 3, "thirtieth": 30}
)
_GERMAN = (
    _counted(
        "null ein/eins/eine/einen/einem/einer zwei/zwo drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
        "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
    )
    | _counted("zwanzig dreißig/dreissig vierzig fünfzig sechzig siebzig achtzig neunzig", 20, 10)
    | _counted(
        "erste/ersten/erster/erstes zweite/zweiten/zweiter/zweites dritte/dritten/dritter/drittes vierte/vierten/"
        "vierter/viertes fünfte/fünften sechste/sechsten/sechster siebte/siebten achte/achten neunte/neunten "
        "zehnte/zehnten",
        1,
    )
    | {
        "einmal": 1,
        "zweimal": 2,
        "dreimal": 3,
        "viermal": 4,
        "fünfmal": 5,
        "doppelt": 2,
        "beide": 2,
        "beiden": 2,
        "zweier": 2,
        "dreier": 3,
        "sechsen": 6,
    }
)
_FRENCH = (
    _counted(
        "zéro un/une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
        "dix-huit dix-neuf vingt"
    )
    | {
        "trente": 30,
        "quarante": 40,
        "cinquante": 50,
        "soixante": 60,
        "soixante-dix": 70,
        "quatre-vingts": 80,
        "quatre-vingt": 80,
        "quatre-vingt-dix": 90,
    }
    | _counted("premier/première deuxième/seconde troisième quatrième cinquième sixième septième huitième", 1)
)
_SPANISH = (
    _counted(
        "cero un/uno/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
        "diecisiete dieciocho diecinueve veinte veintiuno/veintiún veintidós veintitrés veinticuatro veinticinco "
        "veintiséis veintisiete veintiocho veintinueve"
    )
    | {"treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70, "ochenta": 80, "noventa": 90}
    | _counted("primero/primera/primer segundo/segunda tercero/tercera/tercer cuarto/cuarta quinto/quinta", 1)
)
_ITALIAN = (
    _counted(
        "zero uno/un/una due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici "
        "sedici diciassette diciotto diciannove venti"
    )
    | {"trenta": 30, "quaranta": 40, "cinquanta": 50, "sessanta": 60, "settanta": 70, "ottanta": 80, "novanta": 90}
    | _counted("primo/prima secondo/seconda terzo/terza quarto/quarta quinto/quinta", 1)
)
_PORTUGUESE = _counted(
    "zero um/uma dois/duas três quatro cinco seis sete oito nove dez onze doze treze catorze/quatorze quinze "
    "dezesseis/dezasseis dezessete/dezassete dezoito dezenove/dezanove vinte"
) | {"trinta": 30, "quarenta": 40, "cinquenta": 50, "sessenta": 60}
_DUTCH = _counted(
    "nul een/één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien "
    "achttien negentien twintig"
) | {"dertig": 30, "veertig": 40, "vijftig": 50, "zestig": 60}
_RUSSIAN = _counted(
    "ноль один/одна/одно/одного/одной два/две/двух/двум три/трёх/трех четыре/четырёх/четырех пять/пяти шесть/шести "
    "семь/семи восемь/восьми девять/девяти десять/десяти одиннадцать/одиннадцати двенадцать/двенадцати "
    "тринадцать/тринадцати четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать/двадцати"
) | {"тридцать": 30, "сорок": 40, "пятьдесят": 50, "шестьдесят": 60, "дважды": 2, "трижды": 3}
_KOREAN = _counted("영 하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉 열")
_AMBIGUOUS = frozenset(
    "un une um uma uno una ein eine einen einem einer een sei seconde prima primer once due elf".split()
)
"""Words that are a number in one language and something else in another, or an article."""

_ALL = {
    word: value
    for table in (_KOREAN, _RUSSIAN, _DUTCH, _PORTUGUESE, _ITALIAN, _SPANISH, _FRENCH, _GERMAN, _ENGLISH)
    for word, value in table.items()
}
NUMBER_WORDS: dict[str, int] = {word: value for word, value in _ALL.items() if word not in _AMBIGUOUS}
"""By word in lower case. Where languages disagree about a word (*sei*, *once*) it is no number."""
DOUBTFUL_WORDS: dict[str, int] = {"sei": 6, "once": 11, "prima": 1, "primer": 1, "due": 2, "elf": 11}
"""What such words can stand for."""

MULTIPLIERS: dict[str, Decimal] = {
    word: Decimal(value)
    for words, value in (
        ("dozen dozens dutzend douzaine docena dozzina dúzia dozijn", 12),
        ("hundred hundert cent cien ciento cento cem honderd сто", 100),
        ("thousand thousands tausend mille mil mila duizend тысяча тысячи тысяч k", 1_000),
        (
            "million millions millionen millones milioni milione milhão milhões miljoen миллион миллиона миллионов "
            "mn m",
            10**6,
        ),
        ("billion billions milliarde milliarden milliard milliards miljard миллиард миллиардов bn", 10**9),
        ("trillion trillions", 10**12),
    )
    for word in words.split()
}

UNITS: dict[str, str] = {
    word: group.split()[0]
    for group in """
% percent prozent procent процент процента процентов
second seconds sec secs sekunde sekunden secondes segundo segundos secondi секунд секунды 秒
minute minutes min mins minuten minuto minutos minuti minuut минут минуты
hour hours hr hrs stunde stunden heure heures hora horas ora ore uur час часа часов
day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen день дня дней
week weeks woche wochen semaine semaines semana semanas settimana settimane weken неделя недели недель
month months monat monate monaten mois mes meses mese mesi maand maanden месяц месяца месяцев
year years jahr jahre jahren an ans année années año años anno anni ano anos jaar год года лет
gram g grams gramm gramme grammes gramo gramos
kilogram kg kilograms kilo kilos kilogramm kilogramme
tonne tonnes t tonnen
metre m metres meter meters mètre mètres metro metros metri
centimetre cm centimetres centimeter centimeters zentimeter
millimetre mm millimetres millimeter millimeters
kilometre km kilometres kilometer kilometers kilomètres
mile miles
foot feet ft
inch inches
litre l litres liter liters
millilitre ml
bar bars
psi
celsius °c
fahrenheit °f
degree degrees grad degrés ° grados
dollar dollars usd доллар долларов
euro euros eur евро
pound pounds gbp
cent cents
watt w watts
kilowatt kw
volt v volts
byte bytes
kilobyte kb
megabyte mb megabytes
gigabyte gb gigabytes
""".strip().split("\n")
    for word in group.split()
}
"""By word in lower case: the unit's canonical name."""
CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₩": "won", "₽": "ruble"}
UNITS |= CURRENCIES
TIMES = {
    "年": "year",
    "月": "month",
    "日": "day",
    "时": "hour",
    "時": "hour",
    "分": "minute",
    "円": "yen",
    "元": "yuan",
    "秒": "second",
    "小": "hour",
    "天": "day",
    "号": "day",
    "週": "week",
    "周": "week",
    "星": "week",
    "歳": "year",
    "岁": "year",
    "点": "hour",
    "千": "",
    "万": "",
}

_COMPOUND = re.compile(
    r"(ein|zwei|drei|vier|fünf|sechs|sieben|acht|neun)und(zwanzig|dreißig|dreissig|vierzig|fünfzig|sechzig|"
    r"siebzig|achtzig|neunzig)"
)


_ITALIAN_COMPOUND = re.compile(
    r"(vent|trent|quarant|cinquant|sessant|settant|ottant|novant)[iau]?(uno|un|due|tre|tré|quattro|cinque|sei|"
    r"sette|otto|nove)"
)


def compound(word: str) -> int | None:
    """The value of *fünfundzwanzig*, *ventitré* and their kin; None for other words."""
    match = _COMPOUND.fullmatch(word) if "und" in word else None
    if match:
        return _GERMAN[match[1]] + _GERMAN[match[2]]
    match = _ITALIAN_COMPOUND.fullmatch(word) if "nt" in word else None
    if match is None or word in NUMBER_WORDS:
        return None
    tens = next(value for name, value in _ITALIAN.items() if name[:-1] == match[1])
    return tens + _ITALIAN[match[2].replace("é", "e")]


COUNTERS = frozenset("个個枚人本匹頭台回箱张張件名位把条座孔次间間层階只隻册冊通杯두명개번마리대권장")
"""What stands after a number that counts things: such a number is none of days, or of hours."""
