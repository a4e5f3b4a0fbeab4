"""The lexical part of a segment: BM25 by words, phrases and prefixes. This module names its sections and constants.

``analysis`` turns texts into terms, ``codec`` terms into sections and back, ``part`` opens a segment's sections, and
``search`` ranks the rows of all parts for a query that ``query_parser`` has parsed.
"""

ANALYZER_VERSION = 1  # increase it whenever the same text would give other terms
FORMAT = 1  # the layout of the sections
PART = "lexical"

# BM25's parameters (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
K1 = 1.2  # how fast repetitions of a word lose weight
B = 0.75  # how much a passage's length counts against it
WEIGHT_UNITS = 64  # weights of words, and lengths of passages, are whole multiples of 1/64
MAX_WEIGHT_UNITS = 65_535  # of a word in one passage: 1,023 occurrences; more would hardly change the score
MAX_POSITION = 65_535  # later words of a passage are found as words, but not in phrases

ROW_BLOCK = 65_536  # rows below one base: a posting keeps 16 bits of its row
TERMS_PER_BLOCK = 128  # terms of the dictionary that are read at once
MAX_ROWS = 262_144  # rows of a segment

DICTIONARY = f"{PART}.dictionary"
POSTINGS = f"{PART}.postings"
LENGTHS = f"{PART}.lengths"
POSITIONS = f"{PART}.positions"
LANGUAGES = f"{PART}.languages"
BLOCKS = f"{PART}.blocks"
WEIGHTS = f"{PART}.weights"
