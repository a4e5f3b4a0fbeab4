"""Harnesses of stacks and their endpoints, in the local cloud's AgentCore."""

from __future__ import annotations

from typing import Any

from cicada_local.agents.harness_store import Harness, HarnessStore, HarnessVersion
from cicada_local.cloudformation.base import Declaration, Resource, define

HARNESS, ENDPOINT = "AWS::BedrockAgentCore::Harness", "AWS::BedrockAgentCore::HarnessEndpoint"
_ALL_TOOLS = ["*"]

_stores: list[HarnessStore] = []


def serve(store: HarnessStore) -> None:
    """Make stacks' harnesses be those of a store."""
    _stores[:] = [store]


def _store() -> HarnessStore:
    if not _stores:
        raise ValueError("no AgentCore runs here")
    return _stores[0]


def create_harness(declaration: Declaration) -> Resource:
    """Make a harness. Raises ValueError for one that is not served here."""
    store = _store()

    def put(properties: dict[str, Any]) -> Harness:
        return store.put(
            properties["HarnessName"],
            _version(properties),
            region=declaration.region_name,
            account_id=declaration.account_id,
        )

    harness = put(declaration.properties)
    return _HarnessResource(harness, put, lambda: store.delete(harness.id))


class _HarnessResource(Resource):
    """A harness; its version grows with every change."""

    def __init__(self, harness: Harness, put: Any, remove: Any) -> None:
        attributes = {"Arn": harness.arn, "HarnessId": harness.id, "Status": "READY"}
        super().__init__(harness.id, attributes, replace=put, remove=remove)
        self._harness = harness

    def get_cfn_attribute(self, attribute_name: str) -> str:
        """See :class:`cicada_local.cloudformation.base.Resource`."""
        if attribute_name == "Version":
            return str(len(self._harness.versions))
        return super().get_cfn_attribute(attribute_name)


def _version(properties: dict[str, Any]) -> HarnessVersion:
    """A harness as CreateHarness would make it; the members of a template begin with capital letters."""
    memory = properties.get("Memory", {})
    if "Disabled" not in memory:
        raise ValueError("a harness without Memory.Disabled gets a memory, which is not served here")
    model = properties["Model"]
    tokens = properties.get("MaxTokens")
    return HarnessVersion(
        model=_lowered(model),
        system_prompt=tuple(_lowered(block) for block in properties.get("SystemPrompt", ())),
        tools=tuple(_lowered(tool) for tool in properties.get("Tools", ())),
        allowed_tools=tuple(properties.get("AllowedTools", _ALL_TOOLS)),
        max_iterations=int(properties.get("MaxIterations", HarnessVersion.max_iterations)),
        max_tokens=None if tokens is None else int(tokens),
        timeout_s=int(properties.get("TimeoutSeconds", HarnessVersion.timeout_s)),
    )


def _lowered(value: Any) -> Any:
    """A part of a template as the API has it: ``bedrockModelConfig`` for ``BedrockModelConfig``; numbers as numbers."""
    match value:
        case dict():
            return {name[:1].lower() + name[1:]: _number(name, _lowered(part)) for name, part in value.items()}
        case list():
            return [_lowered(part) for part in value]
        case _:
            return value


def _number(name: str, value: Any) -> Any:
    """moto reads templates' numbers as texts now and then."""
    if name == "MaxTokens":
        return int(value)
    return float(value) if name in ("Temperature", "TopP") else value


def create_endpoint(declaration: Declaration) -> Resource:
    """Make an endpoint. Raises ValueError if its harness, or the version, is not there."""
    store = _store()
    identifier, name = str(declaration.properties["HarnessId"]), str(declaration.properties["EndpointName"])

    def put(properties: dict[str, Any]) -> None:
        version = properties.get("TargetVersion")
        store.put_endpoint(identifier, name, None if version is None else int(version))

    put(declaration.properties)
    arn = f"{store.arn_of(identifier)}/harness-endpoint/{name}"
    return Resource(
        arn,
        {"Arn": arn, "HarnessName": identifier.rpartition("-")[0], "Status": "READY"},
        replace=put,
        remove=lambda: store.delete_endpoint(identifier, name),
    )


def _update(resource: Resource, declaration: Declaration) -> Resource:
    resource.replace(declaration.properties)
    return resource


define(
    HARNESS,
    create=create_harness,
    update=_update,
    attributes=("Arn", "HarnessId", "Version", "Status"),
    name_property="HarnessName",
)
define(ENDPOINT, create=create_endpoint, update=_update, attributes=("Arn", "HarnessName", "Status"))
