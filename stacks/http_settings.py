"""HTTP access: the deployer's settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from stacks.answer_settings import Group
from stacks.url_settings import origin


class HttpAccessSettings(Group):
    """MCP and an OpenAI-compatible API, behind a function URL."""

    enabled: bool = Field(
        False,
        description="serve MCP and an OpenAI-compatible API from a function with a public URL, which takes the "
        "deployment's tokens; see `docs/http.md`",
    )
    allowed_origins: tuple[Annotated[str, AfterValidator(origin)], ...] = Field(
        (), description="web pages that may use it from a browser (CORS), such as `https://app.example.org`"
    )
    concurrency: Annotated[int, Field(ge=0, le=1_000)] | None = Field(
        10,
        description="HTTP requests at once (reserved concurrency; 0 stops them), which bounds the cost of requests "
        "without a token; the account must keep 100 unreserved, so a new account needs `null`",
    )
