"""The user pool, its pages and its one public client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stacks.findings import flat
from stacks.sign_in import CLI_CALLBACKS
from tests.template.templates import Synthesis


def test_a_user_pool_is_made_in_its_own_mode_only(shipped: Synthesis, full: Synthesis, local: Synthesis) -> None:
    assert "SignIn" in shipped.stacks
    assert "SignIn" not in {*full.stacks, *local.stacks}


def test_administrators_make_the_users_and_mail_proves_who_they_are(shipped: Synthesis) -> None:
    pool = shipped.one("AWS::Cognito::UserPool").properties
    assert pool["AdminCreateUserConfig"] == {"AllowAdminCreateUserOnly": True}
    assert pool["UsernameAttributes"] == pool["AutoVerifiedAttributes"] == ["email"]
    assert pool["AccountRecoverySetting"]["RecoveryMechanisms"] == [{"Name": "verified_email", "Priority": 1}]
    assert (pool["MfaConfiguration"], pool["EnabledMfas"]) == ("OPTIONAL", ["SOFTWARE_TOKEN_MFA"])
    policy = pool["Policies"]["PasswordPolicy"]
    assert policy["MinimumLength"] == 12
    assert "SmsConfiguration" not in pool  # text messages are billed


def test_the_plan_has_managed_login_and_is_free_for_ten_thousand_users(shipped: Synthesis) -> None:
    assert shipped.one("AWS::Cognito::UserPool").properties["UserPoolTier"] == "ESSENTIALS"
    domain = shipped.one("AWS::Cognito::UserPoolDomain").properties
    assert domain["ManagedLoginVersion"] == 2
    assert flat(domain["Domain"]) == "cicada-<AWS::AccountId>"
    style = shipped.one("AWS::Cognito::ManagedLoginBranding").properties
    assert style["UseCognitoProvidedValues"] is True
    assert style["ClientId"] == {"Ref": shipped.one("AWS::Cognito::UserPoolClient").id}


def test_the_client_is_public_and_signs_in_by_code_alone(shipped: Synthesis) -> None:
    client = shipped.one("AWS::Cognito::UserPoolClient").properties
    assert client["GenerateSecret"] is False
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["AllowedOAuthScopes"] == ["openid", "email"]
    assert client["CallbackURLs"] == client["LogoutURLs"]
    assert client["CallbackURLs"][1:] == list(CLI_CALLBACKS)  # after the page's own
    assert client["SupportedIdentityProviders"] == ["COGNITO"]
    assert client["PreventUserExistenceErrors"] == "ENABLED"
    # An empty list would mean Cognito's default flows: passwords by the API, and a refresh that rotation forbids.
    assert client["ExplicitAuthFlows"] == ["ALLOW_CUSTOM_AUTH"]


def test_refresh_tokens_are_used_once_and_can_be_revoked(shipped: Synthesis) -> None:
    client = shipped.one("AWS::Cognito::UserPoolClient").properties
    assert client["EnableTokenRevocation"] is True
    assert client["RefreshTokenRotation"] == {"Feature": "ENABLED", "RetryGracePeriodSeconds": 60}
    assert (client["AccessTokenValidity"], client["IdTokenValidity"]) == (60, 60)
    assert set(client["TokenValidityUnits"].values()) == {"minutes"}


def test_the_users_outlive_their_stack_unless_the_deployer_says_otherwise(
    shipped: Synthesis, make: Callable[[dict[str, Any]], Synthesis]
) -> None:
    kept = shipped.one("AWS::Cognito::UserPool")
    assert (kept.rest["DeletionPolicy"], kept.properties["DeletionProtection"]) == ("Retain", "ACTIVE")
    settings = {"onDelete": "destroy", "auth": {"domainPrefix": "mine", "groups": ["a.b", "ab"]}, "local": True}
    destroyed = make(settings)
    pool = destroyed.one("AWS::Cognito::UserPool")
    assert (pool.rest["DeletionPolicy"], pool.properties["DeletionProtection"]) == ("Delete", "INACTIVE")
    assert destroyed.one("AWS::Cognito::UserPoolDomain").properties["Domain"] == "mine"
    assert names(destroyed) == {"a.b", "ab"}


def test_the_groups_are_those_of_the_settings(shipped: Synthesis) -> None:
    assert names(shipped) == {"users", "admins"}


def test_the_issuer_can_be_a_stand_in_in_the_local_cloud(make: Callable[[dict[str, Any]], Synthesis]) -> None:
    made = make({"local": True, "auth": {"issuer": "http://localhost:9/cognito/"}})
    environment = made.environment("authorizer")
    assert environment["JWT_ISSUER"].startswith("http://localhost:9/cognito/<Cicada-SignIn.")
    assert environment["JWKS_URL"] == f"{environment['JWT_ISSUER']}/.well-known/jwks.json"


def names(synthesis: Synthesis) -> set[str]:
    return {group.properties["GroupName"] for group in synthesis.resources("AWS::Cognito::UserPoolGroup")}
