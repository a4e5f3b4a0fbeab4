"""From the markers of an answer to citations, each checked against the passage that it names."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from cicada.protocol.events import Citation, Source

_MARKER = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’»」』)]*(?:\s*\[[\d,;\s]+\])*(?=\s|$)|(?<=[。！？])|\n+")
_QUOTE = re.compile(r"\"([^\"\n]{2,}?)\"|“([^”\n]{2,}?)”|«([^»\n]{2,}?)»|「([^」\n]{1,}?)」|『([^』\n]{1,}?)』")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")

MIN_SUPPORT = 0.5
"""The share of a sentence's content words, outside of its quotations, that its passage must contain."""
_QUOTE_EDGES = " .,;:!?…。、"

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about after all also am an and any are as at be because been before being but by can could did do does for
        from had has have he her hers him his how i if in into is it its me my no nor not of on only or our out over own
        said say says she so some such tells than that the their them then there these they this those through to told
        too under until up was we were what when where which while who whom why will with would you your
        """,
    )
)


@dataclass(frozen=True)
class _Sentence:
    text: str
    """Without its markers."""
    numbers: tuple[int, ...]


def check_citations(answer: str, sources: Sequence[Source]) -> tuple[Citation, ...]:
    """One citation a marker, in the answer's order.

    A marker is *verified* when its passage exists and holds what the sentence says: each quotation verbatim (up to
    case, spacing and typographic variants), each number, no other passage's speaker, and at least :data:`MIN_SUPPORT`
    of the content words outside of quotations, the locator's words (speaker, episode) among them. Anything else is
    *unverified*, with the reason. It compares words, not meanings: a negation is beyond it.
    """
    by_number = {source.n: source for source in sources}
    citations = []
    for sentence in _sentences(answer):
        cited = [by_number[n] for n in sentence.numbers if n in by_number]
        for n in sentence.numbers:
            source = by_number.get(n)
            if source is None:
                reason: str | None = "there is no passage with this number"
            else:
                reason = _objection(sentence.text, source, cited, sources)
            citations.append(
                Citation(
                    n=n,
                    verdict="unverified" if reason else "verified",
                    sentence=sentence.text,
                    passage_id=source.passage_id if source else None,
                    locator=source.locator if source else None,
                    reason=reason,
                )
            )
    return tuple(citations)


def _sentences(answer: str) -> list[_Sentence]:
    """The sentences that carry markers. A marker belongs to the sentence before it or around it."""
    sentences = []
    start = 0
    quotes = [match.span() for match in _QUOTE.finditer(answer)]
    for end in [*(match.end() for match in _SENTENCE_END.finditer(answer)), len(answer)]:
        before = bisect_left(quotes, (end, end)) - 1
        if before >= 0 and end < quotes[before][1]:  # within a quotation
            continue
        part = answer[start:end]
        start = end
        markers = [int(n) for marker in _MARKER.finditer(part) for n in re.split(r"\s*[,;]\s*", marker.group(1))]
        if markers:
            text = " ".join(_MARKER.sub("", part).split())
            sentences.append(_Sentence(text, tuple(dict.fromkeys(markers))))
    return sentences


def _objection(sentence: str, source: Source, cited: Sequence[Source], sources: Sequence[Source]) -> str | None:
    """Why the passage does not carry the sentence, or None if it does.

    A sentence with several markers may draw its quotations, numbers and speakers from any of its passages; this
    passage must give a quotation of it, or enough of its words.
    """
    label = _normal(_label(source))
    marked = [_normal(next(filter(None, match.groups()))).strip(_QUOTE_EDGES) for match in _QUOTE.finditer(sentence)]
    quotes = [quote for quote in marked if quote and quote not in label]  # an episode's name is marked in the same way
    for quote in quotes:
        if not any(_holds(other.text, quote) for other in cited):
            return "a quotation is not in the passage"
    if quotes and not any(_holds(source.text, quote) for quote in quotes):
        return "no quotation of the sentence is in this passage"
    told = _QUOTE.sub(" ", sentence) if quotes else sentence
    known = " ".join(f"{other.text} {_label(other)}" for other in cited)
    missing = sorted(set(_NUMBER.findall(told)) - set(_NUMBER.findall(known)))
    if missing:
        return f"the passage does not mention {missing[0]}"
    stranger = next((name for name in _speakers(sources) if _holds(told, name) and not _holds(known, name)), None)
    if stranger is not None:
        return f"the passage neither is by {stranger} nor speaks of them"
    words = _content(_normal(told))
    if quotes:  # what introduces a quotation cannot be told from a claim where a script has no words
        words = {word for word in words if not _CJK.search(word)}
    if not words:
        return None if quotes else "the sentence says nothing that could be compared"
    there = _content(_normal(f"{source.text} {source.context or ''}")) | _content(label)
    support = len(words & there) / len(words)
    return None if support >= MIN_SUPPORT else f"the passage holds {support:.0%} of what the sentence says"


def _holds(text: str, part: str) -> bool:
    """Whether a text has another in it, between words: *no* is not in *know*."""
    pattern = re.escape(_normal(part))
    if not _CJK.search(part):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.search(pattern, _normal(text)) is not None


def _speakers(sources: Sequence[Source]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(voice for source in sources if (voice := source.locator.voice())))


def _label(source: Source) -> str:
    return " ".join(source.locator.names().values())


def _normal(text: str) -> str:
    """Case, spacing and typographic variants folded away."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for variants, plain in (("‘’‛′", "'"), ("“”„″", '"'), ("‐‑‒–—", "-")):
        for variant in variants:
            folded = folded.replace(variant, plain)
    return " ".join(folded.split())


def _content(text: str) -> set[str]:
    """Content words, cut to six letters so that inflections meet; pairs of characters where a script has no spaces."""
    words = {word[:6] for word in _WORD.findall(text) if not _CJK.search(word) and word not in _STOP_WORDS}
    cjk = [word for word in _WORD.findall(text) if _CJK.search(word)]
    return words | {word[i : i + 2] for word in cjk for i in range(max(1, len(word) - 1))}
