"""Decode text in any encoding."""

from __future__ import annotations

import codecs
import re

from cicada.errors import DocumentBroken

_SAMPLE_BYTES = 65_536
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LATIN = "cp1252"
_JAPANESE = ("cp932", "euc_jp")
_CANDIDATES = [
    *(_LATIN, "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *(*_JAPANESE, "gb18030", "big5", "cp949"),
]
_KANA = re.compile("[\u3041-\u30ff]")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_KANA_SHARE = 0.3  # of Japanese text at least; not of text decoded as Japanese by mistake
_NOT_ASCII_BYTES = bytes(range(0x80, 0x100))
_REPLACED = "\ufffd"
_STRAY_SHARE = 0.3
"""Of the sequences beyond ASCII, at most so many are wrong in damaged UTF-8, and most in other encodings. Of texts with
four Chinese or Korean characters, one in 20 has only half of them wrong, and one in 300 no more than this."""
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY_SHARE = 0.01


def decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    """A file's text, and notes for the loader: encoding guessed, bytes replaced.

    A byte order mark decides, then UTF-16 if every second byte is zero, then UTF-8 unless too much is invalid, then the
    most likely encoding. Raises DocumentBroken for binary data, or text that contradicts its byte order mark.
    """
    text, notes = _decoded(data)
    if len(_BINARY.findall(text)) > _BINARY_SHARE * len(text):
        raise DocumentBroken("is not text: it contains binary data")
    return text, notes


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data, encoding), ()
    if wide := _without_mark(data):  # before UTF-8, in which zeros between ASCII letters are valid, too
        return data.decode(wide, errors="replace"), _guess_note(wide)
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        first_wrong = error.start
    text = data.decode(errors="replace")
    stray = text.count(_REPLACED) - data.count(_REPLACED.encode())
    beyond_ascii = len(text) - len(data.translate(None, delete=_NOT_ASCII_BYTES))
    if stray <= _STRAY_SHARE * beyond_ascii:
        return text, (f"bytes that are not UTF-8 were replaced: {stray:,}",)
    guess = _guess(data[max(0, first_wrong - _SAMPLE_BYTES // 2) :][:_SAMPLE_BYTES])
    return data.decode(guess, errors="replace"), _guess_note(guess)


def _guess_note(encoding: str) -> tuple[str, ...]:
    return (f"its encoding was guessed: {encoding}",)


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentBroken(
            f"is not {encoding.removesuffix('-sig').upper()}, as it says: byte {error.start}"
        ) from None


def _without_mark(data: bytes) -> str | None:
    sample = data[: _SAMPLE_BYTES // 2 * 2]
    zeros = sample[::2].count(0), sample[1::2].count(0)
    if max(zeros) <= len(sample) / 4 or min(zeros) > max(zeros) / 10:
        return None
    return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"


def _guess(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample, cp_isolation=_CANDIDATES))
    kana = {match.encoding: _kana_share(str(match)) for match in matches if match.encoding in _JAPANESE}
    if kana and max(kana.values()) >= _KANA_SHARE:
        return max(kana, key=kana.__getitem__)
    if not matches:
        return _LATIN
    best = matches[0]
    for match in matches:  # Western and Central European encodings share letters: prefer the common one
        if _LATIN in match.could_be_from_charset and match.chaos <= best.chaos and match.coherence >= best.coherence:
            return _LATIN
    return best.encoding


def _kana_share(text: str) -> float:
    return len(_KANA.findall(text)) / max(1, len(_NOT_ASCII.findall(text)))
