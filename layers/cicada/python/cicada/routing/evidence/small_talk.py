"""``direct``: greetings, thanks, goodbyes and chat, which need no corpus."""

from __future__ import annotations

from cicada.routing.evidence.table import DECISIVE, FAIR, STRONG, said, seen
from cicada.routing.reading import Fact
from cicada.routing.small_talk import ABOUT_THE_ASSISTANT, AMUSEMENTS

ROWS = (
    seen("direct", DECISIVE, "greets, thanks or chats and does nothing else", Fact.ONLY_SMALL_TALK),
    seen("direct", DECISIVE, "uses no words that could be searched for", Fact.NO_WORDS),
    seen("direct", FAIR, "makes a remark or calls somebody, and asks for nothing", Fact.ADDS_A_REMARK),
    said("direct", STRONG, "asks the assistant about itself", ABOUT_THE_ASSISTANT),
    said("direct", STRONG, "wants to be entertained", AMUSEMENTS),
)
