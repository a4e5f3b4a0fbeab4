"""Policies of queues, which moto leaves out; its queues are its own."""

from __future__ import annotations

import json
from typing import Any

from cicada_local.cloudformation.base import Declaration, Resource, define
from cicada_local.permissions.policies import parse
from cicada_local.permissions.resources import queue_policies


def _create_policy(declaration: Declaration) -> Resource:
    names: list[str] = []

    def remove() -> None:
        for name in names:
            queue_policies.pop(name, None)

    def replace(properties: dict[str, Any]) -> None:
        document = json.dumps(properties["PolicyDocument"])
        parse(document)
        remove()
        names[:] = [url.rpartition("/")[2] for url in properties["Queues"]]
        queue_policies.update(dict.fromkeys(names, document))

    replace(declaration.properties)
    return Resource(declaration.name, {"Id": declaration.name}, replace=replace, remove=remove)


def _update_policy(policy: Resource, declaration: Declaration) -> Resource:
    policy.replace(declaration.properties)
    return policy


define("AWS::SQS::QueuePolicy", create=_create_policy, update=_update_policy, attributes=("Id",))
