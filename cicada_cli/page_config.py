"""The configuration of a deployment's page: WebSocket URL and issuer."""

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
    """The issuer of the deployment."""

    issuer: str
    client_id: str
    scopes: str


class PageConfig(_PageModel):
    """The fields of the page's ``config.json`` that commands need."""

    web_socket_url: str
    sign_in: PageSignIn | None = None

    @classmethod
    def read(cls, page: str) -> Self:
        """Read it from the page's address.

        Raises:
            UsageError: it does not exist or cannot be read.
        """
        url = f"{page.rstrip('/')}/{FILE}"
        try:
            return cls.model_validate(oauth.get_json(url))
        except (oauth.IssuerUnreachable, oauth.IssuerRefused) as error:
            raise UsageError(f"cannot read the page {page}: {error}") from error
        except ValidationError as error:
            raise UsageError(f"{url} is not the configuration of a Cicada page") from error

    def values(self) -> dict[str, str]:
        """The values of a :class:`~cicada_cli.deployment.Deployment`."""
        if self.sign_in is None:
            return {"url": self.web_socket_url, "auth_mode": "none"}
        return {"url": self.web_socket_url, "auth_mode": "oidc", **self.sign_in.model_dump()}
