"""The page's HTTP headers: one list in ``web/``, for the stacks and for other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

WEB = Path(__file__).resolve().parent.parent / "web"
"""The page's source."""


def page_headers(api: str, sign_in: Iterable[str] = (), uploads: str = "") -> dict[str, str]:
    """The headers that every host of the page has to send, by name.

    Args:
        api: the origin of the WebSocket, such as ``wss://abc.execute-api.eu-central-1.amazonaws.com``.
        sign_in: the origins that the page calls to sign in.
        uploads: the origin that uploads are sent to; empty where nobody may upload.
    """
    listed: dict[str, str] = json.loads((WEB / "headers.json").read_text(encoding="utf-8"))
    places = {"{api}": api, "{signIn}": " ".join(sign_in), "{uploads}": uploads}

    def filled_in(value: str) -> str:
        for place, origins in places.items():
            value = value.replace(place, origins)
        return value

    filled = {name: filled_in(value) for name, value in listed.items()}
    return {name: re.sub(r" +(?=[ ;])", "", value) for name, value in filled.items()}
