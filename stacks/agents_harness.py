"""The harness that the agents run in, its endpoint, and the role that it acts in."""

from __future__ import annotations

import re

from aws_cdk import Stack
from aws_cdk import aws_bedrockagentcore as agentcore
from constructs import Construct

from cicada.agents.harness.invocation import MAX_ITERATIONS, NO_TOOL
from cicada.agents.instructions import AgentKind
from stacks.bedrock import model_role
from stacks.function import CicadaFunction
from stacks.settings import Settings

ENDPOINT = "live"
MAX_NAME_CHARS = 40
IDLE_S, MAX_LIFETIME_S = 60, 300
"""Of a session: the service's least, for no session is invoked twice, and more than an agent may take. What an idle one
holds in memory is billed."""
KINDS: tuple[AgentKind, ...] = ("profile", "theory")
_INSTRUCTIONS = "Whoever invokes you names your task. Without one, answer that there is none."


class HarnessAgents(Construct):
    """One harness for both agents.

    What it is deployed with is for invocations that override nothing, and there are none of ours: it may ask its model
    once, and use no tool, not even the shell that every session has. It keeps no memory, which would be billed and
    would hold what users say for longer than the deployment does. Its role may call the model, and nothing else: it
    cannot log either, for its logs and traces hold all that is said.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        """Make it.

        Args:
            scope: the stack.
            id: the construct's id.
            settings: the deployer's.
        """
        super().__init__(scope, id)
        self._settings = settings
        self._model_id = settings.agents.model_id or settings.models.generation_model_id
        self._role = model_role(
            self,
            service="bedrock-agentcore",
            resources="*",
            model_id=self._model_id,
            more_regions=settings.models.destination_regions,
            description="Invoke the model of the agent harness",
        )
        self._harness = self._make_harness()
        self._endpoint = agentcore.CfnHarnessEndpoint(
            self,
            "Endpoint",
            endpoint_name=ENDPOINT,
            harness_id=self._harness.attr_harness_id,
            target_version=self._harness.attr_version,
        )

    def serve(self, worker: CicadaFunction) -> None:
        """Let the answer worker invoke the harness, and tell it which it is."""
        worker.allow(
            # The second is what the service asks for besides: a harness runs on AgentCore's runtime.
            ("bedrock-agentcore:InvokeHarness", "bedrock-agentcore:InvokeAgentRuntime"),
            self._harness.attr_arn,
            self._endpoint.attr_arn,
        )
        deployed = {"harnessArn": self._harness.attr_arn, "endpoint": self._endpoint.endpoint_name}
        worker.function.add_environment(
            "AGENTS_DEPLOYED", Stack.of(self).to_json_string(dict.fromkeys(KINDS, deployed))
        )

    def _make_harness(self) -> agentcore.CfnHarness:
        caps = self._settings.agents
        types = agentcore.CfnHarness
        harness = agentcore.CfnHarness(
            self,
            "Harness",
            harness_name=harness_name(self._settings.stack_prefix),
            execution_role_arn=self._role.role_arn,
            model=types.HarnessModelConfigurationProperty(
                bedrock_model_config=types.HarnessBedrockModelConfigProperty(
                    model_id=self._model_id, max_tokens=caps.max_turn_tokens, api_format="converse_stream"
                )
            ),
            system_prompt=[types.HarnessSystemContentBlockProperty(text=_INSTRUCTIONS)],
            allowed_tools=[NO_TOOL],
            max_iterations=MAX_ITERATIONS,
            max_tokens=caps.max_turn_tokens,
            timeout_seconds=round(caps.time_s),
            environment=types.HarnessEnvironmentProviderProperty(
                agent_core_runtime_environment=types.HarnessAgentCoreRuntimeEnvironmentProperty(
                    lifecycle_configuration=types.LifecycleConfigurationProperty(
                        idle_runtime_session_timeout=IDLE_S, max_lifetime=MAX_LIFETIME_S
                    ),
                    network_configuration=types.NetworkConfigurationProperty(network_mode="PUBLIC"),
                )
            ),
            memory=types.HarnessMemoryConfigurationProperty(disabled={}),
        )
        harness.node.add_dependency(self._role)
        return harness


def harness_name(prefix: str) -> str:
    """A harness's name: letters, digits and underscores, at most 40, a letter first."""
    name = re.sub(r"\W", "_", f"{prefix}_agents", flags=re.ASCII)
    return f"{name[: MAX_NAME_CHARS - len('_agents')].removesuffix('_agents')}_agents"
