"""Custom resources, which nothing here runs: a stack with one fails at once, where moto would wait for ever."""

from __future__ import annotations

from typing import Any, NoReturn

import moto.cloudformation.parsing

from cicada_local.cloudformation.base import Declaration, define


class CustomResourceRefused(Exception):
    """A stack has a custom resource."""


def _refuse(declaration: Declaration) -> NoReturn:
    raise CustomResourceRefused(f"{declaration.logical_id}: the local cloud runs no custom resources")


def _refuse_update(_: Any, declaration: Declaration) -> NoReturn:
    _refuse(declaration)


_parsing: Any = moto.cloudformation.parsing
_parsing.CustomModel = define("AWS::CloudFormation::CustomResource", create=_refuse, update=_refuse_update)
