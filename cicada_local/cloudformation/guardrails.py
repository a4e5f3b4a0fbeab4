"""Guardrails of stacks and their versions, in the local cloud's Bedrock."""

from __future__ import annotations

from typing import Any

from cicada_local.bedrock.guardrails import DRAFT, GuardrailStore, arn_of, id_of
from cicada_local.cloudformation.base import Declaration, Resource, define

GUARDRAIL, VERSION = "AWS::Bedrock::Guardrail", "AWS::Bedrock::GuardrailVersion"

_stores: list[GuardrailStore] = []


def serve(store: GuardrailStore) -> None:
    """Make stacks' guardrails be those of a store."""
    _stores[:] = [store]


def _store() -> GuardrailStore:
    if not _stores:
        raise ValueError("no Bedrock runs here")
    return _stores[0]


def _create_guardrail(declaration: Declaration) -> Resource:
    store, guardrail_id = _store(), id_of(declaration.stack_name, declaration.logical_id)
    store.put(guardrail_id, _lowered(declaration.properties))
    arn = arn_of(guardrail_id)
    return Resource(
        arn,
        {"GuardrailId": guardrail_id, "GuardrailArn": arn, "Version": DRAFT, "Status": "READY"},
        replace=lambda properties: store.put(guardrail_id, _lowered(properties)),
        remove=lambda: store.delete(guardrail_id),
    )


def _update_guardrail(resource: Resource, declaration: Declaration) -> Resource:
    resource.replace(declaration.properties)
    return resource


def _create_version(declaration: Declaration) -> Resource:
    store = _store()
    guardrail_id = str(declaration.properties["GuardrailIdentifier"]).rpartition("/")[2]
    number = store.publish(guardrail_id)
    attributes = {"GuardrailId": guardrail_id, "GuardrailArn": arn_of(guardrail_id), "Version": number}
    return _Version(declaration, f"{guardrail_id}|{number}", attributes, lambda: store.delete(guardrail_id, number))


class _Version(Resource):
    """A version, and what it was declared as."""

    def __init__(self, declaration: Declaration, id: str, attributes: dict[str, str], remove: Any) -> None:
        super().__init__(id, attributes, remove=remove)
        self.declared = _declared(declaration)


def _update_version(resource: _Version, declaration: Declaration) -> Resource:
    """Both properties are create-only: another value makes another version, and the old one is deleted."""
    if resource.declared == _declared(declaration):
        return resource
    made = _create_version(declaration)
    resource.delete(declaration.account_id, declaration.region_name)
    return made


def _declared(declaration: Declaration) -> tuple[Any, ...]:
    return tuple(declaration.properties.get(name) for name in ("Description", "GuardrailIdentifier"))


_PLAIN = frozenset({"Tags"})


def _lowered(value: Any, name: str = "") -> Any:
    """A part of a template as the API has it; numbers as numbers, which moto reads as texts now and then."""
    match value:
        case dict():
            return {key[:1].lower() + key[1:]: _lowered(part, key) for key, part in value.items() if key not in _PLAIN}
        case list():
            return [_lowered(part) for part in value]
        case _:
            return float(value) if name == "Threshold" else value


define(
    GUARDRAIL,
    create=_create_guardrail,
    update=_update_guardrail,
    attributes=("GuardrailId", "GuardrailArn", "Version", "Status"),
    name_property="Name",
)
define(VERSION, create=_create_version, update=_update_version, attributes=("GuardrailId", "GuardrailArn", "Version"))
