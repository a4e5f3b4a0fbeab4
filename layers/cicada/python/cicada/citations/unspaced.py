"""What runs of scripts without spaces say: their pairs of characters, and what denies them."""

from __future__ import annotations

import re

_NEGATION = re.compile(r"[不没沒未别別勿]|(?<!た)ない|なかった|ません|ずに|なしで|なく|않|못하|못했|아니|없")
_NECESSITY = re.compile(
    r"(?:なけれ|なければ|なくて)(?:ば)?は?(?:なら|なり|いけ)(?:ない|ません)|ないと(?:いけない|いけません)|"
    r"ざるを得ない|かもしれ(?:ない|ません)|"
    r"に(?:すぎ|過ぎ)(?:ない|ません)|"
    r"不得不|不仅|不但|不过|不久|不同|没错|지\s?않으면|差不多|不少|不断|不会不|別の|別に|不足|只不过|別人|区别|"
    r"分别|特别|个别"
)
"""Negations that state: *must*, *not only*."""
_DOUBTFUL = re.compile(
    r"除了|除非|以外|だけ|のみ|しか|只|仅|無[人料]|免费|避け|避免|禁|不足|以下|以内|超|缺|欠|断|拒|まで"
)
_HIRAGANA = re.compile(r"[\u3041-\u309f]")
_PARTICLES = re.compile(r"[은는이가을를에의도로와과]$")


def denials_in(run: str) -> int:
    """How many words deny what a run says; *must* (なければならない) and *not only* (不仅) do not."""
    return len(_NEGATION.findall(_NECESSITY.sub("", run)))


def doubts_in(run: str) -> list[str]:
    """The words of a run that deny by their meaning, or only under a condition."""
    return _DOUBTFUL.findall(run)


def pairs_of(run: str) -> list[str]:
    """A run's pairs of characters, without those that only inflect."""
    bare = _PARTICLES.sub("", run) if len(run) > 2 else run
    pairs = (bare[at : at + 2] for at in range(max(1, len(bare) - 1)))
    return [pair for pair in pairs if not all(map(_HIRAGANA.match, pair))]
