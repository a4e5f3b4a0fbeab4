"""The most frequent words of each stemmed language: what tells languages of one script apart."""

from __future__ import annotations

from collections import Counter

from cicada.text.tokens import normalised

_FREQUENT = {
    "eng": "the of and to in a is that for it was on are as with his they be at this have from or had by but what all were when your can there an which she do how their if will about up out them then who would been has more no not he you we my me i",  # noqa: E501
    "deu": "der die und das den von zu ist mit sich des auf für nicht ein eine im dem als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über so zum war haben nur oder aber vor zur bis mehr durch man wer was wo wann ich wir ihr",  # noqa: E501
    "fra": "le la les de des du et un une en est que qui dans pour pas sur au aux avec ce il elle sont par plus ne se cette ses son sa mais ou où nous vous leur été être comme fait tout quel quelle quels je tu ils elles ont avait",  # noqa: E501
    "spa": "el la los las de del y en que un una por con no se es para su al lo como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos qué cuál quién cuándo cuántos fue era ha yo",  # noqa: E501
    "ita": "il lo la i gli le di del della dei delle che e è un una in per non con si da come più anche ma al alla nel nella sono ha dal suo questo quando dove chi cosa quale quanto ed era stato essere loro io ci mi se",  # noqa: E501
    "por": "o a os as de do da dos das e em no na nos nas que um uma para com não por mais se foi ao como mas é ele ela são seu sua ou quando muito há já também só pelo pela até isso quem qual onde eu está ser tem",  # noqa: E501
    "nld": "de het een en van in is dat op te zijn met voor niet aan er om hij ook als dan maar bij uit door naar heeft nog wordt was ze deze die over werd worden wat wie waar hoe wij ik je hun tot kan meer geen",  # noqa: E501
    "swe": "och att det i en på är som av för med den till inte om ett han hon men var jag sig från vi så kan när år säger under efter har eller vad hur där de du sin ska detta vilken också blev varit",  # noqa: E501
    "dan": "og i at det er en den til af på for med ikke der som de har et han hun men var jeg sig fra vi så kan når blev om eller hvad hvor hvem hvordan havde være efter også dette meget du kun",  # noqa: E501
    "nor": "og i det er på en av som for til med ikke at den har de et var han men om jeg seg fra vi så kan når ble eller hva hvor hvem hvordan hadde være etter også dette mye du bare noe fikk mellom ut sier",  # noqa: E501
    "fin": "ja on ei se että oli hän joka mutta ovat myös kun niin tai sen mikä kuin jos ole olla minä sinä me te he mitä missä milloin kuka ollut vain sekä hänen tämä tässä nyt jo voi mukaan jossa jotka",  # noqa: E501
    "est": "ja on ei see et oli ta kes aga ka kui mis ning või selle mida olema mina sina meie oma ole tema nad kus millal ainult siis veel üle pärast juba poolt seda need mille pole",  # noqa: E501
    "hun": "a az és hogy nem is egy ez volt meg de csak van mint már vagy ki el kell aki ami azt ezt még lehet után mert minden volna ha mi hol mikor milyen sem pedig amely között szerint",  # noqa: E501
    "pol": "i w na z się nie do że to jest o jak po co za od przez ale dla czy są był była tak już tylko jego jej przy lub który która które kto gdzie kiedy może być oraz ze tym tego jako bardzo",  # noqa: E501
    "ces": "a v na se je že s z do o k to i za by ale jako po od pro byl byla bylo jsou který která které není jeho jen nebo tak co kdo kde kdy při už jak ve však také mezi podle",  # noqa: E501
    "ron": "și de în la a cu pe din nu că o un este sunt pentru care mai ce au fost al ale prin sau dar cum fi lui ei se le după fără când unde cine între foarte acest această iar ca",  # noqa: E501
    "tur": "ve bir bu da de için ile çok olarak daha olan gibi en kadar sonra ne var o ama mi değil her şey ben sen biz olduğu ise ki nasıl nerede kim hangi kaç tarafından veya göre oldu",  # noqa: E501
    "ind": "yang dan di ini itu dengan untuk dari pada tidak dalam adalah ke akan oleh juga atau sebagai karena telah ada bisa saya dia mereka kita lebih sudah apa siapa kapan bagaimana seperti dapat para tersebut",  # noqa: E501
    "cat": "el la els les de del dels i en que un una per amb no és al com més però es va són ha ser aquest aquesta també seu seva o quan on qui què molt fins entre des hi ho pels",  # noqa: E501
    "eus": "eta da ez bat du dira izan zen ere baina hau hori dute zuen egin den beste oso bere nor zer non noiz edo behar duen dela dago ziren baino",  # noqa: E501
    "lit": "ir yra į kad iš su tai buvo ne o kaip bet apie jo jos už dėl per tik taip pat savo nuo kas kur kada ar po prie jis ji metų arba kurie kuris iki",  # noqa: E501
    "gle": "agus an na is ar le i a ag sé sí bhí go de do tá don den nach ní seo sin mar ach nó féin bhfuil cé cad chuig bheith siad roimh ón faoi",  # noqa: E501
    "epo": "la kaj de en estas al ne ke por li ŝi mi vi ili estis kun el aŭ sed kiu kio kie kiam kiel tio ĉi pri per dum ankaŭ pli oni ĝi sur da",  # noqa: E501
    "sot": "ke le ya ho e ba o wa hore ka tsa la ha sa di mme bona hae ne se na ea ntho empa kapa jwalo tse tsena mang neng eng",  # noqa: E501
    "rus": "и в не на что с он как это по но из у за от то же все так его для она был мы бы к о я если или ни быть был была были есть при также только которые который кто где когда чем до",  # noqa: E501
    "srp": "и у је да се на су за од са као није али би који која које из или до што то бити био била ће само њих јер након због када где ко о",  # noqa: E501
    "ukr": "і в у не на що з він як це та до але за від його для вона був є ми або при також які який хто де коли була були якщо",  # noqa: E501
    "bul": "и в на да се не за от с е са като по че това той беше но към при или които който която ще към кой къде кога бяха си",  # noqa: E501
    "ara": "في من على إلى أن عن مع هذا هذه التي الذي كان ما لا هو هي قد كل بعد كانت ذلك بين لم أو و ثم إن حيث هل كيف أين متى",  # noqa: E501
    "fas": "و در به از که این را با است برای آن یک خود تا بر بود شد های می کرد هم نیز اما یا چه کجا چرا چگونه شده است کند دارد",  # noqa: E501
    "urd": "کے کی میں ہے اور سے کا کو کہ نے پر یہ اس ہیں ایک بھی تھا تھی جو تو نہیں گیا",
    "hin": "के का में की है को से और यह एक पर हैं ने कि भी था नहीं इस जो कर थे हो किया गया अपने वह तो लिए साथ क्या कौन कहाँ कब",
    "nep": "र को मा छ पनि हो यो का ले लाई भएको थियो गर्न गरेको छन् एक तर भने बाट त्यो के कसरी कहाँ रहेको हुन्छ",
    "mar": "आहे आणि या ते व हे च होते केले नाही आहेत तर एक म्हणून होता काय कोण",
    "heb": "של את על הוא לא היא זה עם כי גם או אם כל היה מה יש אני אבל הם",
    "ell": "και το η ο του της τα των να με για από στο στη στην που δεν είναι τον την σε θα οι ένα μια ως αυτό τι ποιος πού πότε ήταν έχει",  # noqa: E501
    "hye": "և է որ են ու մի այս նա այդ իր ինչ ով որտեղ երբ համար հետ եմ էր նրա",
    "tam": "ஒரு மற்றும் என்று இந்த அந்த என்ன யார் எங்கே எப்போது இது அது உள்ளது இருந்து",
    "yid": "און די איז פֿון פון אַז אין דער דאָס נישט צו מיט אויף װאָס וואס האָט ער זי איך א אַ",
}

FREQUENT: dict[str, frozenset[str]] = {code: frozenset(normalised(words).split()) for code, words in _FREQUENT.items()}
"""By ISO 639-3 code, in normal form."""

_SHARED = Counter(word for words in FREQUENT.values() for word in words)
EVIDENCE: dict[str, dict[str, float]] = {}
"""By word: how much it speaks for each language; a word that several share speaks less for each."""
for _code, _words in FREQUENT.items():
    for _word in _words:
        EVIDENCE.setdefault(_word, {})[_code] = 1 / _SHARED[_word]
