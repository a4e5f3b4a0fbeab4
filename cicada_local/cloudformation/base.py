# ruff: noqa: ARG002, D102
"""How a resource type is told to moto's CloudFormation: by what creates, updates and deletes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.core.common_models import CloudFormationModel

_MODELS: list[Any] = []
"""Keeps the models alive: a class knows its subclasses only as long as somebody else does."""


@dataclass(frozen=True)
class Declaration:
    """A resource as a stack declares it, references resolved."""

    name: str
    """Its name: the template's, or one made of the stack's name, the logical id and chance."""
    properties: dict[str, Any]
    account_id: str
    region_name: str
    stack_name: str = ""
    """Known at creation, as are the next three."""
    logical_id: str = ""
    stack_id: str = ""
    resource_type: str = ""


class Resource:
    """A created resource of a type that moto has no class of its own for."""

    def __init__(
        self,
        physical_resource_id: str,
        attributes: Mapping[str, str],
        *,
        replace: Callable[[dict[str, Any]], None] = lambda _: None,
        remove: Callable[[], None] = lambda: None,
    ) -> None:
        """Describe it.

        Args:
            physical_resource_id: what ``Ref`` gives.
            attributes: what ``Fn::GetAtt`` gives, by name.
            replace: takes over changed properties.
            remove: deletes it.
        """
        self.physical_resource_id = physical_resource_id
        self._attributes = attributes
        self._remove = remove
        self.replace = replace

    def get_cfn_attribute(self, attribute_name: str) -> str:
        return self._attributes[attribute_name]

    def is_created(self) -> bool:
        return True

    def delete(self, account_id: str, region_name: str) -> None:
        self._remove()


def forgetting(kept: MutableMapping[str, Any], name: str) -> Callable[[], None]:
    """Removes an entry, if it is there."""

    def remove() -> None:
        kept.pop(name, None)

    return remove


def define(
    resource_type: str,
    *,
    create: Callable[[Declaration], Any],
    update: Callable[[Any, Declaration], Any],
    delete: Callable[[Declaration], None] = lambda _: None,
    attributes: Sequence[str] | None = None,
    name_property: str = "",
) -> Any:
    """Define a type; from now on stacks can have such resources. Returns moto's model of it.

    Args:
        resource_type: its full name, such as ``AWS::S3::Bucket``.
        create: makes one, and returns an object with ``physical_resource_id``, ``get_cfn_attribute`` and
            ``is_created``: moto's own, or a :class:`Resource`.
        update: changes one in place, or makes another; returns the one that is there afterwards.
        delete: deletes one whose object has no ``delete`` of its own; its ``name`` is the physical id.
        attributes: what ``Fn::GetAtt`` may ask for; anything when None.
        name_property: the property that names it, if one can.
    """

    class Model(CloudFormationModel):
        @staticmethod
        def cloudformation_name_type() -> str:
            return name_property

        @staticmethod
        def cloudformation_type() -> str:
            return resource_type

        @classmethod
        def has_cfn_attr(cls, attr: str) -> bool:
            return attributes is None or attr in attributes

        @classmethod
        def create_from_cloudformation_json(
            cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
        ) -> Any:
            stack_name = kwargs["StackId"].split("/")[1]
            properties = cloudformation_json["Properties"]
            name = properties.get(name_property, resource_name)
            return create(
                Declaration(
                    name,
                    properties,
                    account_id,
                    region_name,
                    stack_name,
                    kwargs["LogicalId"],
                    kwargs["StackId"],
                    kwargs["ResourceType"],
                )
            )

        @classmethod
        def update_from_cloudformation_json(
            cls,
            original_resource: Any,
            new_resource_name: str,
            cloudformation_json: Any,
            account_id: str,
            region_name: str,
        ) -> Any:
            properties = cloudformation_json["Properties"]
            return update(original_resource, Declaration(new_resource_name, properties, account_id, region_name))

        @classmethod
        def delete_from_cloudformation_json(
            cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
        ) -> None:
            delete(Declaration(resource_name, cloudformation_json.get("Properties", {}), account_id, region_name))

    model: Any = Model  # what it leaves abstract, moto does not call
    _MODELS.append(model)
    return model
