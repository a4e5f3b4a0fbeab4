"""``cicada users`` against a user pool and a table, as their stand-ins speak."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from botocore.exceptions import ClientError

from cicada.defaults import CLOCK_LEEWAY_S
from cicada.revocation import DynamoDbRevocations
from cicada_cli.main import main
from cicada_cli.user_pool import PASSWORD_CHARS, UserPool, UserPoolFault, temporary_password
from tests.support.sign_in import PASSWORD, Browser, Pkce
from tests.wire.administering import Run, runner, table_and_bucket
from tests.wire.issuer_service import SignInService, sign_in_service
from tests.wire.test_client_cli import no_surroundings

__all__ = ["no_surroundings"]

TABLE = "requests-of-users"
BUCKET = "bucket-of-users"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def service() -> Iterator[SignInService]:
    with sign_in_service("users") as service, table_and_bucket(service.services, TABLE, BUCKET):
        yield service


@pytest.fixture
def run(service: SignInService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner("users", service, (TABLE, BUCKET), monkeypatch, capsys)


@pytest.fixture
def email() -> str:
    return f"user-{next(_numbers)}@example.com"


def not_before(service: SignInService, subject: str) -> int | None:
    return DynamoDbRevocations(service.services.client("dynamodb"), TABLE).not_before(subject)


def refresh_token(service: SignInService, email: str, password: str, new: str | None = None) -> str:
    pkce = Pkce()
    reply = Browser().sign_in(service.authorize_url(pkce), email, password, new)
    token: str = json.loads(service.redeem(reply.sent_back["code"], pkce).text)["refresh_token"]
    return token


def test_a_new_user_signs_in_with_the_password_that_was_printed(service: SignInService, run: Run, email: str) -> None:
    told = run("add", email, "--password-once")
    assert f"Added {email} (groups: users)." in told
    password = next(line for line in told.splitlines() if "shown once" in line).rpartition(": ")[2]
    assert refresh_token(service, email, password, PASSWORD)
    assert refresh_token(service, email, PASSWORD)


def test_a_new_user_is_mailed_a_password(service: SignInService, run: Run, email: str) -> None:
    told = run("add", email)
    assert "mails the first password" in told
    attributes = service.cognito.admin_get_user(UserPoolId=service.pool_id, Username=email)["UserAttributes"]
    assert {"Name": "email_verified", "Value": "true"} in attributes


def test_adding_again_changes_nothing_but_what_is_asked_for(service: SignInService, run: Run, email: str) -> None:
    first = run("add", email, "--password-once", "--json")
    assert (first["added"], first["groups"], first["status"]) == (True, ["users"], "FORCE_CHANGE_PASSWORD")
    again = run("add", email, "--json")
    assert (again["added"], again["temporaryPassword"], again["subject"]) == (False, None, first["subject"])
    renewed = run("add", email, "--password-once", "--json")
    assert renewed["temporaryPassword"] != first["temporaryPassword"]
    refresh_token(service, email, renewed["temporaryPassword"], PASSWORD)
    assert run("add", email, "--password-once", "--json")["temporaryPassword"] is None
    assert refresh_token(service, email, PASSWORD)


def test_an_unknown_group_adds_nobody(run: Run, email: str) -> None:
    assert "unknown group editors. The pool has users" in run("add", email, "--group", "editors", status=2)
    assert f"unknown user {email}" in run("groups", email, status=1)


@pytest.mark.parametrize("wrong", ["nobody", "a@b@c", "a b@example.com"])
def test_what_is_no_address_is_refused(run: Run, wrong: str) -> None:
    assert f"invalid e-mail address '{wrong}'" in run("add", wrong, status=2)


def test_users_are_listed_with_their_groups(run: Run, email: str) -> None:
    run("add", email, "--password-once")
    line = next(line for line in run("list").splitlines() if line.startswith(email))
    assert line.split("\t")[:3] == [email, "invited", "users"]
    told = next(user for user in run("list", "--json") if user["email"] == email)
    assert (told["groups"], told["enabled"], told["createdAt"][-1]) == (["users"], True, "Z")


def test_groups_are_shown_and_changed(run: Run, email: str) -> None:
    run("add", email, "--password-once")
    assert run("groups").splitlines() == ["users\t"]
    assert run("groups", "--json") == {"group": "users", "description": ""}
    assert "no groups" in run("groups", email, "--remove", "users")
    assert run("groups", email, "--add", "users", "--json")["groups"] == ["users"]
    assert f"{email}: users." in run("groups", email.upper(), "--add", "users")
    assert "unknown group x" in run("groups", email, "--remove", "x", status=2)
    assert "missing e-mail address" in run("groups", "--add", "users", status=2)


def test_removing_ends_access(service: SignInService, run: Run, email: str) -> None:
    password = run("add", email, "--password-once", "--json")["temporaryPassword"]
    token = refresh_token(service, email, password, PASSWORD)
    before = int(time.time())
    told = run("remove", email, "--json")
    assert told["removed"]
    assert json.loads(service.refresh(token).text) == {"error": "invalid_grant"}
    assert (not_before(service, told["subject"]) or 0) >= before
    assert f"unknown user {email}" in run("remove", email, status=1)


def test_a_removal_that_was_interrupted_is_completed(
    service: SignInService, run: Run, email: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = run("add", email, "--password-once", "--json")["subject"]
    monkeypatch.setenv("CICADA_REQUESTS_TABLE", "no-such-table")
    assert "Run the same command again" in run("remove", email, status=1)
    line = next(line for line in run("list").splitlines() if line.startswith(email))
    assert line.split("\t")[1] == "disabled"
    assert f"If a removal was interrupted, `cicada users remove {email}` completes it." in run("add", email)
    monkeypatch.setenv("CICADA_REQUESTS_TABLE", TABLE)
    assert f"Removed {email}" in run("remove", email)
    assert not_before(service, subject) is not None


def test_revoking_signs_out_and_the_user_may_return(service: SignInService, run: Run, email: str) -> None:
    password = run("add", email, "--password-once", "--json")["temporaryPassword"]
    token = refresh_token(service, email, password, PASSWORD)
    told = run("revoke", email, "--json")
    assert json.loads(service.refresh(token).text) == {"error": "invalid_grant"}
    assert not_before(service, told["subject"]) == told["refusedUpTo"]
    assert refresh_token(service, email, PASSWORD)
    assert "Revoked the tokens of" in run("revoke", told["subject"])
    assert "unknown user nobody@example.com" in run("revoke", "nobody@example.com", status=1)


def test_tokens_of_a_user_who_is_gone_or_of_another_issuer_are_revoked_by_subject(
    service: SignInService, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("revoke", "gone-subject")
    assert not_before(service, "gone-subject") is not None
    cloudformation = service.services.client("cloudformation")
    outputs = {"AuthMode": "oidc", "Issuer": "https://issuer.example/", "RequestsTable": TABLE}
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    cloudformation.create_stack(StackName="Cicada-Gateway", TemplateBody=json.dumps(template))
    monkeypatch.delenv("CICADA_REQUESTS_TABLE")
    before = int(time.time())
    try:
        assert main(["users", "revoke", "auth0|7"]) == 0
        assert main(["users", "list"]) == 2
    finally:
        cloudformation.delete_stack(StackName="Cicada-Gateway")
    assert "no user pool: its users sign in at https://issuer.example/" in capsys.readouterr().err
    # The issuer's clock may be ahead of this one: a token that it has just issued is refused too.
    assert (not_before(service, "auth0|7") or 0) >= before + CLOCK_LEEWAY_S


def test_what_aws_refuses_is_told_in_a_line(service: SignInService, run: Run) -> None:
    assert main(["users", "list", "--user-pool", "us-east-1_nothing"]) == 1

    class Denied:
        def admin_create_user(self, **_: Any) -> None:
            error = {"Code": "AccessDeniedException", "Message": "not authorized to perform: AdminCreateUser"}
            raise ClientError({"Error": error}, "AdminCreateUser")

    with pytest.raises(UserPoolFault, match=r"cannot add a@b: AccessDeniedException: not authorized"):
        UserPool(Denied(), "pool").create("a@b", None)


def test_temporary_passwords_fit_any_policy() -> None:
    drawn = {temporary_password() for _ in range(50)}
    assert len(drawn) == 50
    for password in drawn:
        assert len(password) == PASSWORD_CHARS
        for kind in (str.isupper, str.islower, str.isdigit, "-_.+".__contains__):
            assert any(kind(one) for one in password)


def test_tokens_are_stamped_by_the_clock_that_revocations_use(service: SignInService, run: Run, email: str) -> None:
    password = run("add", email, "--password-once", "--json")["temporaryPassword"]
    pkce = Pkce()
    reply = Browser().sign_in(service.authorize_url(pkce), email, password, PASSWORD)
    token = json.loads(service.redeem(reply.sent_back["code"], pkce).text)["access_token"]
    issued: int = jwt.decode(token, options={"verify_signature": False})["iat"]
    assert run("revoke", email, "--json")["refusedUpTo"] >= issued


def audited(service: SignInService, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["audit", *words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_change_of_a_user_is_recorded_with_who_made_it(
    service: SignInService, run: Run, email: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = run("add", email, "--password-once", "--json")["subject"]
    run("groups", email, "--remove", "users")
    run("groups", email)
    run("revoke", email)
    run("remove", email)
    found = [one for one in audited(service, capsys, "--since", "1h") if one["subject"] == f"user/{subject}"]
    assert [one["action"] for one in reversed(found)] == [
        *("user_added", "user_groups_changed", "user_revoked", "user_removed")
    ]
    assert {one["outcome"] for one in found} == {"done"}
    assert {one["actor"] for one in found} == {service.services.client("sts").get_caller_identity()["Arn"]}
    changed = next(one for one in found if one["action"] == "user_groups_changed")
    assert changed["details"] == {"added": [], "removed": ["users"], "before": ["users"]}
    assert email not in json.dumps(found)


def test_a_user_whose_change_cannot_be_recorded_stays_as_it_was(
    run: Run, email: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run("add", email, "--password-once", "--json")
    monkeypatch.setenv("CICADA_INDEX_BUCKET", "no-such-bucket")
    for words in (("remove", email), ("groups", email, "--remove", "users"), ("revoke", email)):
        assert "was not performed because it could not be recorded" in run(*words, status=1)
    assert "could not be recorded" in run("add", f"other-{email}", status=1)
    listed = {user["email"]: user for user in run("list", "--json")}
    assert listed[email]["groups"] == before["groups"]
    assert listed[email]["enabled"]
    assert f"other-{email}" not in listed
