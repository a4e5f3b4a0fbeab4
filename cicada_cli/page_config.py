"""What a deployment's page says of the deployment: where to connect, and who signs its users in."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from cicada_cli.exits import UsageError
from cicada_client import oauth

FILE = "config.json"


class _PageModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class PageSignIn(_PageModel):
    """Who signs users in."""

    issuer: str
    client_id: str
    scopes: str


class PageConfig(_PageModel):
    """The page's ``config.json``, as far as commands need it."""

    web_socket_url: str
    sign_in: PageSignIn | None = None

    @classmethod
    def read(cls, page: str) -> Self:
        """Read it from the page's address.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        url = f"{page.rstrip('/')}/{FILE}"
        try:
            return cls.model_validate(oauth.get_json(url))
        except (oauth.IssuerUnreachable, oauth.IssuerRefused) as error:
            raise UsageError(f"the page {page} could not be read: {error}") from error
        except ValidationError as error:
            raise UsageError(f"{url} is not a Cicada page's configuration") from error

    def values(self) -> dict[str, str]:
        """What a deployment is found by."""
        if self.sign_in is None:
            return {"url": self.web_socket_url, "auth_mode": "none"}
        return {"url": self.web_socket_url, "auth_mode": "oidc", **self.sign_in.model_dump()}
