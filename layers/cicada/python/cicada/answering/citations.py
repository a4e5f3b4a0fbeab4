"""From the markers of an answer to citations, each checked against the passage that it names."""

from __future__ import annotations

import re
import unicodedata
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
"""The share of a sentence's content words that its passage must contain, where it has no quote to go by."""

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
    case, spacing and typographic variants), each number, and, without a quotation, at least :data:`MIN_SUPPORT` of the
    content words. Words of the locator (speaker, episode) count as the passage's. Anything else is *unverified*, with
    the reason.
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
                reason = _objection(sentence.text, source, cited)
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
    ends = [match.end() for match in _SENTENCE_END.finditer(answer)]
    for end in [*(end for end in ends if not any(first < end < last for first, last in quotes)), len(answer)]:
        part = answer[start:end]
        start = end
        markers = [int(n) for marker in _MARKER.finditer(part) for n in re.split(r"\s*[,;]\s*", marker.group(1))]
        if markers:
            text = " ".join(_MARKER.sub("", part).split())
            sentences.append(_Sentence(text, tuple(dict.fromkeys(markers))))
    return sentences


def _objection(sentence: str, source: Source, cited: Sequence[Source]) -> str | None:
    """Why the passage does not carry the sentence, or None if it does.

    A sentence with several markers may draw each quotation and number from any of its passages; this passage must give
    at least one of them, or enough of the words.
    """
    label = _normal(_label(source))
    text = _normal(source.text)
    everything = [_normal(other.text) for other in cited]
    marked = [_normal(next(filter(None, match.groups()))).strip(" .,;:!?…。、") for match in _QUOTE.finditer(sentence)]
    quotes = [quote for quote in marked if quote not in label]  # the name of an episode is marked in the same way
    for quote in quotes:
        if not any(quote in other for other in everything):
            return "a quotation is not in the passage"
    if quotes and not any(quote in text for quote in quotes):
        return "no quotation of the sentence is in this passage"
    numbers = set(_NUMBER.findall(_QUOTE.sub(" ", sentence)))
    known = {number for other in cited for number in _NUMBER.findall(other.text + " " + _label(other))}
    missing = sorted(numbers - known)
    if missing:
        return f"the passage does not mention {missing[0]}"
    if quotes:
        return None
    words = _content(_normal(sentence))
    if not words:
        return "the sentence says nothing that could be compared"
    support = len(words & (_content(text) | _content(label))) / len(words)
    return None if support >= MIN_SUPPORT else f"the passage holds {support:.0%} of what the sentence says"


def _label(source: Source) -> str:
    locator = source.locator
    return f"{locator.speaker} {locator.episode_name} {locator.episode_id} {locator.chapter_id} {locator.message_id}"


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
