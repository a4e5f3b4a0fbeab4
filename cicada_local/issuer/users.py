"""The users and groups of moto's pools as plain data, and back: moto keeps them in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def stored_users(pool: Any) -> dict[str, Any]:
    """A pool's users and groups."""
    return {
        "groups": {name: group.description for name, group in pool.groups.items()},
        "users": [
            {
                "id": user.id,
                "username": user.username,
                "password": user.password,
                "status": str(getattr(user.status, "value", user.status)),
                "enabled": user.enabled,
                "attributes": dict(user.attribute_lookup),
                "groups": sorted(group.group_name for group in user.groups),
            }
            for user in pool.users.values()
        ],
    }


def restore_users(pool: Any, stored: Mapping[str, Any]) -> None:
    """Put users and groups back into a pool; those that it has already stay."""
    from moto.cognitoidp.models import CognitoIdpGroup, CognitoIdpUser, UserStatus

    for name, description in stored["groups"].items():
        pool.groups.setdefault(name, CognitoIdpGroup(pool.id, name, description, "", 0))
    for kept in stored["users"]:
        attributes = [{"Name": name, "Value": value} for name, value in kept["attributes"].items()]
        user = CognitoIdpUser(pool.id, kept["username"], kept["password"], UserStatus(kept["status"]), attributes)
        user.id, user.enabled = kept["id"], kept["enabled"]
        user.update_attributes([{"Name": "sub", "Value": user.id}])
        pool.users[user.username] = user
        for name in kept["groups"]:
            pool.groups[name].users.add(user)
            user.groups.add(pool.groups[name])
