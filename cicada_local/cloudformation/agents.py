"""Bedrock agents and their aliases of stacks, in the local cloud's agents' service."""

from __future__ import annotations

from cicada_local.agents.classic_store import AgentStore, agent_arn, alias_arn, id_of
from cicada_local.cloudformation.base import Declaration, Resource, define

AGENT, ALIAS = "AWS::Bedrock::Agent", "AWS::Bedrock::AgentAlias"

_stores: list[AgentStore] = []


def serve(store: AgentStore) -> None:
    """Make stacks' agents be those of a store."""
    _stores[:] = [store]


def _store() -> AgentStore:
    if not _stores:
        raise ValueError("no agents' service runs here")
    return _stores[0]


def _create_agent(declaration: Declaration) -> Resource:
    store, agent_id = _store(), id_of(declaration.stack_name, declaration.logical_id)
    store.put_agent(agent_id, declaration.properties)
    return Resource(
        agent_id,
        {"AgentId": agent_id, "AgentArn": agent_arn(agent_id), "AgentVersion": "DRAFT", "AgentStatus": "PREPARED"},
        replace=lambda properties: store.put_agent(agent_id, properties),
        remove=lambda: store.delete_agent(agent_id),
    )


def _create_alias(declaration: Declaration) -> Resource:
    store, agent_id = _store(), str(declaration.properties["AgentId"])
    alias_id = id_of(declaration.stack_name, declaration.logical_id, agent_id)
    store.put_alias(agent_id, alias_id, declaration.properties)
    return Resource(
        f"{agent_id}|{alias_id}",
        {"AgentAliasId": alias_id, "AgentAliasArn": alias_arn(agent_id, alias_id), "AgentAliasStatus": "PREPARED"},
        replace=lambda properties: store.put_alias(agent_id, alias_id, properties),
        remove=lambda: store.delete_alias(agent_id, alias_id),
    )


def _update(resource: Resource, declaration: Declaration) -> Resource:
    resource.replace(declaration.properties)
    return resource


define(
    AGENT,
    create=_create_agent,
    update=_update,
    attributes=("AgentId", "AgentArn", "AgentVersion", "AgentStatus"),
    name_property="AgentName",
)
define(ALIAS, create=_create_alias, update=_update, attributes=("AgentAliasId", "AgentAliasArn", "AgentAliasStatus"))
