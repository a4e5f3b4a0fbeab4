"""What leans on the conversation in languages other than English, by word lists.

Words are case folded. A language that has no list here is completed as it was asked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Leaning:
    """A language's words that lean on what was said before."""

    starters: frozenset[str]
    """*And*, *but*, *so*: with a short rest, the question continues another."""
    about: tuple[str, ...]
    """Openings of *what about*."""
    pronouns: frozenset[str]
    """Lean where no name stands before them."""
    pointers: frozenset[str]
    """Lean wherever they stand: *that* alone, *then*."""
    determiners: frozenset[str]
    """Lean where no noun follows them: *this*, *the other*."""
    last: frozenset[str]
    """Lean at the end: *afterwards*, which elsewhere is *after*."""
    bare: frozenset[str]
    """Alone they are no question, nor together: *why*, *who*, *where*, *not*, and the words around them."""
    asking: frozenset[str]
    """Of these, the question words."""
    courtesies: frozenset[str]
    """A message that has one of them, and no question mark, asks nothing."""
    impersonal: tuple[str, ...] = ()
    """Phrases whose pronoun refers to nothing."""

    @property
    def all(self) -> frozenset[str]:
        """All words that say nothing of what is asked about."""
        return self.starters | self.pronouns | self.pointers | self.determiners | self.last | self.bare | self.asking


def _leaning(**words: str) -> Leaning:
    about = tuple(f"{phrase.strip()} " for phrase in words.pop("about").split(","))
    impersonal = tuple(filter(None, words.pop("impersonal", "").split(", ")))
    return Leaning(
        about=about, impersonal=impersonal, **{name: frozenset(listed.split()) for name, listed in words.items()}
    )


SPACED: dict[str, Leaning] = {
    "deu": _leaning(
        starters="und aber oder also dann",
        about="was ist mit, wie steht es mit, wie sieht es mit, wie ist es mit",
        pronouns="er ihn ihm sie ihnen seine seiner seinen seinem ihre ihrer ihrem ihren",
        pointers="davon dazu damit dafür daran darauf darüber daraus danach davor dabei dahinter dann derselbe "
        "dieselbe dasselbe letztere ersterer",
        determiners="das dies dieser dieses diesen diesem diese beiden",
        last="sonst dort später zuvor vorher",
        bare="denn nicht noch genau auch ist war sind mit es bedeutet heißt passierte geschah gilt für ja nein",
        asking="warum wieso weshalb wer wen wem wessen was wo wann wie welche welcher welches",
        courtesies="danke hallo tschüss moin servus guten",
    ),
    "fra": _leaning(
        starters="et mais ou alors donc puis",
        about="qu'en est-il de, qu'en est-il du, qu'en est-il d'",
        pronouns="il elle ils elles lui leur eux",
        pointers="cela ça ceci ensuite celui-ci celle-ci celui-là celle-là lequel laquelle lesquels lesquelles",
        determiners="autre",
        last="après là avant là-bas",
        bare="pas non donc alors est-ce est c'est oui encore",
        asking="pourquoi qui que quoi où quand comment combien",
        courtesies="merci bonjour bonsoir salut revoir",
        impersonal="y a-t-il, il y a, se passe-t-il, s'est-il, s'agit-il, faut-il, il faut, "
        "est-il vrai, est-il possible",
    ),
    "spa": _leaning(
        starters="y pero o entonces pues",
        about="qué hay de, qué pasa con, y qué hay de",
        pronouns="él ella ellos ellas le les",
        pointers="eso esto aquello entonces luego",
        determiners="otro otra mismo misma dos ambos",
        last="después allí ahí antes lo",
        bare="por no sí es fue era se",
        asking="qué porqué porque quién quiénes cuál cuáles cuándo dónde cómo cuánto",
        courtesies="gracias hola adiós buenos buenas",
    ),
    "ita": _leaning(
        starters="e ma o allora quindi poi ed",
        about="che ne è di, che mi dici di, e per quanto riguarda",
        pronouns="lui lei loro esso essa egli gli glielo gliela",
        pointers="ciò poi",
        determiners="questo quello altro altra stesso stessa entrambi",
        last="dopo lì là prima",
        bare="no non è era sì",
        asking="perché chi che cosa come dove quando quale quanto",
        courtesies="grazie ciao buongiorno buonasera arrivederci",
    ),
    "por": _leaning(
        starters="e mas ou então",
        about="e quanto a, e quanto ao, que tal",
        pronouns="ele ela eles elas lhe lhes dele dela deles delas",
        pointers="isso isto aquilo",
        determiners="outro outra mesmo mesma ambos",
        last="depois seguir lá ali antes",
        bare="por não sim é foi era o a os as do da de",
        asking="que porquê porque quem qual quando onde como quanto",
        courtesies="obrigado obrigada olá oi tchau bom boa",
    ),
    "nld": _leaning(
        starters="en maar of dus toen",
        about="hoe zit het met, en hoe zit het met",
        pronouns="hij zij ze hem haar hen hun",
        pointers="daarna daarvan daarmee daarover daarop erna ervan ermee erover hetzelfde",
        determiners="dat dit deze andere beide",
        last="toen daar later eerder",
        bare="niet ook nog en er dan is was van ja nee",
        asking="waarom wie wat waar wanneer hoe welke",
        courtesies="dank bedankt hallo hoi dag goedemorgen goedenavond",
    ),
    "swe": _leaning(
        starters="och men eller så",
        about="hur är det med",
        pronouns="han hon honom henne de dem hans hennes deras",
        pointers="därefter efteråt",
        determiners="det detta andra samma båda",
        last="sedan då där",
        bare="inte också är ja nej",
        asking="varför vem vad var när hur vilken",
        courtesies="tack hej hallå",
    ),
    "pol": _leaning(
        starters="a i ale albo więc",
        about="a co z, co z",
        pronouns="on ona ono oni one jego jej ich mu jemu nim nią",
        pointers="potem następnie wtedy",
        determiners="to tego tym drugi druga obaj",
        last="później tam wcześniej",
        bare="nie się tak",
        asking="dlaczego kto co gdzie kiedy jak który",
        courtesies="dziękuję dzięki cześć dzień",
    ),
    "rus": _leaning(
        starters="а и но или так",
        about="а что с, а как насчёт, а как насчет",
        pronouns="он она оно они его её ее их ему ей им них него неё нее",
        pointers="потом затем тогда",
        determiners="это этого этом этим другой другая второй оба то",
        last="там позже раньше",
        bare="нет не зачем значит да",
        asking="почему кто что где когда как какой",
        courtesies="спасибо привет здравствуйте пока",
    ),
}
"""By ISO 639-3 code: languages with spaces between words."""


@dataclass(frozen=True)
class Phrases:
    """Of a language whose words are not divided as above: what leans, as it is written."""

    anywhere: tuple[str, ...]
    """Leans wherever it stands."""
    endings: tuple[str, ...]
    """Leans where a short question ends with it: *and Mara?*"""
    whole: tuple[str, ...]
    """Is all of the question."""


def _phrases(*, anywhere: str, endings: str, whole: str) -> Phrases:
    listed = (tuple(phrase.replace("_", " ") for phrase in text.split()) for text in (anywhere, endings, whole))
    return Phrases(*listed)


UNSPACED: dict[str, Phrases] = {
    "jpn": _phrases(
        anywhere="それ その 彼 あれ あの そこ そんな これは この人 次に ほかに 他に 続き 前者 後者",
        endings="は も には では",
        whole="なぜ なぜですか どうして どうしてですか いつ どこ 誰 もっと "
        "それで じゃあ なんで いつですか どこですか 誰ですか",
    ),
    "zho": _phrases(
        anywhere="他 她 它 那是 那个 那個 这个 這個 这是 接着 接下来 接下來 "
        "然后 然後 后来 後來 那里 那裡 其他 另一 前者 后者",
        endings="呢",
        whole="为什么 為什麼 为何 谁 誰 哪里 哪裡 什么时候 怎么 还有 真的吗 继续",
    ),
    "kor": _phrases(
        anywhere="_그녀 _그는_ _그가_ _그를_ _그의_ _그들 _그것 "
        "_그건 _그게 _그_ _저것 _거기 _그다음 _그리고_나서 _이것 _또_다른",
        endings="는요 은요",
        whole="왜 왜요 누구 어디 언제 그리고 그래서 어떻게",
    ),
}
"""By ISO 639-3 code; in phrases, an underscore is a space."""
