"""Reads web pages for the checks."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
MAX_BYTES = 1_000_000
AGENT = "cicada-doctor"
"""Some issuers reject urllib's default user agent with 403."""


class PageUnavailable(Exception):
    """No response; the message says why."""


@dataclass(frozen=True)
class Page:
    """A response."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


Fetch = Callable[[str], Page]
"""GETs a URL; redirects are followed. Raises PageUnavailable."""


def fetch(url: str) -> Page:
    """See :data:`Fetch`."""
    if urlsplit(url).scheme not in ("https", "http"):
        raise PageUnavailable(f"invalid web address {url}")
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})  # noqa: S310 - looked at above
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - likewise
            return _page(response.status, response.headers, response.read(MAX_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return _page(error.code, error.headers, error.read(MAX_BYTES))
    except (OSError, ValueError) as error:
        raise PageUnavailable(str(error)) from error


def _page(status: int, headers: Message, body: bytes) -> Page:
    return Page(status, {name.lower(): value for name, value in headers.items()}, body)
