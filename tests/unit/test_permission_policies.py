"""Policy documents evaluated as IAM does: wildcards, conditions, denials, principals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cicada_local.permissions.conditions import PolicyInvalid, compile_condition
from cicada_local.permissions.policies import Effect, Required, evaluate, parse

KEY = "arn:aws:s3:::books/index/a.seg"


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def effect(required: Required, *statements: dict[str, Any]) -> Effect:
    return evaluate(parse(document(*statements)), required)


def allow(**element: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::books/index/*"} | element


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (allow(), Effect.ALLOW),
        (allow(Action="S3:getobject"), Effect.ALLOW),
        (allow(Action=["s3:Put*", "s3:Get*"]), Effect.ALLOW),
        (allow(Action="s3:GetObjectVersion"), Effect.NOTHING),
        (allow(Resource="arn:aws:s3:::books"), Effect.NOTHING),
        (allow(Resource="arn:aws:s3:::books/INDEX/*"), Effect.NOTHING),
        (allow(Resource="arn:aws:s3:::books/index/?.seg"), Effect.ALLOW),
        (allow(Resource="arn:aws:s3:::books/index/??.seg"), Effect.NOTHING),
        (allow(Resource="*", Effect="Deny"), Effect.DENY),
        ({"Effect": "Allow", "NotAction": "s3:Put*", "Resource": "*"}, Effect.ALLOW),
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, Effect.NOTHING),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::books/*"}, Effect.NOTHING),
        (allow(Resource="arn:aws:s3:::books/${aws:username}/*"), Effect.NOTHING),
    ],
)
def test_a_statement_matches_actions_and_resources(statement: dict[str, Any], expected: Effect) -> None:
    assert effect(Required("s3:GetObject", KEY), statement) is expected


def test_a_denial_wins_over_what_allows() -> None:
    assert effect(Required("s3:GetObject", KEY), allow(), allow(Effect="Deny"), allow()) is Effect.DENY


def test_what_nothing_speaks_of_is_not_allowed() -> None:
    assert effect(Required("s3:PutObject", KEY), allow()) is Effect.NOTHING


CONDITIONS: list[tuple[dict[str, Any], dict[str, tuple[str, ...]], bool]] = [
    ({"StringEquals": {"a:Key": "x"}}, {"a:key": ("x",)}, True),
    ({"StringEquals": {"a:Key": ["x", "y"]}}, {"a:key": ("y",)}, True),
    ({"StringEquals": {"a:Key": "x"}}, {"a:key": ("X",)}, False),
    ({"StringEquals": {"a:Key": "x"}}, {}, False),
    ({"StringEqualsIfExists": {"a:Key": "x"}}, {}, True),
    ({"StringEqualsIfExists": {"a:Key": "x"}}, {"a:key": ("z",)}, False),
    ({"StringNotEquals": {"a:Key": ["x", "y"]}}, {"a:key": ("y",)}, False),
    ({"StringNotEquals": {"a:Key": "x"}}, {}, True),
    ({"StringEqualsIgnoreCase": {"a:Key": "x"}}, {"a:key": ("X",)}, True),
    ({"StringLike": {"s3:prefix": ["index/*", "ingests/*"]}}, {"s3:prefix": ("ingests/a",)}, True),
    ({"StringLikeIfExists": {"s3:prefix": "index/*"}}, {"s3:prefix": ("other/",)}, False),
    ({"StringNotLike": {"a:Key": "x*"}}, {"a:key": ("xy",)}, False),
    (
        {"ArnLike": {"aws:SourceArn": "arn:aws:events:*:1:rule/a*"}},
        {"aws:sourcearn": ("arn:aws:events:eu:1:rule/ab",)},
        True,
    ),
    ({"ArnLike": {"aws:SourceArn": "arn:aws:events:*"}}, {"aws:sourcearn": ("arn:aws:events:eu:1:rule/ab",)}, False),
    ({"Bool": {"aws:SecureTransport": False}}, {"aws:securetransport": ("true",)}, False),
    ({"Bool": {"aws:SecureTransport": "true"}}, {"aws:securetransport": ("true",)}, True),
    ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, {"s3:tlsversion": ("1.3",)}, False),
    ({"NumericGreaterThanEquals": {"a:N": 3}}, {"a:n": ("3",)}, True),
    ({"NumericEquals": {"a:N": 3}}, {"a:n": ("three",)}, False),
    ({"Null": {"a:Key": "true"}}, {}, True),
    ({"Null": {"a:Key": "false"}}, {}, False),
    ({"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["u1"]}}, {"dynamodb:leadingkeys": ("u1", "u2")}, False),
    ({"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["u1"]}}, {}, True),
    ({"ForAnyValue:StringLike": {"a:Key": "u*"}}, {"a:key": ("x", "u2")}, True),
    ({"ForAnyValue:StringLike": {"a:Key": "u*"}}, {}, False),
    ({"ForAnyValue:StringNotEquals": {"a:Key": "x"}}, {"a:key": ("x", "y")}, True),
    ({"StringEquals": {"a:Key": "x", "a:Other": "y"}}, {"a:key": ("x",)}, False),
    ({"StringEquals": {"a:Key": "x"}, "Bool": {"a:Flag": "true"}}, {"a:key": ("x",), "a:flag": ("true",)}, True),
]


@pytest.mark.parametrize(("condition", "context", "holds"), CONDITIONS)
def test_conditions(condition: dict[str, Any], context: dict[str, tuple[str, ...]], holds: bool) -> None:
    assert compile_condition(condition)(context) is holds


@pytest.mark.parametrize("operator", ["DateLessThan", "IpAddress", "ForSome:StringEquals", "StringMatches"])
def test_an_operator_that_is_not_evaluated_is_refused(operator: str) -> None:
    with pytest.raises(PolicyInvalid, match="unknown"):
        compile_condition({operator: {"a:Key": "x"}})


@pytest.mark.parametrize(
    "text", ["", "{}", '{"Statement": [{"Action": "*"}]}', '{"Statement": {"Effect": "Allow", "NotPrincipal": "*"}}']
)
def test_a_document_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(PolicyInvalid):
        parse(text)


@pytest.mark.parametrize(
    ("principal", "named"),
    [
        ("*", True),
        ({"AWS": "*"}, True),
        ({"AWS": ["arn:aws:iam::1:role/a", "arn:aws:iam::1:role/b"]}, True),
        ({"AWS": "arn:aws:iam::1:role/a"}, False),
        ({"Service": "lambda.amazonaws.com"}, False),
    ],
)
def test_a_statement_names_its_principals(principal: Any, named: bool) -> None:
    (statement,) = parse(document(allow(Principal=principal)))
    assert statement.names("AWS", ("arn:aws:iam::1:role/b",)) is named
