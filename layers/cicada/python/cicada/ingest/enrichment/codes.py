"""Identifiers in a text, by the families of patterns that people make them by; rather none than a wrong one.

The families: parts and products (``PX-210``, ``6ES7-214-1AG40``, ``MPX4250A``), errors (``ORA-00942``, ``0x80070005``,
``ERR_CONNECTION_RESET``), standards (``ISO/IEC 27001:2022``, ``RFC 6455``), classifications (``J45.901``), and UUIDs.
What lies in an address, a path or an e-mail address is none, and neither is a date, a quarter, a quantity with its unit
or the name of a format.
"""

from __future__ import annotations

import re

MAX_CODES = 32  # per text
MAX_CODE_CHARS = 64

_BEFORE = r"(?<![A-Za-z0-9_./@#\\-])"
_AFTER = r"(?![A-Za-z0-9_@]|[./\\-][A-Za-z0-9])"
_FAMILIES = re.compile(
    "|".join(
        f"(?:{_BEFORE}{family}{_AFTER})"
        for family in (
            r"(?:ISO|IEC|DIN|EN|ANSI|ASTM|IEEE|RFC|NIST|JIS|MIL-STD|ITU-T)"
            r"(?:[/ ](?:ISO|IEC|EN|IEEE|ASTM|SP|TS|TR)){0,2}[ -][A-Z]{0,2}"
            r"\d{2,6}(?:[.-]\d{1,4}){0,3}(?::\d{4})?",
            r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
            r"0x[0-9A-Fa-f]{4,16}",
            r"(?:ERR|ERROR|WARN|EXC)(?:_[A-Z0-9]+)+",
            r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:ERROR|FAILED|FAILURE|EXCEPTION|TIMEOUT|DENIED)",
            r"[A-Z]\d{2}\.\d{1,4}",
            r"(?=[A-Z0-9-]*[A-Z])(?=[A-Z0-9-]*\d)[A-Z0-9]+(?:-[A-Z0-9]+)+",
            r"[A-Z]{1,6}\d{2,}(?:[A-Z]{1,4}(?:\d+[A-Z]{0,2})?)?",
        )
    )
)
_ADDRESS = re.compile(
    r"(?<!\S)\S*(?:://|@|\\)\S*|(?<!\w)(?:[A-Z]{3,7} )?~?/\S+"
    r"|(?<![\w.-])([.-]*+)(?=[\w.-]++/)(?=[^a-z/]*+[a-z])[\w.-]++/[\w./-]*|\bwww\.\S+"
)
"""Addresses, e-mail addresses and paths, a request's method included; a path but for the signs before it. What stands
without a space between is looked through once, not once from each of its letters."""
_MONTH = r"(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|SEPT|OCT|NOV|DEC)"
_UNIT = r"(?:[KMGT]?B|[KM]?HZ|[KM]?W|[KM]?V|[KM]?A|MM|CM|KM|KG|MG|ML|L|M|G|S|H|MIN|FT|IN|LB|OZ|RPM|PSI|DPI|K|P|D|X)"
_NONE = re.compile(
    rf"\d{{1,2}}-{_MONTH}-\d{{2,4}}|{_MONTH}-?\d{{1,4}}|(?:19|20)\d\d-(?:[QHWS]\d{{1,2}}|{_MONTH})|[QHW]\d{{1,2}}-?(?:19|20)\d\d"
    rf"|(?:FY|CY|AD|BC|CE)-?\d{{2,4}}|\d+{_UNIT}?(?:-\d+{_UNIT}?)+|\d+-[A-Z]{{2,}}(?:-[A-Z]+)*"
    r"|(?:UTC|GMT|UTF|SHA|MD|AES|RSA|HTTP|TLS|SSL|ES|USB|COVID|MP|PM|CO|IPV|PKCS|BASE|WIN|INT|UINT|FLOAT|X|VITAMIN)-?\d+"
    r"|(?:[A-Z]{1,6}-)?\d{1,2}(?:ST|ND|RD|TH)"
)
_LEAST_DIGITS = 2
_LONE_LETTER_DIGITS = 3


def codes_of(text: str) -> tuple[str, ...]:
    """The identifiers in a text as they are written, each once, in order; at most :data:`MAX_CODES`."""
    if not any(character.isdigit() or character == "_" for character in text):
        return ()
    found = (match[0] for match in _FAMILIES.finditer(_without_addresses(text)))
    return tuple(dict.fromkeys(code for code in found if _is_code(code)))[:MAX_CODES]


def without_codes(text: str) -> str:
    """A text with a sign in the place of each identifier, address and path, which are no words of it."""
    return _FAMILIES.sub("¤", _without_addresses(text))


def _without_addresses(text: str) -> str:
    if not any(sign in text for sign in ("/", "@", "\\", "www.")):
        return text
    return _ADDRESS.sub(r"\1 ¤ ", text)


def _is_code(code: str) -> bool:
    digits = sum(character.isdigit() for character in code)
    if len(code) > MAX_CODE_CHARS or _NONE.fullmatch(code):
        return False
    if "_" in code:
        return True
    if re.fullmatch(r"[A-Z]\d+", code):  # a paper size, a street, a vitamin, unless it is a long one
        return digits >= _LONE_LETTER_DIGITS
    return digits >= _LEAST_DIGITS
