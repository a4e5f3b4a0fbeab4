"""The parts of the application that is deployed."""

from __future__ import annotations

from cicada_http import chat_completions, mcp_part
from cicada_http.app import MakePart

PARTS: tuple[MakePart, ...] = (mcp_part.part, chat_completions.part)
