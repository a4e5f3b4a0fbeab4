"""Checks of URLs and origins in the settings, as strict as the headers and policies that they become a part of."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?"
_ORIGIN = re.compile(rf"https?://{_HOST}")
_DEFAULT_PORTS = {"https": ":443", "http": ":80"}


def filled_in(value: str) -> str:
    """The value without surrounding spaces; there must be something left."""
    if not value.strip():
        raise ValueError("is empty: fill it in")
    return value.strip()


def web_url(value: str) -> str:
    """An ``https://`` or ``http://`` URL; the latter is refused later, outside the local cloud.

    Its host becomes a part of the page's content security policy, so it has no user, and no character of another use.
    """
    value = filled_in(value)
    scheme, rest = value.partition("://")[::2]
    if scheme not in _DEFAULT_PORTS or not re.fullmatch(_HOST, re.split(r"[/?#]", rest)[0], re.IGNORECASE):
        raise ValueError("must be a URL that begins with https:// and a host's name")
    return value


def origin(value: str) -> str:
    """A scheme, a host and perhaps a port, as browsers write them."""
    value = filled_in(value)
    if not _ORIGIN.fullmatch(value):
        raise ValueError(
            "must be an origin such as https://example.org, in small letters, without a path or a closing slash"
        )
    scheme = urlsplit(value).scheme
    if value.endswith(_DEFAULT_PORTS[scheme]):
        raise ValueError(f"must not end with {_DEFAULT_PORTS[scheme]}: browsers leave the usual port out")
    return value


def https_origin(value: str) -> str:
    """An origin over TLS."""
    if not value.startswith("https://"):
        raise ValueError("must be an origin such as https://example.org, which begins with https://")
    return origin(value)
