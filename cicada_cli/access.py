"""The rules of access: who may read which collections."""

from __future__ import annotations

from pydantic import ValidationError

from cicada.rights import EVERYTHING, AccessRules, ConfiguredAccess, Readable
from cicada_cli.deployment import Deployment
from cicada_cli.exits import UsageError
from cicada_cli.index import store_of


def rules_of(deployment: Deployment) -> AccessRules:
    """The current rules of a deployment.

    Raises:
        UsageError: the setting `access` is invalid.
        IndexUnavailable, IndexCorrupt: the rules of the index cannot be read.
    """
    from cicada.index.access_rules import StoredAccessRules

    try:
        configured = ConfiguredAccess.model_validate_json(deployment.access)
    except ValidationError as error:
        raise UsageError(f"invalid access settings: {error.errors()[0]['msg']}") from None
    return StoredAccessRules(store_of(deployment), configured).rules()


def readable_by(deployment: Deployment, groups: tuple[str, ...] | None) -> Readable:
    """What members of these groups may read; everything for None, because the caller reads the bucket itself.

    Raises as :func:`rules_of`.
    """
    return EVERYTHING if groups is None else rules_of(deployment).readable(groups)
