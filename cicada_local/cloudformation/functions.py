"""Functions with their layers, and layers that can be referred to: moto's own models lose both."""

from __future__ import annotations

import base64
import json
from typing import Any

from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaFunction
from moto.awslambda.utils import get_backend

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.cloudformation.event_invoke import queue_arn
from cicada_local.functions.async_events import DEAD_LETTERS
from cicada_local.functions.deployment_limits import (
    check_environment,
    check_layers,
    check_reservation,
    check_size,
    unzipped_bytes,
)
from cicada_local.functions.log_levels import LOGGING
from cicada_local.permissions.principals import RoleNotAssumable, check_trust


def _create_function(declaration: Declaration) -> LambdaFunction:
    properties = declaration.properties
    _check(declaration, declaration.name)
    function = get_backend(declaration.account_id, declaration.region_name).create_function(
        {
            **properties,
            "FunctionName": declaration.name,
            "Code": _code(properties["Code"]),
            "Tags": {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])},
        }
    )
    _keep(function, properties)
    _check_size(function, declaration)
    return function


def _update_function(function: LambdaFunction, declaration: Declaration) -> LambdaFunction:
    properties = declaration.properties
    _check(declaration, function.function_name)
    function.update_configuration({"Environment": {"Variables": {}}, "Layers": [], **properties})
    function.update_function_code(_code(properties["Code"]))
    _keep(function, properties)
    function.reserved_concurrency = properties.get("ReservedConcurrentExecutions")
    _check_size(function, declaration)
    return function


def _keep(function: LambdaFunction, properties: dict[str, Any]) -> None:
    """Keep what moto leaves out of a function's properties."""
    setattr(function, LOGGING, properties.get("LoggingConfig", {}))
    setattr(function, DEAD_LETTERS, queue_arn(properties.get("DeadLetterConfig", {}).get("TargetArn", "")))


def _check(declaration: Declaration, name: str) -> None:
    """Refuse what Lambda refuses of a configuration."""
    properties = declaration.properties
    check_environment(properties.get("Environment", {}).get("Variables", {}))
    check_layers(properties.get("Layers", []))
    others = get_backend(declaration.account_id, declaration.region_name).list_functions()
    reserved = properties.get("ReservedConcurrentExecutions")
    check_reservation(
        None if reserved is None else int(reserved),
        sum(int(other.reserved_concurrency or 0) for other in others if other.function_name != name),
    )
    try:
        check_trust(properties["Role"], "lambda.amazonaws.com")
    except RoleNotAssumable as error:
        raise ValueError(f"The role defined for the function cannot be assumed by Lambda: {error}") from error


def _check_size(function: LambdaFunction, declaration: Declaration) -> None:
    backend = get_backend(declaration.account_id, declaration.region_name)
    layers = (backend.layers_versions_by_arn(layer["Arn"]) for layer in function.layers)
    check_size(
        unzipped_bytes(function.code_bytes), (unzipped_bytes(layer.code_bytes) for layer in layers if layer is not None)
    )


def _code(code: dict[str, Any]) -> dict[str, Any]:
    """The API's form of a function's code: inline text becomes a base64 archive of one module."""
    if "ZipFile" not in code:
        return dict(code)
    return {"ZipFile": base64.b64encode(LambdaFunction._create_zipfile_from_plaintext_code(code["ZipFile"]))}


def _publish_layer(declaration: Declaration) -> Any:
    backend = get_backend(declaration.account_id, declaration.region_name)
    version: Any = backend.publish_layer_version({**declaration.properties, "LayerName": declaration.name})
    version.physical_resource_id = version.arn
    return version


def _delete_layer(declaration: Declaration) -> None:
    name, version = declaration.name.split(":")[-2:]
    get_backend(declaration.account_id, declaration.region_name).delete_layer_version(name, version)


def _permit(declaration: Declaration) -> Resource:
    """Add a statement to a function's policy."""
    sid = f"{declaration.stack_name}-{declaration.logical_id}"
    backend = get_backend(declaration.account_id, declaration.region_name)

    def remove(function: str) -> None:
        try:
            policy: Any = backend.get_function(function).policy
        except LambdaClientError:  # it went before its permission
            return
        policy.statements = [statement for statement in policy.statements if statement["Sid"] != sid]

    def replace(properties: dict[str, Any]) -> None:
        function = properties["FunctionName"]
        remove(function)
        policy: Any = backend.get_function(function).policy
        added, _ = policy.add_statement(json.dumps({**properties, "StatementId": sid}))
        _add_url_conditions(added, properties)

    replace(declaration.properties)
    return Resource(sid, {"Id": sid}, replace=replace, remove=lambda: remove(declaration.properties["FunctionName"]))


def _add_url_conditions(statement: dict[str, Any], properties: dict[str, Any]) -> None:
    """Keep the conditions of permissions for function URLs, and refuse what Lambda refuses of them."""
    auth_type, via_url = properties.get("FunctionUrlAuthType"), properties.get("InvokedViaFunctionUrl")
    action = properties["Action"]
    if auth_type is not None:
        if action != "lambda:InvokeFunctionUrl":
            raise ValueError("FunctionUrlAuthType is only supported for lambda:InvokeFunctionUrl action")
        _condition(statement, "StringEquals", "lambda:FunctionUrlAuthType", auth_type)
    if via_url is not None:
        if action != "lambda:InvokeFunction":
            raise ValueError("InvokedViaFunctionUrl is only supported for lambda:InvokeFunction action")
        _condition(statement, "Bool", "lambda:InvokedViaFunctionUrl", str(via_url).lower())


def _condition(statement: dict[str, Any], operator: str, key: str, value: str) -> None:
    statement.setdefault("Condition", {}).setdefault(operator, {})[key] = value


def _permit_again(permission: Resource, declaration: Declaration) -> Resource:
    permission.replace(declaration.properties)
    return permission


define("AWS::Lambda::Permission", create=_permit, update=_permit_again, attributes=("Id",))
define(
    "AWS::Lambda::Function",
    create=_create_function,
    update=_update_function,
    attributes=("Arn",),
    name_property="FunctionName",
)
define(
    "AWS::Lambda::LayerVersion",
    create=_publish_layer,
    update=lambda _, declaration: _publish_layer(declaration),  # a version never changes
    delete=_delete_layer,
    attributes=("LayerVersionArn",),
    name_property="LayerName",
)
