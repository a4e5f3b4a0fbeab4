"""The ingest workflow as a stack of the local cloud, whose functions a test supplies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from stacks.ingest_states import definition
from tests.wire.local_services import ACCOUNT_ID, Services, create_role, deployed_stack, outputs_of


def allowed_on(bucket: str) -> Mapping[str, str | list[str]]:
    """What the workflow's role may do, and on what."""
    return {
        "lambda:InvokeFunction": f"arn:aws:lambda:us-east-1:{ACCOUNT_ID}:function:*",
        "s3:GetObject": f"arn:aws:s3:::{bucket}/*",
        "states:StartExecution": f"arn:aws:states:us-east-1:{ACCOUNT_ID}:stateMachine:*",
    }


@contextmanager
def ingest_machine(services: Services, bucket: str) -> Iterator[str]:
    """Deploy the workflow, its bucket and the role ``workflow`` for the length of a block; the machine's ARN."""
    states = definition(
        partition="aws", bucket=bucket, plan_arn="plan", document_arn="document", commit_arn="commit", concurrency=2
    )
    machine = {
        "DefinitionString": json.dumps(states),
        "RoleArn": create_role(services, "workflow", allowed=allowed_on(bucket)),
        "StateMachineType": "STANDARD",
    }
    template = {
        "Resources": {
            "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket}},
            "Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": machine},
        },
        "Outputs": {"Arn": {"Value": {"Ref": "Machine"}}},
    }
    with deployed_stack(services, bucket, template) as stack:
        yield outputs_of(stack)["Arn"]
