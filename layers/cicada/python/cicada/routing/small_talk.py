"""What people say around a request, or instead of one: greetings, thanks, politeness, chat. One phrase a line."""

from __future__ import annotations

SALUTATIONS = """
arigato|arigatou|arigatō|konnichiwa|konbanwa|ohayo|ohayou|sayonara|gozaimasu|annyeong|annyeonghaseyo|kamsahamnida|privet
spasibo|shukran|salam|salaam|shalom|mahalo|merhaba|zdravo|dobrý|dobry|den
ni hao
xie xie|xiexie
xièxie|nihao|xiexie
hi|hello|hey|greetings from *
hi|hello|hey|heya|hiya|yo|howdy|greetings|hullo|hai|aloha|namaste
sup $
welcome back|$
good morning|evening|afternoon|night|nite|day|evenin
morning|evening|afternoon $|everyone|all|there
wassup|wazzup
gm|gn|goodnight|nighty|ttyl|brb|cya|toodles|farewell
aw|aww|awww|ooh
you too $
same to|here
much love
i am ..1 good|fine|ok|okay|well|great
sorry about|for ..6 $
never mind ..4 $
just|only wanted|want to say|thank
thankyou|gd
thanks|thank|thx|tnx|thnx|thanx|ty|tysm|tyvm|cheers|kudos [you] [so|very|a] [much|lot|million|ton] [again|for]
many|big|huge thanks
much appreciated|obliged
bye|goodbye|adios [bye|for] [now]
see|catch|talk [to] you|ya [all] [later|soon|tomorrow|around|then|again|next] [week|time]
so long $
until|till next|tomorrow|later|then
take care
sleep well|tight
sweet dreams
have a ..1 good|great|nice|lovely|wonderful|pleasant ..1 day|evening|night|weekend|one|time|week
happy new|birthday|holidays|friday|easter|halloween
merry christmas
nice|pleased|glad|good|great to meet|see|talk|have|be
nice|good|great|lovely|fun talking|chatting|meeting|seeing|speaking to|with|you
how is it going
how are you|things|everything|we doing|going|today|feeling|$
how are you|things|everything ..1 doing|going
how do you do $
what is up|new $|with
long time no see
i am back
lol|haha|hahaha|hehe|lmao|rofl|wow|yay|woohoo|bravo|congrats|congratulations|hooray|oops|whoops|meh|hmm|hm
yeah|yep|yup|nope|nah|okay|ok|okey|alright|yes|no|sure|exactly|agreed|absolutely|indeed|roger|understood
cool|nice|great|perfect|awesome|amazing|excellent|brilliant|wonderful|fantastic|lovely|superb|neat|sweet|impressive
well done|played
good|great|nice|excellent job|work|bot|one|answer|point|stuff|luck|call|idea|to
got it
never mind
nevermind
no worries|problem|thanks|need
that is all|it|fine|great|good|enough|right|helpful|perfect|awesome|funny|nice|cool|everything
makes sense $
i see $
fair enough|point
happy|glad to be|see|hear|help
sounds|looks|feels good|great|fine|right|nice|fun
g day $
ta $
talk|speak|chat later|soon|tomorrow
you are ..3 @praise
you have been ..3 helpful|great|kind|useful
you rock|rule
that|this|it was|is ..2 helpful|great|useful|quick|fast|awesome|amazing|perfect|good|nice|fun|interesting|cool
i appreciate it|that|you|your|this
sorry|apologies|pardon|huh|whatever|anyone
no more|further questions
call it a
trying you|this out
have|good fun|luck|one
enjoy your|the|it
what|huh $
k thx|thanks|bye|then|$
you made my
i|we need|could|would|want ..2 help $
just|only testing|kidding|checking|looking|saying|joking
wrong window|chat|tab|button|key|one|person|question|box
ignore that|this|me|my
stop|wait $
hang|hold on $|a
one|just moment|second|sec|a
my name is *
i am ..2 off|leaving|out|done|finished|home
test|testing|ping $|1|one
hola|buenas|gracias|adiós|saludos|holi
buenos|buenas días|dias|tardes|noches
qué|que tal
muchas|mil gracias
hasta luego|mañana|manana|pronto
cómo|como estás|estas|está|va
bonjour|salut|bonsoir|merci|coucou|adieu|bienvenue|enchanté
bonne nuit|journée|soirée
au revoir
à|a bientôt|bientot|demain|plus
ça|ca va
comment ça|ca|vas|allez
guten|gute|schönen|schoenen tag|morgen|abend|nacht
hallo|moin|servus|tschüss|tschuess|tschüs|danke|grüezi|hallöchen
grüß|grüss|gruss gott|dich
vielen|besten|herzlichen|schönen|lieben|tausend dank
auf wiedersehen|wiederhören
bis bald|später|morgen|dann
wie geht
mach es|gut
salve|buongiorno|buonasera|buonanotte|grazie|arrivederci|ciao
buona notte|sera|giornata
come stai|va
tante|mille grazie
a presto|domani
olá|ola|oi|obrigado|obrigada|tchau
bom dia
boa tarde|noite
tudo bem
até logo|amanhã|mais
hoi|bedankt|doei|goedemorgen|goedenavond|goedemiddag|goedendag
dank je|u
tot ziens
hej|hejsan|tack|tak|takk|hejdå|moi|kiitos
cześć|dziękuję|dzięki|witaj|ahoj|děkuji|díky|merhaba|selam|teşekkürler|köszönöm|mulțumesc
dzień dobry
do widzenia
привет|здравствуйте|здравствуй|спасибо|пока|приветствую|привіт|дякую|вітаю
доброе|добрый|доброй|доброго утро|день|вечер|ночи|дня
до свидания|завтра|встречи
как дела|ты
большое|огромное спасибо
مرحبا|شكرا|أهلا|اهلا|سلام
السلام عليكم
नमस्ते
धन्यवाद
שלום|תודה|γεια|ευχαριστώ|καλημέρα|καλησπέρα|καληνύχτα
xin chào
cảm ơn
terima kasih
안녕|안녕하세요|안녕하십니까|감사합니다|고마워|고마워요|고맙습니다
こんにちは
こんばんは
おはよう
ありがとう
どうも
さようなら
さよなら
おやすみ
はじめまして
よろしく
お元気
元気ですか
元気
元気ですか
じゃあね
またね
また明日
もしもし
お疲れ様
すみません
ごめんなさい
バイバイ
你好
您好
大家好
嗨
早上好
下午好
晚上好
早安
晚安
谢谢
謝謝
多谢
感谢
再见
再見
拜拜
明天见
哈喽
"""
"""Greetings, thanks, goodbyes, acknowledgements, in the languages that askers are likeliest to greet in."""

AFTERWORDS = """
für|fuer deine|die|ihre|eure hilfe|antwort
pour ton|votre|l aide
por tu|su ayuda
你的
帮助
for your|the|all|everything|that|this ..2 help|answer|answers|time|patience|explanation|work|support|effort
for helping|being ..2 me|there|patient|kind
sehr|beaucoup|mucho|infiniment|herzlich|schön|amigo|ami|freund|amiga
zusammen|todos|tous|dir|ihnen|euch|y|et|und|tu|tú|usted|toi|vous|es|bien|bene|bem|gut|très|ti|toi|à
ございます
でした
ございました
なさい
です
お願いします
吗
你
"""
"""What only prolongs a salutation."""

ABOUT_THE_ASSISTANT = """
^ who|what are you $|exactly|really|anyway|again|called
^ who made|built|created|wrote|trained|programmed you
^ are you real|human|alive|there|ok|okay|ready|awake|conscious|sentient|busy|happy|sure|listening|online|still|chatgpt
^ are you a|an [real|human|language|large|chat|artificial] @agent
^ is anybody|anyone|somebody|someone there|here|home
^ what [else|all|kind] ..3 can|do|could you do|help !with|if|about
^ what are you able|capable|made|good|for|up|doing [to|of|at] [do|with]
^ what is|are your name|favorite|favourite|purpose|job|hobby|age|hobbies|capabilities|features
^ what should i call you
^ how old are you
^ how are|is|was|have you|your|things|everything|life [been|day|night|weekend|week]
^ how do|does you|this|it|cicada work $
^ how do you do|feel
^ do you like|love|speak|understand|know|remember me|music|being|humans|people|jokes|@tongue
^ do you have [a|any|real] name|feelings|body|soul|opinions|friends|family|hobbies|emotions|favorite|favourite|pets
^ who is your creator|maker|developer|author|owner
^ who is cicada $
^ what is this [app|site|place|thing|page|bot] $
^ how do|can i use you|this|it $
^ can i|we ask you $|something|anything
^ can we chat|talk|speak $|now|again|for
^ can we chat|talk|speak a [little] bit|while|moment|minute|$ $
^ can we chat|talk|speak [in] @tongue $
^ can we chat|talk|speak about|to|with you|something|anything [else] $
^ can we be friends
^ let us chat|talk|play
^ i am new [here]
^ are we friends
^ tell me about|more you $|about
^ is|hi , anyone
^ who am i talking|speaking|chatting to|with
^ can you understand|speak|hear|talk|sing|dance|think|feel|see me|music|@tongue|$
^ do you feel|sleep|dream|eat|ever|get ..3 $
^ what|which languages|language do|can you [speak|understand]
^ what is cicada $
^ who is behind cicada|this|you
^ where do|are you live|work|located|from
^ what|which ..2 model|llm|version|ai ..2 are|do|is|does you|this|it|cicada
^ how smart|good|fast|clever|intelligent|accurate|big|tall are you
^ do you know any|a|some|more jokes|joke|songs|stories
^ what do you like|love|enjoy|want|dream|hate
^ what do you think $
^ i do not|really|also like|love|hate|trust you
^ is this|it [thing|mic|bot|site|chat] on|working|live
^ what a|an *
^ am i ..1 talking|speaking|chatting
^ can you hear|see|read me
^ how|what is the weather
^ are you working|kidding|joking|serious|free|single|male|female
^ what time|day|date is it $|now|today
^ what can|should|could i|we ask $|you|cicada|here
^ what can|should|could i|we ask first|now|today $
^ what can|should|could i|we ask about $
^ what can|should|could i|we do [here|with] [you|cicada] [first|now|today|together] $
^ what can|could i|we do in|on|with this|the app|site|website|page|bot|tool|chat
^ where are you from
tell me about yourself
introduce yourself
^ i am [just|only] saying
^ i love|like|hate|missed|miss you
^ you are a|an|the|so|very|really|great|awesome|amazing|funny|wrong|right|cute|useless|my [bot|robot|ai|genius]
^ help [me|us] [out|please] $
"""
"""Questions and remarks about the assistant itself."""

AMUSEMENTS = """
^ tell [me|us] a|an|another|some|one [good|bad|funny|short|random|fun] joke|jokes|riddle|pun|limerick|fact|story
^ make me laugh|smile
^ give me a compliment|hug
^ sing [me|us] [a] [song]
^ write [me|us] a|an [short|little|funny] poem|haiku|limerick|song
^ say|tell [me|us] hello|hi|something [funny|nice|interesting|else|cool]
^ i am [so|very|a|really] [bit|little] bored|tired|sad|happy|lonely|hungry
"""
"""Requests to be entertained."""

OPENERS = """
so|well|now|and|also|but|then|or|plus|just|hmm|um|uh|oh|ah|anyway|anyways|actually|basically|next|finally
lastly|besides|however|first|second|third|firstly|secondly|thirdly|again|quickly|honestly|still|maybe|perhaps|cicada
can|could|would|will|may|might you|i|we [please|kindly|also|maybe|possibly|perhaps|quickly|just]
i|we ..1 want|need|like|wish|love to
i|we ..1 want|need|like|wish|love you to
i|we would ..1 appreciate|love|like [it] if you [could|would]
help me|us [to|with]
let us|me
go ahead and
try to
feel free to
make sure to|you
do not forget to
do me a favor|favour
i|we wonder|wondered
i am|was [just|only] wondering|curious|asking|looking [if|whether|about|to|for]
do|would|could you [happen] [to] know|mind|remember|recall
can|could|do you|anyone tell|say [me|us]
tell|remind me|us
one|another more|last|quick|other|final question|thing
one more [:]
quick|another|follow|new|last|next [up] question
by the way
btw|ps|fyi|imo|imho
excuse me
any chance [you|that] [could|can|to]
is there a way|chance to|you
are you able to
would it be possible to
in that case
after that
i|we do not|can remember|recall|know
i|we can not remember|recall
i|we forgot|forget
"""
"""What a request may begin with and what decides nothing about it."""
