"""The agents in Amazon Bedrock Agents: one for profiles, one for theories, and each again without the tools that change
anything; their action groups, and the function that runs the tools which only read."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, cast

from aws_cdk import Stack
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cicada.agents.classic.schema import (
    MAX_FUNCTIONS,
    MAX_INSTRUCTION_CHARS,
    MIN_INSTRUCTION_CHARS,
    READING_GROUP,
    WORKER_GROUP,
    FunctionSchema,
    function_of,
)
from cicada.agents.instructions import INSTRUCTIONS, AgentKind
from cicada.agents.ports import Tool
from cicada.agents.tools import tools_for
from cicada.profiles.service import ProfileService
from cicada.retrieval.ports import Retriever
from stacks.bedrock import invoke_statements, model_role
from stacks.data import INDEX_PREFIX, DataStack
from stacks.function import CicadaFunction
from stacks.guardrail import DeployedGuardrail
from stacks.keys import TABLE_READER
from stacks.layers import Layers
from stacks.settings import Settings

TOOLS_TIMEOUT_S = 28
"""Of one call of a tool, a cold start and the reading of the index among it: more than the call itself may take
(``MAX_CALL_S``), and less than the worker waits for an event (``SERVICE_SILENCE_S``)."""
SESSION_TTL_S = 60
"""The service's minimum: every run has a session of its own, which is not used again."""
ALIAS = "live"


def offered(kind: AgentKind) -> list[Tool[Any]]:
    """An agent's tool descriptions, which need no profile service and no retriever."""
    return tools_for(kind, cast(ProfileService, None), cast(Retriever, None))


class ClassicAgents(Construct):
    """The agents, the role that they act in, and the action-group function."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        settings: Settings,
        data: DataStack,
        layers: Layers,
        guardrail: DeployedGuardrail | None = None,
    ) -> None:
        """Make them.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
            data: where index, requests and profiles are.
            layers: the stack's.
            guardrail: checks what they are asked and answer.

        Raises:
            ValueError: the agents do not fit into the service's limits.
        """
        super().__init__(scope, id)
        self._settings = settings
        self._data = data
        self._guardrail = guardrail
        self._model_id = settings.agents.model_id or settings.models.generation_model_id
        self._function = self._action_function(layers)
        self._role = self._agents_role()
        self._aliases = {kind: self._agent(kind) for kind in INSTRUCTIONS}
        self._reading = {kind: self._agent(kind, reads_only=True) for kind in INSTRUCTIONS}

    def serve(self, worker: CicadaFunction) -> None:
        """Let the answer worker call the agents, and tell it which they are."""
        aliases = (*self._aliases.values(), *self._reading.values())
        worker.allow(("bedrock:InvokeAgent",), *(alias.attr_agent_alias_arn for alias in aliases))
        deployed = {
            kind: {
                "agentId": alias.agent_id,
                "aliasId": alias.attr_agent_alias_id,
                "readingAgentId": self._reading[kind].agent_id,
                "readingAliasId": self._reading[kind].attr_agent_alias_id,
            }
            for kind, alias in self._aliases.items()
        }
        worker.function.add_environment("AGENTS_DEPLOYED", Stack.of(self).to_json_string(deployed))

    def _action_function(self, layers: Layers) -> CicadaFunction:
        settings, data, stack = self._settings, self._data, Stack.of(self)
        models, retrieval = settings.models, settings.retrieval
        values: dict[str, object | None] = {
            "REQUESTS_TABLE": data.table.table_name,
            **settings.profiles.environment(),
            **settings.access.environment(),
            "INDEX_BUCKET": data.bucket_name,
            "EMBEDDING_MODEL_ID": models.embedding_model_id,
            "EMBEDDING_DIMENSIONS": models.embedding_dimensions,
            "RETRIEVAL_ENGINE": retrieval.engine,
            "ENGINE_BUDGET_S": retrieval.engine_budget_s,
            "S3_VECTORS_INDEX_ARN": data.vector_index_arn,
            "KENDRA_INDEX_ID": retrieval.kendra_index_id,
            "OPENBLAS_NUM_THREADS": 1,  # numpy's own threads contend for the function's one processor
        }
        function = CicadaFunction(
            self,
            "Tools",
            settings=settings,
            folder="agent_tools",
            layers=layers.of("base", "search", *(() if data.vector_index_arn is None else ("sdk",))),
            timeout_s=TOOLS_TIMEOUT_S,
            memory_mb=settings.answer_memory_mb,
            environment={name: str(value) for name, value in values.items() if value is not None},
            key=data.encryption_key,
        )
        function.allow(("dynamodb:GetItem", "dynamodb:Query"), data.table.table_arn)
        function.allow(("s3:GetObject",), data.index_arn, because="The index's objects are named by their content.")
        data.allow_list(function, INDEX_PREFIX)
        if data.key is not None:
            function.allow(TABLE_READER, data.key.key_arn)
        if data.vector_index_arn is not None:
            function.allow(("s3vectors:GetVectors", "s3vectors:QueryVectors"), data.vector_index_arn)
        if (kendra := retrieval.kendra_index_id) is not None:
            arn = f"arn:{stack.partition}:kendra:{stack.region}:{stack.account}:index/{kendra}"
            function.allow(("kendra:Retrieve",), arn)
        function.allow_statement(
            *invoke_statements(
                stack,
                models.embedding_model_id,
                action="bedrock:InvokeModel",
                more_regions=models.destination_regions,
            )
        )
        return function

    def _checks(self) -> tuple[str, ...]:
        """What tells one guardrail from another, in a definition."""
        guardrail = self._settings.guardrail
        return (guardrail.model_dump_json(include={"id", "version", "create"}),) if guardrail.named() else ()

    def _agents_role(self) -> iam.Role:
        return model_role(
            self,
            service="bedrock",
            resources="agent/*",
            model_id=self._model_id,
            more_regions=self._settings.models.destination_regions,
            description="Invoke the model of the Amazon Bedrock agents",
            more=[*self._looked_up(), *([] if self._guardrail is None else [self._guardrail.use()])],
        )

    def _looked_up(self) -> list[iam.PolicyStatement]:
        """What the service looks up before it calls a model: the model, and the profile through which it is called."""
        stack, more_regions = Stack.of(self), self._settings.models.destination_regions
        named = {
            action: invoke_statements(stack, self._model_id, action=action, more_regions=more_regions)
            for action in ("bedrock:GetFoundationModel", "bedrock:GetInferenceProfile")
        }
        models = named["bedrock:GetFoundationModel"][-1]
        found = [iam.PolicyStatement(actions=models.actions, resources=models.resources)]  # under no condition
        profile = named["bedrock:GetInferenceProfile"]
        return found if len(profile) == 1 else [*found, profile[0]]

    def _agent(self, kind: AgentKind, *, reads_only: bool = False) -> bedrock.CfnAgentAlias:
        instruction = INSTRUCTIONS[kind]
        tools = [tool for tool in offered(kind) if not (reads_only and tool.writes)]
        name = f"{kind}-reading" if reads_only else kind
        id = name.title().replace("-", "")
        guardrail = self._guardrail
        if not MIN_INSTRUCTION_CHARS <= len(instruction) <= MAX_INSTRUCTION_CHARS:
            allowed = f"{MIN_INSTRUCTION_CHARS} to {MAX_INSTRUCTION_CHARS}"
            raise ValueError(f"the {kind} agent's instruction has not {allowed} characters")
        if len(tools) > MAX_FUNCTIONS:
            raise ValueError(f"the {kind} agent has {len(tools)} tools, and an agent at most {MAX_FUNCTIONS} functions")
        reading = [function_of(tool) for tool in tools if not tool.in_worker]
        in_worker = [function_of(tool) for tool in tools if tool.in_worker]
        agent = bedrock.CfnAgent(
            self,
            f"{id}Agent",
            agent_name=agent_name(self._settings.stack_prefix, name),
            description=f"Cicada: the {kind} agent{', which changes nothing' if reads_only else ''}",
            agent_resource_role_arn=self._role.role_arn,
            foundation_model=self._model_id,
            instruction=instruction,
            idle_session_ttl_in_seconds=SESSION_TTL_S,
            auto_prepare=True,
            guardrail_configuration=None
            if guardrail is None
            else bedrock.CfnAgent.GuardrailConfigurationProperty(
                guardrail_identifier=guardrail.id, guardrail_version=guardrail.version
            ),
            action_groups=[
                _group(
                    READING_GROUP,
                    "Tools that look something up",
                    reading,
                    lambda_=self._function.function.function_arn,
                ),
                *(
                    [
                        _group(
                            WORKER_GROUP,
                            "Tools that change something of the user's, weigh evidence or give a verdict",
                            in_worker,
                            custom_control="RETURN_CONTROL",
                        )
                    ]
                    if in_worker
                    else []
                ),
            ],
        )
        agent.node.add_dependency(self._role)
        lambda_.CfnPermission(
            self,
            f"{id}Invokes",
            action="lambda:InvokeFunction",
            function_name=self._function.function.function_arn,
            principal="bedrock.amazonaws.com",
            source_account=Stack.of(self).account,
            source_arn=agent.attr_agent_arn,
        )
        return bedrock.CfnAgentAlias(
            self,
            f"{id}Alias",
            agent_id=agent.attr_agent_id,
            agent_alias_name=ALIAS,
            # An alias points at the version that was made of the agent when the alias was last changed.
            description=f"Definition {_digest(instruction, self._model_id, *self._checks(), *reading, *in_worker)}",
        )


def agent_name(prefix: str, kind: str) -> str:
    """An agent's name; the service takes no two dashes in a row."""
    return re.sub("-+", "-", f"{prefix}-{kind}")


def _group(name: str, description: str, functions: list[FunctionSchema], **executor: str) -> Any:
    return bedrock.CfnAgent.AgentActionGroupProperty(
        action_group_name=name,
        description=description,
        action_group_executor=bedrock.CfnAgent.ActionGroupExecutorProperty(**executor),
        function_schema=bedrock.CfnAgent.FunctionSchemaProperty(functions=[_function(one) for one in functions]),
    )


def _function(schema: FunctionSchema) -> Any:
    return bedrock.CfnAgent.FunctionProperty(
        name=schema.name,
        description=schema.description,
        parameters={
            parameter.name: bedrock.CfnAgent.ParameterDetailProperty(
                type=parameter.kind, description=parameter.description, required=parameter.required
            )
            for parameter in schema.parameters
        }
        or None,
    )


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([repr(part) for part in parts]).encode()).hexdigest()[:16]
