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
        description="serve MCP and an OpenAI-compatible API from a function with a public URL that requires the "
        "deployment's tokens; see `docs/http.md`",
    )
    allowed_origins: tuple[Annotated[str, AfterValidator(origin)], ...] = Field(
        (), description="allowed browser origins (CORS), such as `https://app.example.org`"
    )
    concurrency: Annotated[int, Field(ge=0, le=1_000)] | None = Field(
        10,
        description="concurrent HTTP requests (reserved concurrency; 0 stops them), which limits the cost of "
        "requests without a token. The account must keep 100 unreserved, so a new account needs "
        "`null`",
    )
