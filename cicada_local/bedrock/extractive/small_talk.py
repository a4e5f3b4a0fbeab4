"""What is said without passages: courtesies, and that the script was not consulted."""

from __future__ import annotations

import re

from cicada.text.word_lists import word_lists
from cicada_local.bedrock.extractive.text import STOP_WORDS, words

CANNOT_CONSULT = (
    "I cannot consult the script in this answer, so I will not guess. "
    "Please ask the question again, and I will look it up in the passages."
)


def _phrases(*phrases: str, foreign: str = "") -> re.Pattern[str]:
    """Whole phrases of languages with spaces; ``foreign`` ones may stand anywhere."""
    latin = rf"\b(?:{'|'.join(phrases)})\b"
    return re.compile(f"{latin}|{foreign}" if foreign else latin, re.I)


_COURTESIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        _phrases(
            r"(?:who|what) (?:exactly )?(?:are|r) (?:you|u)",
            r"what(?:'s| is) your (?:name|purpose|job)",
            r"what (?:else )?can (?:you|i) (?:do|ask|help)(?: you)?",
            r"what do you do",
            r"(?:tell me about|introduce) yourself",
            r"are you (?:(?:a|an) )?(?:real |human )?(?:ai|bot|robot|human|machine|person|real)",
            r"(?:who|what) is cicada",
            r"how (?:do|does) (?:you|this|it) work",
            r"(?:can you )?help me",
            r"(?<!\w )help",
        ),
        "I am Cicada. Ask me about the script: who said what, where, when and in which episode. "
        "I answer with quotations, and each names the passage that it is from.",
    ),
    (
        _phrases(
            r"how are (?:you|things)(?: (?:doing|going))?",
            r"how(?:'s| is) (?:it going|life|everything|your day)",
            r"how do you (?:do|feel)",
            r"what(?:'s| is) up",
            foreign="お元気ですか",
        ),
        "I am well, thank you. What would you like to know about the script?",
    ),
    (
        _phrases(
            r"thanks|thank (?:you|u)|thx|ty|cheers|much (?:appreciated|obliged)|i appreciate (?:it|that)",
            "merci|danke|gracias|grazie|obrigad[oa]",
            foreign="ありがとう(?:ございます|ございました)?|谢谢|謝謝",
        ),
        "You are welcome! Ask whenever there is more you want to know about the script.",
    ),
    (
        _phrases(
            r"bye|goodbye|good night|goodnight|see (?:you|ya)|farewell|so long|take care",
            r"have a (?:good|nice|great) \w+",
            "au revoir|auf wiedersehen|tschüss|adi[oó]s",
            foreign="さようなら|またね|おやすみ(?:なさい)?|再见|再見",
        ),
        "Goodbye! The script will be here when you come back.",
    ),
    (
        _phrases(
            r"hi|hello|hey|hiya|howdy|greetings|yo|good (?:morning|afternoon|evening|day)",
            r"(?:nice|pleased|good) to meet you",
            "hallo|hola|bonjour|salut|guten (?:tag|morgen|abend)|ciao|hej|moin",
            foreign="こんにちは|こんばんは|おはよう(?:ございます)?|你好|您好|안녕(?:하세요)?",
        ),
        "Hello! What would you like to know about the script?",
    ),
    (
        _phrases(
            "ok|okay|alright|great|cool|nice|perfect|awesome|brilliant|lovely|wonderful|excellent|sorry|lol|haha",
            r"well done|good (?:job|work|answer|one)|got it|i see|makes sense|never ?mind|no worries|yes|no|yep|nope",
        ),
        "Good. Ask me about the script whenever you like.",
    ),
)
_FILLERS = word_lists("cicada_local", "words.json")["fillers"]
_QUESTION_WORDS = word_lists("cicada_local", "words.json")["question_words"]


def small_talk(message: str) -> str:
    """A short, friendly reply to a courtesy; to anything else, that the script cannot be consulted.

    A courtesy is a message of nothing but polite phrases: *when does Petra say goodbye?* is none.
    """
    rest = message.replace("’", "'")
    replies: list[str] = []
    for courtesy, reply in _COURTESIES:
        rest, times = courtesy.subn(" ", rest)
        if times:
            replies.append(reply)
    left_over = set(words(rest))
    if not replies or left_over & _QUESTION_WORDS or left_over - STOP_WORDS - _FILLERS:
        return CANNOT_CONSULT
    return replies[0]
