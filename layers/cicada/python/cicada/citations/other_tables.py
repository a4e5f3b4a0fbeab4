"""What turns a meaning in languages other than English: opposites, and words that carry nothing."""

from __future__ import annotations

from functools import lru_cache

from cicada.index.lexical.stopwords import FREQUENT
from cicada.index.lexical.words import stemmed

_OPPOSITES = {
    "deu": "vor nach · bevor nachdem · öffnen schließen · geöffnet geschlossen · offen geschlossen · auf zu · "
    "ein aus · "
    "einschalten ausschalten · eingeschaltet ausgeschaltet · steigen sinken · steigt sinkt · steigen fallen · "
    "steigt fällt · "
    "stieg sank · stieg fiel · mehr weniger · alle einige · immer nie · erste letzte · alt jung · älter jünger · "
    "älteste jüngste · groß klein · links rechts · "
    "innen außen · tag nacht · morgen abend · früh spät · früher später · kommen gehen · kaufen verkaufen · "
    "kaufte verkaufte · "
    "gewinnen verlieren · gewann verlor · finden verlieren · fand verlor · beginnen enden · beginnt endet · "
    "lieben hassen · wahr falsch · voll leer · "
    "heiß kalt · warm kalt · reich arm · stark schwach · hoch niedrig · lang kurz · erlaubt verboten · "
    "vorgeschrieben empfohlen · verpflichtend freiwillig · mit ohne · "
    "für gegen · "
    "über unter · oben unten · nah fern · leben sterben · freund feind · mindestens höchstens · maximal minimal · "
    "zunehmen abnehmen · gut schlecht · schnell langsam · nur alle · darf muss",
    "fra": "avant après · ouvrir fermer · ouvert fermé · ouverte fermée · ouvre ferme · monter descendre · "
    "augmenter diminuer · plus moins · tous certains · "
    "toujours jamais · premier dernier · première dernière · vieux jeune · grand petit · gauche droite · "
    "dedans dehors · jour nuit · "
    "matin soir · tôt tard · venir partir · entrer sortir · acheter vendre · gagner perdre · trouver perdre · "
    "commencer finir · "
    "aimer détester · vrai faux · plein vide · chaud froid · riche pauvre · fort faible · haut bas · long court · "
    "permis interdit · "
    "avec sans · obligatoire recommandé · obligatoire facultatif · pour contre · sur sous · près loin · vie "
    "mort · ami ennemi · minimum maximum · bon mauvais",
    "spa": "antes después · abrir cerrar · abre cierra · abierto cerrado · abierta cerrada · subir bajar · "
    "aumentar disminuir · más menos · "
    "siempre nunca · todos algunos · primero último · primera última · viejo joven · grande pequeño · "
    "izquierda derecha · dentro fuera · día noche · "
    "mañana noche · temprano tarde · venir ir · entrar salir · comprar vender · ganar perder · encontrar perder · "
    "empezar terminar · amar odiar · "
    "verdadero falso · lleno vacío · caliente frío · rico pobre · fuerte débil · alto bajo · largo corto · "
    "permitido prohibido · "
    "obligatorio opcional · obligatorio recomendado · con sin · sobre bajo · cerca lejos · vida muerte · amigo "
    "enemigo · máximo mínimo · mejor peor",
    "ita": "prima dopo · aprire chiudere · apre chiude · aperto chiuso · aperta chiusa · salire scendere · "
    "aumentare diminuire · più meno · sempre mai · "
    "tutti alcuni · primo ultimo · vecchio giovane · grande piccolo · sinistra destra · dentro fuori · "
    "giorno notte · mattina sera · "
    "presto tardi · entrare uscire · comprare vendere · vincere perdere · trovare perdere · iniziare finire · "
    "amare odiare · vero falso · pieno vuoto · "
    "caldo freddo · ricco povero · forte debole · alto basso · lungo corto · permesso vietato · obbligatorio "
    "facoltativo · obbligatorio consigliato · con senza · "
    "sopra sotto · "
    "vicino lontano · vita morte · amico nemico · massimo minimo · migliore peggiore",
    "por": "antes depois · abrir fechar · abre fecha · aberto fechado · aberta fechada · subir descer · "
    "subiu desceu · aumentar diminuir · mais menos · "
    "sempre nunca · todos alguns · primeiro último · velho novo · grande pequeno · esquerda direita · "
    "dentro fora · dia noite · manhã noite · cedo tarde · "
    "entrar sair · comprar vender · ganhar perder · encontrar perder · começar terminar · amar odiar · "
    "verdadeiro falso · cheio vazio · quente frio · "
    "rico pobre · forte fraco · alto baixo · longo curto · permitido proibido · com sem · sobre sob · "
    "perto longe · vida morte · "
    "amigo inimigo · máximo mínimo · melhor pior",
    "nld": "voor na · voordat nadat · openen sluiten · opent sluit · open dicht · open gesloten · stijgen dalen · "
    "stijgt daalt · toenemen afnemen · meer minder · altijd nooit · "
    "alle sommige · eerste laatste · oud jong · ouder jonger · oudste jongste · groot klein · links rechts · "
    "binnen buiten · dag nacht · "
    "ochtend avond · vroeg laat · komen gaan · kopen verkopen · winnen verliezen · vinden verliezen · "
    "beginnen eindigen · waar onwaar · vol leeg · warm koud · "
    "rijk arm · sterk zwak · hoog laag · lang kort · met zonder · boven onder · dichtbij ver · leven sterven · "
    "vriend vijand · "
    "maximaal minimaal · hoogstens minstens",
    "rus": "до после · перед после · открыть закрыть · открыт закрыт · открыта закрыта · открыто закрыто · "
    "открыла закрыла · открывается закрывается · "
    "расти падать · вырос упал · больше меньше · всегда никогда · все некоторые · первый последний · "
    "старый молодой · старше младше · большой маленький · левый правый · "
    "внутри снаружи · день ночь · утром вечером · рано поздно · войти выйти · купить продать · купил продал · "
    "найти потерять · начать закончить · "
    "любить ненавидеть · полный пустой · горячий холодный · богатый бедный · сильный слабый · высокий низкий · "
    "длинный короткий · можно нельзя · "
    "разрешено запрещено · с без · над под · близко далеко · друг враг · максимум минимум · лучше хуже",
}  # fmt: skip

UNSPACED_OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (one, other)
    for pair in (
        "前 後 · 前 后 · 之前 之后 · 開 閉 · 打开 关闭 · 开门 关门 · 开放 关闭 · 始ま 終わ · 开始 结束 · "
        "上が 下が · 上升 下降 · 増え 減 · 增加 减少 · 有料 無料 · "
        "收费 免费 · 午前 午後 · 上午 下午 · 禁止 許可 · 禁止 允许 · 禁止 可以 · 禁止 でき · 禁止 可能 · 増え "
        "減っ · 增 减 · 升 降 · 最大 最小 · 最高 最低 · 多い 少ない · "
        "多 少 · 大き 小さ · 左 右 · 内 外 · 朝 夜 · 早 遅 · "
        "買 売 · 买 卖 · 入 出 · 高い 低い · 高 低 · 长 短 · 長い 短い · 新 古 · 新 旧 · 男 女 · 兄 弟 · "
        "必ず 時々 · 全部 一部 · 所有 部分 · "
        "연다 닫 · 열 닫 · 전에 후에 · 오전 오후 · 많 적 · 크 작 · 높 낮 · 무료 유료 · 금지 허용 · 금지 가능 · "
        "모든 일부 · 최대 최소 · 증가 감소"
    ).split("·")
    for one, other in (pair.split(),)
)

FIRST_PERSON = {
    language: frozenset(words.split())
    for language, words in {
        "deu": "ich mich mir", "fra": "je j me moi", "spa": "yo me mí", "ita": "io mi me",
        "por": "eu me mim", "nld": "ik mij me",
        "rus": "я меня мне мной", "swe": "jag mig", "dan": "jeg mig", "nor": "jeg meg", "pol": "ja mnie mi",
    }.items()
}  # fmt: skip

DETERMINERS = frozenset(
    """
    the a an this that these those his her its their our your my every each either neither no some any
    der die das den dem des ein eine einen einem einer dieser diese dieses sein seine ihr ihre kein keine jeder jede
    le la les l un une des du ce cet cette ces son sa ses leur leurs chaque aucun
    el los las una unos este esta estos su sus cada ningún il lo gli i uno questo questa ogni o os as um uma de het een
    """.split()
)
"""Words that stand before nouns."""

ALL_OF = frozenset("alle sämtliche jeder jede tous toutes todos todas tutti tutte alles iedereen все".split())
"""Words for the whole of a group."""
PART_OF = frozenset("of von davon d'entre parmi".split())
"""What stands after the number of those that are a part of a group."""

DOUBTFUL = frozenset(
    """
    kostenlos gratis frei nichts ohne außer nur erst kaum vermeiden verboten untersagt verzichten fehlt fehlen fehlte
    verhindern verhindert ausgeschlossen ausgenommen sondern statt weniger höchstens
    gratuit gratuite gratuitement sans sauf que seulement uniquement interdit interdite éviter évitez empêche manque
    refuse hormis rien moins
    sin salvo excepto solo sólo únicamente prohibido prohibida evitar impide falta rechaza gratuito nada menos
    senza tranne salvo soltanto solamente vietato vietata evitare impedisce manca rifiuta gratuito nulla niente meno
    sem exceto apenas proibido evitar falta grátis nada menos zonder behalve alleen slechts verboden vermijden
    ontbreekt
    weigert gratis niets minder без кроме только запрещено избегать лишь бесплатно ничего меньше
    """.split()
)
"""As :data:`english_tables.DOUBTFUL`, in other languages."""

_CARRY_NOTHING = {
    "deu": "sagt sagte laut habe hat haben hatte hatten wurde wurden werden wird worden sein seine seinen seiner "
    "ihr ihre ihren bin ist war "
    "sind alle jede jeder jedes muss müssen darf dürfen kann können soll sollen dort dann da denn danach",
    "fra": "dit disait selon faut doit doivent peut peuvent avait ont été être leur leurs lors dont on quelqu quelque",
    "spa": "dice dijo según puede pueden debe deben había han sido estaba quedó todo",
    "ita": "dice disse secondo può possono deve devono aveva hanno stato stata ogni tutti",
    "por": "diz disse segundo pode podem deve devem tinha até cada ficou",
    "nld": "zegt zei volgens kan kunnen moet moeten mag mogen had hebben heb elke iedere ieder elk krijgt zitten "
    "zat lag",
    "rus": "говорит сказал сказала должен должны может могут была были было у меня него неё",
}
_NEUTRAL = frozenset("a o e i u y de la le".split())


@lru_cache(64)
def opposites(language: str) -> frozenset[frozenset[str]]:
    """Pairs of terms of a language (ISO 639-3) of which one speaks against the other."""
    pairs = (pair.split() for pair in _OPPOSITES.get(language, "").split("·") if pair.strip())
    return frozenset(frozenset((stemmed(one, language), stemmed(other, language))) for one, other in pairs)


@lru_cache(64)
def turning(language: str) -> frozenset[str]:
    """The terms of a language's opposites: also those of its most frequent words count where meanings turn."""
    return frozenset(term for pair in opposites(language) for term in pair)


@lru_cache(64)
def stop_words(language: str) -> frozenset[str]:
    """Words of a language that carry nothing which could be compared."""
    return FREQUENT.get(language, frozenset()) | frozenset(_CARRY_NOTHING.get(language, "").split()) | _NEUTRAL
