"""CloudFormation resource types of the stacks that moto lacks or creates too simply.

moto finds a type's model among the *direct* subclasses of its ``CloudFormationModel``; the last one defined for a type
wins, so that importing these modules after moto's own is all that registers them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

_SUFFIX_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_SUFFIX_LENGTH = 12

_MODULES = (
    "agents",
    "change_sets",
    "cloudfront",
    "cognito",
    "custom",
    "event_invoke",
    "function_urls",
    "functions",
    "guardrails",
    "harnesses",
    "inert",
    "monitoring",
    "queues",
    "storage",
    "vectors",
    "websocket_api",
    "workflow",
)


def register() -> None:
    """Make the types known to moto's CloudFormation. Costs about two seconds: moto loads every service that it has."""
    from moto.cloudformation import models, parsing

    for module in _MODULES:
        import_module(f"{__name__}.{module}")
    for cached in (parsing.get_model_list, parsing.get_model_map, parsing.get_name_type_map):
        cached.cache_clear()

    _read_json_as_json(models.Stack)
    _name_alike(parsing)
    _keep_what_cannot_change(parsing)
    _delete_custom_resources_first(parsing.ResourceMap)


def _read_json_as_json(stack: Any) -> None:
    read_yaml = stack.parse_template

    def parse_template(template: str) -> dict[str, Any]:
        """Read JSON, which is what the CDK sends, as JSON: moto's YAML reader takes seconds for a large template."""
        try:
            parsed: dict[str, Any] = json.loads(template)
        except ValueError:
            parsed = read_yaml(template)
        return parsed

    stack.parse_template = staticmethod(parse_template)


def _name_alike(parsing: Any) -> None:
    """Derive the ends of generated names from what they name, so that names are the same at every start."""
    generate = parsing.generate_resource_name

    def generate_resource_name(resource_type: str, stack_name: str, logical_id: str) -> str:
        digest = hashlib.sha256(f"{stack_name}/{logical_id}".encode()).digest()
        suffix = "".join(_SUFFIX_ALPHABET[byte % len(_SUFFIX_ALPHABET)] for byte in digest[:_SUFFIX_LENGTH])
        parsing.random_suffix = lambda: suffix
        return str(generate(resource_type, stack_name, logical_id))

    parsing.generate_resource_name = generate_resource_name


def _keep_what_cannot_change(parsing: Any) -> None:
    """Let a resource that moto cannot update stay as it is: moto would lose it."""
    update = parsing.parse_and_update_resource

    def parse_and_update_resource(
        logical_id: str, resource_json: dict[str, Any], resources_map: Any, account_id: str, region_name: str
    ) -> Any:
        updated = update(logical_id, resource_json, resources_map, account_id, region_name)
        return resources_map[logical_id] if updated is None else updated

    parsing.parse_and_update_resource = parse_and_update_resource


def _delete_custom_resources_first(resource_map: Any) -> None:
    from cicada_local.cloudformation.custom import delete_first

    delete = resource_map.delete

    def delete_in_order(self: Any) -> None:
        delete_first(self)
        delete(self)

    resource_map.delete = delete_in_order


def unknown_types(template: Mapping[str, Any]) -> list[str]:
    """The resource types of a template that nothing here simulates, sorted: they are left out of a deployed stack."""
    from moto.cloudformation.parsing import NULL_MODELS, get_model_map

    known = get_model_map()
    types = {resource["Type"] for resource in template.get("Resources", {}).values()}
    used = {type for type in types if not type.startswith("Custom::")}
    return sorted(used - known.keys() - set(NULL_MODELS))
