"""The users and groups of moto's pools as plain data, and back: moto keeps them in memory."""

from __future__ import annotations

import secrets
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


FIRST_USER = "reader@example.com"
"""Who can sign in to a local cloud that has a user pool."""


def first_user(pool: Any) -> tuple[str, str]:
    """Name and password of a user who is in all groups; made if there is none. A password that was changed is told."""
    user = pool._get_user(FIRST_USER)
    if user is None:
        user = pool.backend.admin_create_user(
            pool.id, FIRST_USER, "SUPPRESS", None, [{"Name": "email_verified", "Value": "true"}]
        )
        password = f"Local-{secrets.token_hex(4)}-1"
        pool.backend.admin_set_user_password(pool.id, user.username, password, True)
        for group in list(pool.groups):
            pool.backend.admin_add_user_to_group(pool.id, group, user.username)
    return FIRST_USER, str(user.password)
