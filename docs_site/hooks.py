"""MkDocs' hooks: links that leave ``docs/`` become plain text, since the site holds no source files."""

from __future__ import annotations

import re
from typing import Any

_LEAVES = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
_CODE = re.compile(r"(```.*?```)", re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Drop the links of one page whose targets lie outside ``docs/``."""
    depth = page.file.src_uri.count("/")

    def plain(link: re.Match[str]) -> str:
        return link[0] if link[2].count("../") <= depth else link[1]

    parts = _CODE.split(markdown)
    return "".join(part if part.startswith("```") else _LEAVES.sub(plain, part) for part in parts)
