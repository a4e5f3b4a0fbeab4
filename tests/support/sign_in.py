"""A browser as far as the sign-in needs one: cookies, forms, redirects that it shows instead of following."""

from __future__ import annotations

import base64
import hashlib
import http.cookiejar
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

PAGE = "http://localhost:4600/"
CALLBACK = "http://localhost:8741/callback"
EMAIL = "ada@example.com"
PASSWORD = "Correct-horse-7"


@dataclass(frozen=True)
class Reply:
    """What came back."""

    url: str
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def location(self) -> str:
        """Where it redirects to."""
        return urljoin(self.url, self.headers["Location"])

    @property
    def sent_back(self) -> dict[str, str]:
        """The fields of the address that it redirects to."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.location).query).items()}


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """Keeps cookies; follows nothing by itself."""

    def __init__(self) -> None:
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            _Stay, urllib.request.HTTPCookieProcessor(self.cookies), urllib.request.ProxyHandler({})
        )

    def get(self, url: str, **headers: str) -> Reply:
        return self._open(urllib.request.Request(url, headers=headers))

    def post(self, url: str, form: Mapping[str, str], **headers: str) -> Reply:
        return self._open(urllib.request.Request(url, data=urlencode(form).encode(), headers=headers))

    def submit(self, page: Reply, **fields: str) -> Reply:
        """Fill in the last form of a page, or its first for a button's field alone."""
        forms = re.findall(r"<form.*?</form>", page.text, re.DOTALL)
        form = forms[0 if set(fields) == {"continue"} else -1]
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))
        return self.post(page.url, {name: unescape(value) for name, value in hidden.items()} | fields)

    def sign_in(self, url: str, name: str = EMAIL, password: str = PASSWORD, new_password: str | None = None) -> Reply:
        """Go from an authorization URL to the redirect that ends the sign-in."""
        page = self.get(self.get(url).location)
        reply = self.submit(page, username=name, password=password)
        return reply if new_password is None else self.submit(reply, new_password=new_password)

    def _open(self, request: urllib.request.Request) -> Reply:
        try:
            with self._opener.open(request, timeout=10) as answer:
                return Reply(request.full_url, answer.status, dict(answer.headers.items()), answer.read().decode())
        except urllib.error.HTTPError as error:
            return Reply(request.full_url, error.code, dict(error.headers.items()), error.read().decode())


class Pkce:
    """A verifier and its challenge."""

    def __init__(self) -> None:
        self.verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(self.verifier.encode()).digest()
        self.challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
