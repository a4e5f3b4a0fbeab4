"""The lexical part of a segment: BM25 by words, phrases and prefixes.

``analyse`` makes the forward form of passages, ``encode_lexical`` a segment's sections of it; ``decode_lexical`` and
``concat`` turn segments into a new one without the texts. ``LexicalPart`` opens a segment's part, and
``LexicalQuery`` (or ``search_lexical``, for one search) ranks the rows of all parts together.
"""

from cicada.index.lexical.constants import ANALYZER_VERSION, K1, B
from cicada.index.lexical.decoding import decode_lexical
from cicada.index.lexical.encoding import encode_lexical
from cicada.index.lexical.forward import analyse
from cicada.index.lexical.part import LexicalPart
from cicada.index.lexical.search import LexicalHits, LexicalQuery, search_lexical
from cicada.index.lexical.termrows import TermRows, concat, take

__all__ = [
    "ANALYZER_VERSION",
    "K1",
    "B",
    "LexicalHits",
    "LexicalPart",
    "LexicalQuery",
    "TermRows",
    "analyse",
    "concat",
    "decode_lexical",
    "encode_lexical",
    "search_lexical",
    "take",
]
