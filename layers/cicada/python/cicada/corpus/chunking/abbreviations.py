"""Words that end in a period without ending a sentence, of many languages together.

A splitter that must be told the language is wrong wherever a document mixes them, so the lists are one: a word that is
an abbreviation in one language and an ordinary one in another is left out, or counts before a number only. Entries are
in lower case and without the last period.
"""

from __future__ import annotations

NEVER_LAST = frozenset(
    # English: titles and what stands before a name
    "dr mr mrs ms mx messrs prof hon gov sen rep gen col maj capt cmdr lt sgt cpl pvt adm supt rev fr mt ft "
    # German, Dutch, Scandinavian
    "hr hrn fr frl dipl ing med dhr mevr drs mw "
    # Romance
    "mme mmes mlle mgr sr sra srta srs dna dña vd vds excmo sig sigg dott dottssa avv geom egr spett preg mons "
    "ilmo lic "
    # Slavic and Greek
    "inż hab mudr judr phdr mvdr rndr paeddr thdr phmr p.n.l św mjr płk гр акад проф доц κ κα δρ "
    # Connectives that go on, in all of them
    "e.g i.e eg ie viz cf vgl siehe z.b zb d.h dh u.a o.ä bzw bspw insb insbes inkl exkl evtl ggf sog u.u i.d.r "
    "i.a zzgl abzgl p.ej ej ad.es cioè resp bijv bv d.w.z dwz o.a t.a.v f.eks feks dvs bl.a blandt ang vedr t.ex "
    "t.o.m fr.o.m np tzn tzw m.in napr napríkl tj tzv т.е т.к т.н напр см ср др.-греч π.χ δηλ örn bkz yani ca "
    "approx vs".split()
)
"""Always followed by more of the sentence."""

SELDOM_LAST = frozenset(
    "co corp inc ltd llc plc bros dept univ assn assoc gmbh cie s.a s.r.l s.p.a s.l a.g a/s s.r.o a.s z.o.o jr "
    "snr esq st ph.d m.d b.a m.a b.sc m.sc ll.m etc et.al al usw u.s.w usf u.v.m uvm o.g osv m.m m.v m.fl enz e.d "
    "itd itp i.in atd apod ecc e.v u.s u.s.a u.k e.u u.n d.c ee.uu uu a.m p.m a.d b.c b.c.e n.chr v.chr a.c p.c "
    "n.e p.n.e н.э г гг в вв т.д т.п др пр руб коп тыс млн млрд долл ул стр гл рис табл mio mrd mill millj mln "
    "mld tys mva ave blvd rd hwy pkwy apt bldg ibid op.cit loc.cit n.b p.s seq stk".split()
)
"""Followed by more of the sentence unless the next word begins one."""

BEFORE_NUMBER = frozenset(
    "no nos nr nrs n° nº núm párr párrs num nº pp pg pgs pág págs pag pagg vol vols ch chap sec sect art arts par "
    "eq eqs ref refs ed eds op cap tab abb abs kap bd bde bl rys poz ust pkt obr čl odst rozd apdo avda tel tlf "
    "telef fax ext vers ver fig figs figg est rm sq cca circa str tlf.nr табл рис гл стр ст разд тел кв jan feb "
    "mar apr jun jul aug sep sept oct nov dec jän mär mrz okt dez ene abr ago dic janv févr avr juil déc mon tue "
    "tues wed thu thur thurs fri sat sun lun mié jue vie sáb dom".split()
)
"""Followed by more of the sentence where that begins with a number."""

STARTERS = frozenset(
    "the a an he she it we they i you this that these those there here his her its our their my your what when "
    "where who why how which if in on at as but and so or nor however although while after before since then now "
    "der die das ein eine er sie es wir ihr ich du dies diese dieser dieses dort hier sein ihre mein wenn als im "
    "am auf bei doch aber und danach dann jetzt heute le la les un une il elle nous vous ils elles ce cette ces "
    "cela je tu dans mais et alors puis el los las una unos yo tú ella nosotros ellos este esta esto estos eso en "
    "pero y entonces luego lo gli uno egli noi voi loro questo questa questi nel ma e poi allora o os um uma ele "
    "ela nós eles elas isto mas de het een hij zij ze wij ik dit dat deze maar toen den det han hun vi jeg disse "
    "men og så он она оно они мы вы я ты это этот эта эти но и на что как когда если тогда потом on ona ono oni "
    "my wy ja ty to ten ta te ale co jak kiedy tá tento táto toto však".split()
)
"""Words that, with a capital letter, begin a sentence even after an abbreviation."""

AFTER_ORDINAL = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert "
    "jahrhunderts jh jahrestag geburtstag klasse stock etage weltkrieg weltkriegs tag tages auflage semester "
    "marts maj december årsdag århundrede".split()
)
"""Nouns with a capital letter that follow an ordinal number written with a period."""
