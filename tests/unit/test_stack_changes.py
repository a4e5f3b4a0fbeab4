"""What one deployment does to deployed stacks, by CloudFormation's rules, over small templates."""

from __future__ import annotations

from typing import Any

import pytest

from cicada_cli.stack_changes import Deployed, Kind, consequences_of, deploy
from cicada_cli.stack_changes.templates import order

KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
TABLE = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}


def resource(type: str, more: dict[str, Any] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {"Type": type, "Properties": properties, **(more or {})}


def stack(outputs: dict[str, Any] | None = None, /, **resources: Any) -> dict[str, Any]:
    return {"Resources": resources, "Outputs": {name: {"Value": value} for name, value in (outputs or {}).items()}}


def exporting(value: Any, **resources: Any) -> dict[str, Any]:
    return {"Resources": resources, "Outputs": {"Out": {"Value": value, "Export": {"Name": "shared"}}}}


def ref(id: str) -> dict[str, str]:
    return {"Ref": id}


def output_of(stack: str, output: str) -> dict[str, Any]:
    return {"Fn::GetStackOutput": {"StackName": stack, "OutputName": output}}


def topic(name: Any) -> dict[str, Any]:
    return resource("AWS::SNS::Topic", DisplayName=name)


def found(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each.kind, each.stack, each.subject) for each in consequences_of(before, after)]


def of_one(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    return [(kind, subject) for kind, _, subject in found({"A": before}, {"A": after})]


IMPORTER = stack(None, T=topic({"Fn::ImportValue": "shared"}))
POOL = resource("AWS::Cognito::UserPool")


# --- exports and outputs ---


@pytest.mark.parametrize(
    "after",
    [
        stack(None, T=topic("x")),
        exporting(ref("Other"), T=topic("x"), Other=topic("y")),
        exporting(ref("T"), T=resource("AWS::SNS::Topic", TopicName="new")),
    ],
    ids=["removed", "other value", "resource made anew"],
)
def test_an_export_in_use_can_be_neither_removed_nor_changed(after: dict[str, Any]) -> None:
    before = {"A": exporting(ref("T"), T=topic("x")), "B": IMPORTER}
    assert (Kind.REFUSED, "A", 'export "shared"') in found(before, {"A": after, "B": stack(None, T=topic("y"))})


def test_an_export_that_nobody_imports_can_go() -> None:
    assert found({"A": exporting(ref("T"), T=topic("x"))}, {"A": stack(None, T=topic("x"))}) == []


def test_an_export_exists_once_and_before_it_is_imported() -> None:
    one = exporting(ref("T"), T=topic("x"))
    assert found({"A": one}, {"A": one, "C": one}) == [(Kind.REFUSED, "C", 'export "shared"')]
    assert found({}, {"B": IMPORTER}) == [(Kind.REFUSED, "B", 'export "shared"')]
    assert found({}, {"B": IMPORTER, "A": one}) == []


def test_an_output_that_is_read_must_exist() -> None:
    reader = stack(None, T=topic(output_of("A", "Out")))
    assert found({}, {"B": reader, "A": stack({"Out": "x"})}) == []
    gone = found({"A": stack({"Out": "x"}), "B": reader}, {"A": stack({"Other": "x"}), "B": reader})
    assert (Kind.REFUSED, "B", "output Out of A") in gone


def test_a_stack_whose_template_is_unchanged_keeps_an_old_value() -> None:
    reader = stack(None, T=topic(output_of("A", "Out")))
    before, after = (stack({"Out": ref("F")}, F=resource("AWS::Lambda::Function", FunctionName=n)) for n in "ab")
    stale = [(Kind.STALE, "B", "output Out of A")]
    assert found({"A": before, "B": reader}, {"A": after, "B": reader}) == stale
    changed = stack(None, T=topic(output_of("A", "Out")), U=topic("new"))
    assert found({"A": before, "B": reader}, {"A": after, "B": changed}) == []


def test_a_value_that_changes_goes_on_through_other_stacks() -> None:
    middle = stack({"On": output_of("A", "Out")}, T=topic("x"))
    last = stack(None, T=topic(output_of("B", "On")))
    before = {"A": stack({"Out": "1"}), "B": middle, "C": last}
    after = {"A": stack({"Out": "2"}), "B": middle | {"Description": "changed"}, "C": last}
    assert found(before, after) == [(Kind.STALE, "C", "output On of B")]


def test_stacks_are_taken_in_the_order_in_which_they_need_each_other() -> None:
    reader = stack(None, T=topic(output_of("A", "Out")))
    assert order({"C": reader, "B": IMPORTER, "A": exporting("x")}) == ["A", "C", "B"]
    assert order({"X": stack(None, T=topic(output_of("Y", "O"))), "Y": stack(None, T=topic(output_of("X", "O")))})


# --- replacement and removal ---


def test_what_holds_data_is_not_made_anew() -> None:
    before, after = (stack(None, T=resource("AWS::DynamoDB::Table", TableName=name)) for name in "ab")
    assert of_one(before, after) == [(Kind.LOST, "T (AWS::DynamoDB::Table)")]


def test_a_resource_is_made_anew_with_one_that_it_refers_to() -> None:
    def declared(name: str) -> dict[str, Any]:
        bucket = resource("AWS::S3::Bucket", KEPT, BucketName=name)
        return stack(None, B=bucket, P=resource("AWS::S3::BucketPolicy", Bucket={"Fn::Sub": "${B}"}))

    assert of_one(declared("a"), declared("b")) == [(Kind.LOST, "B (AWS::S3::Bucket)")]


def test_what_can_be_loaded_again_may_be_made_anew() -> None:
    def declared(dimension: int) -> dict[str, Any]:
        return stack(None, I=resource("AWS::S3Vectors::Index", KEPT, IndexName=f"p-{dimension}", Dimension=dimension))

    assert of_one(declared(1), declared(2)) == [(Kind.RELOAD, "I (AWS::S3Vectors::Index)")]


def test_what_is_removed_is_kept_where_its_policy_says_so() -> None:
    for more, kind in (({}, Kind.LOST), (KEPT, Kind.KEPT)):
        before = stack(None, P=POOL | more, T=topic("x"))
        assert of_one(before, stack(None, T=topic("x"))) == [(kind, "P (AWS::Cognito::UserPool)")]


def test_a_functions_logs_go_with_it_and_not_alone() -> None:
    logs = resource("AWS::Logs::LogGroup")
    function = resource("AWS::Lambda::Function", LoggingConfig={"LogGroup": ref("L")})
    assert of_one(stack(None, L=logs, F=function), stack(None, T=topic("x"))) == []
    assert of_one(stack(None, L=logs, F=function), stack(None, F=function)) == [(Kind.LOST, "L (AWS::Logs::LogGroup)")]


def test_a_key_in_use_is_retired_before_it_is_removed() -> None:
    key = resource("AWS::KMS::Key", KEPT)
    encrypted, plain = (resource("AWS::S3::Bucket", E=value) for value in ({"Fn::GetAtt": ["K", "Arn"]}, "no"))
    subject = "K (AWS::KMS::Key)"
    assert of_one(stack(None, K=key, B=encrypted), stack(None, B=plain)) == [(Kind.LOST, subject)]
    assert of_one(stack(None, K=key, B=encrypted), stack(None, K=key, B=plain)) == []
    assert of_one(stack(None, K=key, B=plain), stack(None, B=plain)) == [(Kind.KEPT, subject)]


def test_a_resource_keeps_its_type_and_what_is_fixed() -> None:
    assert of_one(stack(None, X=topic("x")), stack(None, X=POOL)) == [(Kind.REFUSED, "X (AWS::Cognito::UserPool)")]
    by_name = resource("AWS::Cognito::UserPool", UsernameAttributes=["email"])
    assert of_one(stack(None, P=POOL), stack(None, P=by_name)) == [(Kind.REFUSED, "P (AWS::Cognito::UserPool)")]


def table(*indexes: str, key: str = "a") -> dict[str, Any]:
    made = [{"IndexName": name, "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}]} for name in indexes]
    return stack(
        None, T=resource("AWS::DynamoDB::Table", **TABLE, **({"GlobalSecondaryIndexes": made} if made else {}))
    )


def test_a_table_changes_one_index_at_a_time() -> None:
    refused = [(Kind.REFUSED, "T (AWS::DynamoDB::Table)")]
    assert of_one(table(), table("one")) == of_one(table("one"), table()) == []
    assert of_one(table(), table("one", "two")) == of_one(table("one"), table("two")) == refused
    assert of_one(table("one"), table("one", key="b")) == refused


def test_policies_are_not_changed_alone() -> None:
    before, after = stack(None, P=POOL | KEPT), stack(None, P=POOL)
    assert of_one(before, after) == [(Kind.REFUSED, "DeletionPolicy")]
    assert of_one(before, stack(None, P=POOL | {"Metadata": {"onDelete": "destroy"}})) == []
    assert of_one(stack({"Out": "1"}, P=POOL), stack({"Out": "2"}, P=POOL)) == []


# --- names ---


def test_a_name_is_taken_until_its_owner_is_gone() -> None:
    function = resource("AWS::Lambda::Function", FunctionName="one", PackageType="Zip")
    image = resource("AWS::Lambda::Function", FunctionName="one", PackageType="Image")
    refused = [(Kind.REFUSED, "F (AWS::Lambda::Function)")]
    assert of_one(stack(None, F=function), stack(None, F=image)) == refused
    assert of_one(stack(None, E=function), stack(None, F=function)) == refused
    assert found({"A": stack(None, E=function)}, {"A": stack(None, E=function), "B": stack(None, F=function)}) == [
        (Kind.REFUSED, "B", "F (AWS::Lambda::Function)")
    ]


def test_a_name_that_was_left_behind_is_taken_too() -> None:
    with_role = stack(None, R=resource("AWS::IAM::Role", KEPT, RoleName="one"), T=topic("x"))
    _, without = deploy(Deployed({"A": with_role}), {"A": stack(None, T=topic("x"))})
    again, _ = deploy(without, {"A": with_role})
    assert [(each.kind, each.what) for each in again] == [
        (Kind.REFUSED, "needs the name of something that an earlier deployment left")
    ]


def test_a_name_may_come_again_in_something_new() -> None:
    def declared(bucket: str) -> dict[str, Any]:
        index = resource("AWS::S3Vectors::Index", KEPT, IndexName="p", VectorBucketArn={"Fn::GetAtt": ["V", "Arn"]})
        return stack(None, V=resource("AWS::S3Vectors::VectorBucket", KEPT, VectorBucketName=bucket), I=index)

    assert {kind for kind, _ in of_one(declared("a"), declared("b"))} == {Kind.RELOAD}


def test_a_pool_has_one_domain() -> None:
    def declared(id: str, domain: str) -> dict[str, Any]:
        return stack(None, P=POOL, **{id: resource("AWS::Cognito::UserPoolDomain", UserPoolId=ref("P"), Domain=domain)})

    for after in (declared("D", "b"), declared("E", "b")):
        found = consequences_of({"A": declared("D", "a")}, {"A": after})
        assert [each.kind for each in found] == [Kind.REFUSED]
        assert "delete-user-pool-domain" in str(found[0])


# --- stacks ---


def test_a_stack_that_is_no_longer_wanted_stays() -> None:
    assert found({"A": stack(None, T=topic("x")), "Gone": stack(None, P=POOL)}, {"A": stack(None, T=topic("x"))}) == [
        (Kind.KEPT, "Gone", "the stack")
    ]


def test_a_first_deployment_has_no_consequences() -> None:
    assert found({}, {"A": stack({"Out": ref("P")}, P=POOL), "B": stack(None, T=topic(output_of("A", "Out")))}) == []


def test_what_blocks_a_deployment() -> None:
    assert [kind for kind in Kind if kind.blocks] == [Kind.REFUSED, Kind.LOST, Kind.STALE]
