"""Whether the page is served with its headers and uses this deployment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.doctor.web import Fetch, PageUnavailable

HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy")
SECURE_HEADERS = ("strict-transport-security",)
"""Of a page that is served by https."""


def check_page(outputs: Mapping[str, str], fetch: Fetch) -> Iterable[Finding]:
    """Look at the page and at its ``config.json``."""
    url = outputs.get("PageUrl")
    if url is None:
        yield Reporter("page", "PageUrl").ok("this deployment has no page")
        return
    report = Reporter("page", url)
    address = f"{url.rstrip('/')}/"
    try:
        page, config = fetch(address), fetch(f"{address}config.json")
    except PageUnavailable as error:
        yield report.problem(
            f"cannot be reached: {error}", "a new CloudFront distribution takes some minutes; otherwise make deploy"
        )
        return
    if page.status != 200:
        yield report.problem(f"returned HTTP {page.status}", "make deploy uploads its files")
        return
    wanted = [*HEADERS, *(SECURE_HEADERS if url.startswith("https:") else ())]
    if missing := [name for name in wanted if name not in page.headers]:
        yield report.warning(f"missing headers: {', '.join(missing)}", "make deploy")
    else:
        yield report.ok("served, with its headers")
    told = _json(config.body) if config.status == 200 else {}
    asks, there = told.get("webSocketUrl"), outputs.get("WebSocketUrl")
    if asks != there:
        yield report.problem(
            f"its config.json names {asks!r}, but the deployment is {there}",
            "make deploy",
        )


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
