"""Whether a kept answer may still be given again."""

from __future__ import annotations

from cicada.answering.fit import MAX_SENTENCE_CHARS
from cicada.answering.semantic_cache.records import Body
from cicada.citations import check_citations


def still_holds(body: Body) -> bool:
    """Whether today's check finds nothing against what was verified then, over the passages as they were kept."""
    checked = check_citations(body.text, body.sources)
    again = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in checked if one.verdict != "unverified"}
    then = {(one.n, one.sentence[:MAX_SENTENCE_CHARS]) for one in body.citations if one.verdict == "verified"}
    return bool(then) and then <= again
