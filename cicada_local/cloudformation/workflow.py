"""State machines, created where the interpreter runs them: moto's own model makes them where they only pretend to."""

from __future__ import annotations

import json
from typing import Any

from moto.s3.models import s3_backends
from moto.stepfunctions.parser.models import StepFunctionsParserBackend, stepfunctions_parser_backends
from moto.utilities.utils import get_partition

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.interpreter import PRINCIPAL
from cicada_local.permissions.principals import RoleNotAssumable, check_trust


def _backend(declaration: Declaration) -> StepFunctionsParserBackend:
    return stepfunctions_parser_backends[declaration.account_id][declaration.region_name]


def _create(declaration: Declaration) -> Resource:
    properties = declaration.properties
    _check(declaration)
    backend = _backend(declaration)
    machine = backend.create_state_machine(
        name=declaration.name,
        definition=_definition(declaration),
        roleArn=properties["RoleArn"],
        tags=[{"key": tag["Key"], "value": tag["Value"]} for tag in properties.get("Tags", [])],
        sm_type=properties.get("StateMachineType", "STANDARD"),
    )
    attributes = {"Arn": machine.arn, "Name": machine.name, "StateMachineRevisionId": "INITIAL"}
    return Resource(machine.arn, attributes, remove=lambda: backend.delete_state_machine(machine.arn))


def _update(resource: Resource, declaration: Declaration) -> Resource:
    """Runs under way go on as they began."""
    _check(declaration)
    _backend(declaration).update_state_machine(
        resource.physical_resource_id, _definition(declaration), declaration.properties["RoleArn"]
    )
    return resource


def _check(declaration: Declaration) -> None:
    role_arn = declaration.properties["RoleArn"]
    try:
        check_trust(role_arn, PRINCIPAL)
    except RoleNotAssumable as error:
        raise ValueError(f"{PRINCIPAL} is not authorized to assume the provided role: {error}") from error


def _definition(declaration: Declaration) -> str:
    """The definition's text, from whichever property holds it, with its substitutions made."""
    properties = declaration.properties
    if "DefinitionString" in properties:
        text: str = properties["DefinitionString"]
    elif "Definition" in properties:
        text = json.dumps(properties["Definition"])
    else:
        text = _stored(properties["DefinitionS3Location"], declaration)
    for name, value in properties.get("DefinitionSubstitutions", {}).items():
        text = text.replace("${" + name + "}", str(value))
    return text


def _stored(location: dict[str, Any], declaration: Declaration) -> str:
    backend = s3_backends[declaration.account_id][get_partition(declaration.region_name)]
    found = backend.get_object(location["Bucket"], location["Key"])
    if found is None:
        raise ValueError(f"there is no object s3://{location['Bucket']}/{location['Key']} with the state machine")
    return found.value.decode()


define(
    "AWS::StepFunctions::StateMachine",
    create=_create,
    update=_update,
    attributes=("Arn", "Name", "StateMachineRevisionId"),
    name_property="StateMachineName",
)
