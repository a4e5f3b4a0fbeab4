"""Functions with their layers, and layers that can be referred to: moto's own models lose both."""

from __future__ import annotations

import base64
from typing import Any

from moto.awslambda.models import LambdaFunction
from moto.awslambda.utils import get_backend

from cicada_local.cloudformation.base import Declaration, define


def _create_function(declaration: Declaration) -> LambdaFunction:
    properties = declaration.properties
    return get_backend(declaration.account_id, declaration.region_name).create_function(
        {
            **properties,
            "FunctionName": declaration.name,
            "Code": _code(properties["Code"]),
            "Tags": {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])},
        }
    )


def _update_function(function: LambdaFunction, declaration: Declaration) -> LambdaFunction:
    properties = declaration.properties
    function.update_configuration({"Environment": {"Variables": {}}, "Layers": [], **properties})
    function.update_function_code(_code(properties["Code"]))
    function.reserved_concurrency = properties.get("ReservedConcurrentExecutions")
    return function


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
