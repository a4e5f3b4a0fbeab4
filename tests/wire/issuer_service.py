"""The issuer over a deployed user pool, on a thread of its own, with a clock that tests move."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from moto.cognitoidp.models import cognitoidp_backends

from cicada_local.faults import Faults
from cicada_local.issuer import Issuer
from tests.support.sign_in import CALLBACK, EMAIL, PAGE, PASSWORD, Browser, Pkce, Reply
from tests.wire.local_services import ACCOUNT_ID, Services, deployed_stack, outputs_of, running_services

REGION = "us-east-1"
CLIENT: dict[str, Any] = {
    "ClientName": "page-and-command",
    "UserPoolId": {"Ref": "Pool"},
    "GenerateSecret": False,
    "AllowedOAuthFlowsUserPoolClient": True,
    "AllowedOAuthFlows": ["code"],
    "AllowedOAuthScopes": ["openid", "email"],
    "CallbackURLs": [PAGE, CALLBACK],
    "LogoutURLs": [PAGE],
    "SupportedIdentityProviders": ["COGNITO"],
    "EnableTokenRevocation": True,
    "PreventUserExistenceErrors": "ENABLED",
    "RefreshTokenRotation": {"Feature": "ENABLED", "RetryGracePeriodSeconds": 10},
}
TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Pool": {
            "Type": "AWS::Cognito::UserPool",
            "Properties": {
                "UserPoolName": "readers",
                "UsernameAttributes": ["email"],
                "UsernameConfiguration": {"CaseSensitive": False},
                "AdminCreateUserConfig": {"AllowAdminCreateUserOnly": True},
            },
        },
        "Client": {"Type": "AWS::Cognito::UserPoolClient", "Properties": CLIENT},
        "Other": {
            "Type": "AWS::Cognito::UserPoolClient",
            "Properties": {
                **{name: value for name, value in CLIENT.items() if name != "RefreshTokenRotation"},
                "ClientName": "other",
                "EnableTokenRevocation": False,
            },
        },
        "Domain": {
            "Type": "AWS::Cognito::UserPoolDomain",
            "Properties": {"UserPoolId": {"Ref": "Pool"}, "Domain": "readers-1", "ManagedLoginVersion": 2},
        },
        "Users": {
            "Type": "AWS::Cognito::UserPoolGroup",
            "Properties": {"UserPoolId": {"Ref": "Pool"}, "GroupName": "users"},
        },
        "Branding": {
            "Type": "AWS::Cognito::ManagedLoginBranding",
            "Properties": {
                "UserPoolId": {"Ref": "Pool"},
                "ClientId": {"Ref": "Client"},
                "UseCognitoProvidedValues": True,
            },
        },
    },
    "Outputs": {
        "UserPoolId": {"Value": {"Ref": "Pool"}},
        "ClientId": {"Value": {"Fn::GetAtt": ["Client", "ClientId"]}},
        "OtherId": {"Value": {"Ref": "Other"}},
        "Issuer": {"Value": {"Fn::GetAtt": ["Pool", "ProviderURL"]}},
        "Branding": {"Value": {"Fn::GetAtt": ["Branding", "ManagedLoginBrandingId"]}},
    },
}


class SignInService:
    """A running issuer, a pool with one user of the group ``users``, and what an application needs to know."""

    def __init__(self, issuer: Issuer, services: Services, outputs: Mapping[str, str], faults: Faults) -> None:
        self.issuer = issuer
        self.faults = faults
        self.services = services
        self.outputs = outputs
        self.offset_s = 0.0
        self.client_id = outputs["ClientId"]
        self.pool_id = outputs["UserPoolId"]
        self.cognito = services.client("cognito-idp")

    @property
    def issuer_url(self) -> str:
        return f"{self.issuer.url}/{self.pool_id}"

    def clock(self) -> float:
        return time.time() + self.offset_s

    def json(self, path: str) -> Any:
        with urllib.request.urlopen(self.issuer.url + path, timeout=10) as answer:
            return json.load(answer)

    def published_keys(self) -> list[dict[str, str]]:
        keys: list[dict[str, str]] = self.json(f"/{self.pool_id}/.well-known/jwks.json")["keys"]
        return keys

    def authorize_url(self, pkce: Pkce | None, **fields: str | None) -> str:
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "scope": "openid email",
            "state": "s-1",
        }
        if pkce is not None:
            asked |= {"code_challenge": pkce.challenge, "code_challenge_method": "S256"}
        asked |= fields
        told = {name: value for name, value in asked.items() if value is not None}
        return f"{self.issuer.url}/oauth2/authorize?{urlencode(told)}"

    def code(self, pkce: Pkce, **fields: str | None) -> str:
        return Browser().sign_in(self.authorize_url(pkce, **fields)).sent_back["code"]

    def token(self, **form: str) -> Reply:
        return Browser().post(f"{self.issuer.url}/oauth2/token", {"client_id": self.client_id} | form)

    def redeem(self, code: str, pkce: Pkce, **form: str) -> Reply:
        asked = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        return self.token(**asked | {"code_verifier": pkce.verifier} | form)

    def tokens(self, **fields: str | None) -> dict[str, Any]:
        pkce = Pkce()
        reply = self.redeem(self.code(pkce, **fields), pkce)
        assert reply.status == 200, reply.text
        tokens: dict[str, Any] = json.loads(reply.text)
        return tokens

    def refresh(self, refresh_token: str, **form: str) -> Reply:
        return self.token(**{"grant_type": "refresh_token", "refresh_token": refresh_token} | form)

    def revoke(self, token: str, **form: str) -> Reply:
        return Browser().post(f"{self.issuer.url}/oauth2/revoke", {"client_id": self.client_id, "token": token} | form)

    def allow(self, callback: str) -> None:
        """Register another address that sign-ins may return to."""
        self.cognito.update_user_pool_client(
            UserPoolId=self.pool_id, ClientId=self.client_id, CallbackURLs=[PAGE, CALLBACK, callback]
        )

    def add_user(self, email: str, password: str, *, permanent: bool = True, group: str | None = "users") -> str:
        pool: dict[str, Any] = {"UserPoolId": self.pool_id}
        created = self.cognito.admin_create_user(**pool, Username=email, MessageAction="SUPPRESS")["User"]
        name: str = created["Username"]
        self.cognito.admin_set_user_password(**pool, Username=name, Password=password, Permanent=permanent)
        if group is not None:
            self.cognito.admin_add_user_to_group(**pool, Username=name, GroupName=group)
        return name


@contextmanager
def sign_in_service(stack: str = "sign-in") -> Iterator[SignInService]:
    """Deploy the pool, and serve it."""
    running: list[SignInService] = []
    faults = Faults()
    issuer = Issuer(
        lambda: dict(cognitoidp_backends[ACCOUNT_ID][REGION].user_pools),
        threading.Lock(),
        faults,
        clock=lambda: running[0].clock() if running else time.time(),
    )
    with (
        running_services(issuer) as services,
        deployed_stack(services, stack, TEMPLATE) as described,
        listening(issuer),
    ):
        assert described["StackStatus"] == "CREATE_COMPLETE", described
        running.append(SignInService(issuer, services, outputs_of(described), faults))
        running[0].add_user(EMAIL, PASSWORD)
        yield running[0]


@contextmanager
def listening(issuer: Issuer) -> Iterator[None]:
    """Serve an issuer from a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    try:
        asyncio.run_coroutine_threadsafe(issuer.start([bound]), loop).result(10)
        yield
    finally:
        asyncio.run_coroutine_threadsafe(issuer.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        bound.close()
