"""Reads what CloudFormation templates declare and refer to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Template = Mapping[str, Any]
Resource = Mapping[str, Any]
Read = tuple[str, str]
"""A stack and one of its outputs."""

_SUBSTITUTED = re.compile(r"\$\{([A-Za-z0-9:]+)(?:\.[^}]*)?\}")


def resources(template: Template) -> Mapping[str, Resource]:
    """The resources by their logical ids."""
    found: Mapping[str, Resource] = template.get("Resources", {})
    return found


def text(value: Any) -> str:
    """A value in one form, for comparison."""
    return json.dumps(value, sort_keys=True)


def property_of(resource: Resource, path: str) -> Any:
    """A property's value; None where it is not set. Dots lead into others."""
    value: Any = resource.get("Properties", {})
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a value, the value itself included."""
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def references(value: Any) -> set[str]:
    """The logical ids and pseudo parameters that a value refers to."""
    found: set[str] = set()
    for node in nodes(value):
        match node:
            case {"Ref": str(name)}:
                found.add(name)
            case {"Fn::GetAtt": [str(name), *_]}:
                found.add(name)
            case {"Fn::Sub": str(pattern)} | {"Fn::Sub": [str(pattern), *_]}:
                found.update(_SUBSTITUTED.findall(pattern))
    return found


def reads(value: Any) -> set[Read]:
    """The outputs of other stacks that a value or a template reads."""
    return {
        (str(node["Fn::GetStackOutput"]["StackName"]), str(node["Fn::GetStackOutput"]["OutputName"]))
        for node in nodes(value)
        if "Fn::GetStackOutput" in node
    }


def imports(value: Any) -> set[str]:
    """The exports that a value or a template imports, by their names."""
    return {text(node["Fn::ImportValue"]) for node in nodes(value) if "Fn::ImportValue" in node}


def exports(template: Template) -> dict[str, str]:
    """The outputs that a template exports, by the names of the exports."""
    return {
        text(output["Export"]["Name"]): name
        for name, output in template.get("Outputs", {}).items()
        if "Export" in output
    }


def order(templates: Mapping[str, Template]) -> list[str]:
    """The stacks, each after those whose outputs or exports it reads, otherwise as they come."""
    exported_by = {export: stack for stack, template in templates.items() for export in exports(template)}

    def needs(stack: str) -> set[str]:
        read = {producer for producer, _ in reads(templates[stack])}
        return (read | {exported_by.get(each, stack) for each in imports(templates[stack])}) & templates.keys() - {
            stack
        }

    found: list[str] = []
    while len(found) < len(templates):
        ready = [stack for stack in templates if stack not in found and needs(stack) <= set(found)]
        found += ready or [stack for stack in templates if stack not in found]
    return found
