"""Document attributes of a Kendra index, and the filters over them.

Source: Amazon Kendra Developer Guide, "Document attributes or fields"; botocore's model, ``AttributeFilter``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cicada_local.kendra.errors import ValidationFailed

Value = str | int | float | list[str]
Attributes = Mapping[str, Value]
Test = Callable[[Attributes], bool]

STRING, LIST, LONG, DATE = "STRING_VALUE", "STRING_LIST_VALUE", "LONG_VALUE", "DATE_VALUE"
_MEMBERS = {STRING: "StringValue", LIST: "StringListValue", LONG: "LongValue", DATE: "DateValue"}

RESERVED: Mapping[str, str] = {
    "_authors": LIST,
    "_category": STRING,
    "_created_at": DATE,
    "_data_source_id": STRING,
    "_document_title": STRING,
    "_excerpt_page_number": LONG,
    "_faq_id": STRING,
    "_file_type": STRING,
    "_language_code": STRING,
    "_last_updated_at": DATE,
    "_source_uri": STRING,
    "_tenant_id": STRING,
    "_version": STRING,
    "_view_count": LONG,
}
"""What every index has."""

MAX_STRINGS = 10
"""Of one list. Source: the API reference, ``DocumentAttributeValue``."""
MAX_FILTERS = 10
"""Side by side in one ``AndAllFilters`` or ``OrAllFilters``. Source: the API reference, ``AttributeFilter``."""
MAX_DEPTH = 2
"""Of lists of filters within each other. Source: there too."""
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThan": lambda found, asked: found > asked,
    "GreaterThanOrEquals": lambda found, asked: found >= asked,
    "LessThan": lambda found, asked: found < asked,
    "LessThanOrEquals": lambda found, asked: found <= asked,
}


def read_attribute(attribute: Mapping[str, Any], types: Mapping[str, str]) -> tuple[str, Value]:
    """An attribute's key and value. Raises ValidationFailed for one that the index does not have so."""
    key, value = attribute["Key"], {name: one for name, one in attribute["Value"].items() if one is not None}
    if key not in types:
        raise ValidationFailed(f"Invalid attribute key {key}: it is not in the index")
    if list(value) != [_MEMBERS[types[key]]]:
        raise ValidationFailed(f"Invalid value for the attribute {key}: it must be given as {_MEMBERS[types[key]]}")
    found: Value = next(iter(value.values()))
    if isinstance(found, list) and len(found) > MAX_STRINGS:
        raise ValidationFailed(f"The attribute {key} has more than {MAX_STRINGS} strings")
    return key, found


def write_attribute(key: str, value: Value, types: Mapping[str, str]) -> dict[str, Any]:
    """An attribute as responses have it."""
    return {"Key": key, "Value": {_MEMBERS[types[key]]: value}}


def read_filter(document: Mapping[str, Any], types: Mapping[str, str], depth: int = 0) -> Test:
    """Read an ``AttributeFilter`` that lies that deep in others. Raises ValidationFailed."""
    given = {kind: condition for kind, condition in document.items() if condition is not None}
    if len(given) != 1:
        raise ValidationFailed("You can only provide one attribute filter at each level")
    kind, condition = next(iter(given.items()))
    if kind in ("AndAllFilters", "OrAllFilters"):
        if depth == MAX_DEPTH:
            raise ValidationFailed(f"AttributeFilter cannot have a depth of more than {MAX_DEPTH}.")
        if len(condition) > MAX_FILTERS:
            raise ValidationFailed(f"AttributeFilter cannot have a length of more than {MAX_FILTERS}")
        if not condition:
            raise ValidationFailed(f"{kind} must not be empty")
        tests = [read_filter(part, types, depth + 1) for part in condition]
        if kind == "AndAllFilters":
            return lambda attributes: all(test(attributes) for test in tests)
        return lambda attributes: any(test(attributes) for test in tests)
    if kind == "NotFilter":
        test = read_filter(condition, types, depth)
        return lambda attributes: not test(attributes)
    key, asked = read_attribute(condition, types)
    return _leaf(kind, key, asked, types[key])


def _leaf(kind: str, key: str, asked: Any, type_: str) -> Test:
    if kind in _COMPARISONS:
        if type_ not in (LONG, DATE):
            raise ValidationFailed(f"{kind} is not supported for the attribute {key}")
        compare = _COMPARISONS[kind]
        return lambda attributes: key in attributes and compare(attributes[key], asked)  # type: ignore[arg-type]
    if kind == "EqualsTo":
        if type_ == LIST:
            raise ValidationFailed(f"EqualsTo is not supported for the attribute {key}: use ContainsAny or ContainsAll")
        return lambda attributes: attributes.get(key) == asked
    if type_ != LIST:
        raise ValidationFailed(f"{kind} is only applicable to StringListValue")
    wanted = set(asked)
    if kind == "ContainsAll":
        return lambda attributes: wanted <= set(_list(attributes.get(key)))
    return lambda attributes: bool(wanted & set(_list(attributes.get(key))))


def _list(value: Value | None) -> list[str]:
    return value if isinstance(value, list) else []
