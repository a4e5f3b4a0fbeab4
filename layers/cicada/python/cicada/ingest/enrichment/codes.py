"""Find identifiers in a text by patterns; precision counts more than recall.

The patterns: parts and products (``PX-210``, ``6ES7-214-1AG40``, ``MPX4250A``), errors (``ORA-00942``, ``0x80070005``,
``ERR_CONNECTION_RESET``), standards (``ISO/IEC 27001:2022``, ``RFC 6455``), classifications (``J45.901``), and UUIDs.
Not identifiers: parts of addresses and paths, dates, quarters, quantities with units, and names of formats.
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
"""URLs, e-mail addresses and paths, with a request's method; of a path without leading punctuation. Possessive
quantifiers keep it linear."""
_MONTH = r"(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|SEPT|OCT|NOV|DEC)"
_UNIT = r"(?:[KMGT]?B|[KM]?HZ|[KM]?W|[KM]?V|[KM]?A|MM|CM|KM|KG|MG|ML|L|M|G|S|H|MIN|FT|IN|LB|OZ|RPM|PSI|DPI|K|P|D|X)"
_NONE = re.compile(
    rf"\d{{1,2}}-{_MONTH}-\d{{2,4}}|{_MONTH}-?\d{{1,4}}|(?:19|20)\d\d-(?:[QHWS]\d{{1,2}}|{_MONTH})|[QHW]\d{{1,2}}-?(?:19|20)\d\d"
    rf"|(?:FY|CY|AD|BC|CE)-?\d{{2,4}}|\d+{_UNIT}?(?:-\d+{_UNIT}?)+|\d+-[A-Z]{{2,}}(?:-[A-Z]+)*"
    r"|(?:UTC|GMT|UTF|SHA|MD|AES|RSA|HTTP|TLS|SSL|ES|USB|COVID|MP|PM|CO|IPV|PKCS|BASE|WIN|INT|UINT|FLOAT|X|VITAMIN)-?\d+"
    r"|(?:[A-Z]{1,6}-)?\d{1,2}(?:ST|ND|RD|TH)"
)


def codes_of(text: str) -> tuple[str, ...]:
    """The identifiers in a text as written, unique, in order; at most :data:`MAX_CODES`."""
    if not any(character.isdigit() or character == "_" for character in text):
        return ()
    found = (match[0] for match in _FAMILIES.finditer(_without_addresses(text)))
    return tuple(dict.fromkeys(code for code in found if _is_code(code)))[:MAX_CODES]


def without_codes(text: str) -> str:
    """A text with a placeholder for each identifier, address and path."""
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
    return digits >= (3 if re.fullmatch(r"[A-Z]\d+", code) else 2)  # A4 and B12 are a paper size and a vitamin
