"""Whether passages say what sentences of an answer say, by the words that both have: a stand-in's judgement."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from cicada.text.sentences import contains_quotation, quotations
from cicada_local.bedrock.extractive.siding import PLAIN, negated
from cicada_local.bedrock.extractive.text import content_stems

_PASSAGE = re.compile(r'<passage n="(\d+)" place="([^"]*)">\s*([^<]*?)\s*</passage>')
_SENTENCE = re.compile(r'<sentence n="(\d+)" passages="([\d,]*)">([^<]*)</sentence>')


def asks_to_judge(user: str, schema: Mapping[str, Any]) -> bool:
    """Whether a form asks what passages say of numbered sentences."""
    return "sentences" in schema.get("properties", {}) and _SENTENCE.search(user) is not None


def judge_sentences(user: str) -> dict[str, Any]:
    """Supported if a sentence's passages have its quotations, or nearly all its telling words, and deny as it does."""
    passages = {int(n): html.unescape(f"{text} {place}") for n, place, text in _PASSAGE.findall(user)}
    told = []
    for n, cited, text in _SENTENCE.findall(user):
        there = " ".join(passages.get(int(one), "") for one in cited.split(",") if one)
        told.append({"n": int(n), "verdict": _verdict(html.unescape(text), there)})
    return {"sentences": told}


def _verdict(sentence: str, there: str) -> str:
    quoted = list(quotations(sentence))
    if quoted and all(contains_quotation(there, one) for one in quoted):
        return "supported"
    wanted = content_stems(sentence)
    if not wanted:
        return "cannot_tell"
    if len(wanted & content_stems(there)) < PLAIN * len(wanted):
        return "not_stated"
    return "supported" if negated(sentence) == negated(there) else "contradicted"
