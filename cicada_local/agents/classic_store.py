"""Agents and aliases of Amazon Bedrock Agents, as stacks create them: checked against the service's model and quotas.

An alias without a version of its own choosing points at a version that is made of the draft when the alias is created
or updated: an agent that changes later is not what the alias calls, until the alias changes too.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cicada_local import service_model
from cicada_local.places import ACCOUNT_ID, REGION

ID_LENGTH = 10
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
MAX_PARAMETERS, MAX_FUNCTIONS, MAX_GROUPS = 5, 11, 15
DEFAULT_TTL_S = 600


class AgentRefused(Exception):
    """The control plane does not take what it is given; the message is the service's."""


@dataclass(frozen=True)
class Function:
    """A function of an action group."""

    group: str
    name: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]
    """By name: type, description, required."""
    lambda_arn: str | None
    """None where control is returned to the caller."""


@dataclass(frozen=True)
class Version:
    """What an alias calls."""

    number: str
    instruction: str
    model_id: str
    ttl_s: int
    functions: Mapping[str, Function]


@dataclass
class Agent:
    """An agent: its draft, and the versions that were made of it."""

    id: str
    name: str
    properties: dict[str, Any]
    prepared: bool
    versions: dict[str, Version] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """The version of each alias by its id."""


def agent_arn(agent_id: str) -> str:
    """An agent's ARN."""
    return f"arn:aws:bedrock:{REGION}:{ACCOUNT_ID}:agent/{agent_id}"


def alias_arn(agent_id: str, alias_id: str) -> str:
    """An alias's ARN."""
    return f"arn:aws:bedrock:{REGION}:{ACCOUNT_ID}:agent-alias/{agent_id}/{alias_id}"


def id_of(*names: str) -> str:
    """An id of the service's form, the same at every start."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:ID_LENGTH])


class AgentStore:
    """All agents of the account. Thread-safe."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._lock = threading.Lock()
        self._model = service_model.load("bedrock-agent")

    def put_agent(self, agent_id: str, properties: Mapping[str, Any]) -> None:
        """Create an agent, or change its draft. ``properties`` are CloudFormation's. Raises AgentRefused."""
        wanted = copy.deepcopy(dict(properties))
        self._check(wanted)
        with self._lock:
            agent = self._agents.get(agent_id)
            prepared = bool(wanted.get("AutoPrepare", False))
            if agent is None:
                self._agents[agent_id] = Agent(agent_id, wanted["AgentName"], wanted, prepared)
            else:
                agent.properties, agent.prepared = wanted, prepared

    def delete_agent(self, agent_id: str) -> None:
        """Delete an agent with all that belongs to it."""
        with self._lock:
            self._agents.pop(agent_id, None)

    def put_alias(self, agent_id: str, alias_id: str, properties: Mapping[str, Any]) -> None:
        """Create or update an alias. Raises AgentRefused."""
        with self._lock:
            agent = self._agents.get(agent_id)
            if agent is None:
                raise AgentRefused(f"Agent {agent_id} could not be found")
            routing = properties.get("RoutingConfiguration") or []
            if routing and "AgentVersion" in routing[0]:
                number = str(routing[0]["AgentVersion"])
                if number not in agent.versions:
                    raise AgentRefused(f"Version {number} of agent {agent_id} could not be found")
            else:
                if not agent.prepared:
                    raise AgentRefused(f"Agent {agent_id} is in NOT_PREPARED state. Prepare it first.")
                number = str(len(agent.versions) + 1)
                agent.versions[number] = _version(number, agent.properties)
            agent.aliases[alias_id] = number

    def delete_alias(self, agent_id: str, alias_id: str) -> None:
        """Delete an alias."""
        with self._lock:
            if (agent := self._agents.get(agent_id)) is not None:
                agent.aliases.pop(alias_id, None)

    def version(self, agent_id: str, alias_id: str) -> Version | None:
        """What an alias calls; None if there is no such agent or alias."""
        with self._lock:
            agent = self._agents.get(agent_id)
            number = None if agent is None else agent.aliases.get(alias_id)
            return None if agent is None or number is None else agent.versions[number]

    def _check(self, properties: Mapping[str, Any]) -> None:
        groups = properties.get("ActionGroups", [])
        agent = {name[:1].lower() + name[1:]: value for name, value in properties.items() if name in _AGENT_MEMBERS}
        self._check_shape("CreateAgentRequest", agent)
        for name in ("FoundationModel", "Instruction"):
            if not properties.get(name):
                raise AgentRefused(f"Failed to prepare: {name} is required")
        if not properties.get("AgentResourceRoleArn"):
            raise AgentRefused("AgentResourceRoleArn is required")
        if len(groups) > MAX_GROUPS:
            raise _quota("action-groups-per-agent", MAX_GROUPS, len(groups))
        for group in groups:
            self._check_group(group)
        functions = [function for group in groups for function in _functions_of(group)]
        if len(functions) > MAX_FUNCTIONS:
            raise _quota("apis-per-agent", MAX_FUNCTIONS, len(functions))
        names = [function["Name"] for function in functions]
        if len(set(names)) != len(names):
            raise AgentRefused("Two functions have one name")

    def _check_group(self, group: Mapping[str, Any]) -> None:
        if group.get("ParentActionGroupSignature"):
            raise AgentRefused(f"{group['ParentActionGroupSignature']} is not served here")
        executor = group.get("ActionGroupExecutor", {})
        if len(executor) != 1 or executor.get("CustomControl", "RETURN_CONTROL") != "RETURN_CONTROL":
            raise AgentRefused("ActionGroupExecutor is either a Lambda or RETURN_CONTROL")
        shape = {
            "agentId": "A" * ID_LENGTH,
            "agentVersion": "DRAFT",
            "actionGroupName": group.get("ActionGroupName"),
            "functionSchema": {"functions": [_as_api(function) for function in _functions_of(group)]},
        }
        if "Description" in group:
            shape["description"] = group["Description"]
        self._check_shape("CreateAgentActionGroupRequest", shape)
        for function in _functions_of(group):
            if len(function.get("Parameters", {})) > MAX_PARAMETERS:
                raise _quota("parameters-per-function", MAX_PARAMETERS, len(function["Parameters"]))

    def _check_shape(self, name: str, value: Mapping[str, Any]) -> None:
        try:
            service_model.read_input(self._model.shape_for(name), json.dumps(value, default=str).encode())
        except service_model.Refused as refused:
            raise AgentRefused(str(refused)) from refused


_AGENT_MEMBERS = frozenset({"AgentName", "AgentResourceRoleArn", "Description", "FoundationModel", "Instruction"})


def _quota(name: str, most: int, asked: int) -> AgentRefused:
    return AgentRefused(
        f"Validation failed for quota {name}. The maximum number of resources is {most}, but account {ACCOUNT_ID} "
        f"requested {asked} resources. Retry the request with fewer resources."
    )


def _functions_of(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(group.get("FunctionSchema", {}).get("Functions", []))


def _as_api(function: Mapping[str, Any]) -> dict[str, Any]:
    shaped: dict[str, Any] = {"name": function.get("Name")}
    if "Description" in function:
        shaped["description"] = function["Description"]
    if "Parameters" in function:
        shaped["parameters"] = {
            name: {key[:1].lower() + key[1:]: _flag(value) for key, value in parameter.items()}
            for name, parameter in function["Parameters"].items()
        }
    return shaped


def _flag(value: Any) -> Any:
    """A value as the template means it: CloudFormation turns the words for true and false into what they mean."""
    return value == "true" if value in ("true", "false") else value


def _version(number: str, properties: Mapping[str, Any]) -> Version:
    functions = {}
    for group in properties.get("ActionGroups", []):
        if group.get("ActionGroupState", "ENABLED") != "ENABLED":
            continue
        for function in _functions_of(group):
            parameters = _as_api(function).get("parameters", {})
            functions[function["Name"]] = Function(
                group["ActionGroupName"],
                function["Name"],
                function.get("Description", ""),
                parameters,
                group["ActionGroupExecutor"].get("Lambda"),
            )
    return Version(
        number,
        properties["Instruction"],
        properties["FoundationModel"],
        int(properties.get("IdleSessionTTLInSeconds", DEFAULT_TTL_S)),
        functions,
    )
