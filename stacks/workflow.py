"""The answer workflow's state machine, with a role, logs and traces."""

from __future__ import annotations

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.answer_states import definition
from stacks.findings import accept
from stacks.logs import log_group
from stacks.settings import Settings


class AnswerWorkflow(Construct):
    """The state machine, with a role that may invoke the two functions and write its own logs and traces."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        answer: lambda_.IFunction,
        exhausted: lambda_.IFunction,
        key: kms.IKey | None = None,
    ) -> None:
        """Make the state machine.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            answer: the function that runs a strategy.
            exhausted: the function that closes a request.
            key: encrypts the logs.
        """
        super().__init__(scope, id)
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
            description="Answer workflow",
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"], resources=[answer.function_arn, exhausted.function_arn]
            )
        )
        states = definition(
            partition=Aws.PARTITION, answer_arn=answer.function_arn, exhausted_arn=exhausted.function_arn
        )
        self.logs = log_group(
            self,
            "Logs",
            settings=settings,
            key=key,
            # Groups below this prefix share one resource policy of the account, which is bounded in length.
            name=f"/aws/vendedlogs/states/{settings.stack_prefix}-answer",
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_type=sfn.StateMachineType.EXPRESS,
            definition_body=sfn.DefinitionBody.from_string(Stack.of(self).to_json_string(states)),
            role=role,
            tracing_enabled=True,
            logs=sfn.LogOptions(destination=self.logs, level=sfn.LogLevel.ALL, include_execution_data=False),
        )
        accept(
            self,
            {
                "AwsSolutions-IAM5[Resource::*]": "The actions that set up log delivery and write X-Ray traces know no "
                "resources."
            },
        )
