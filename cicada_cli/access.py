"""Who may read which collections, as the deployment's settings and its index say."""

from __future__ import annotations

from pydantic import ValidationError

from cicada.rights import EVERYTHING, AccessRules, ConfiguredAccess, Readable
from cicada_cli.deployment import Deployment
from cicada_cli.exits import UsageError
from cicada_cli.index import store_of


def rules_of(deployment: Deployment) -> AccessRules:
    """The rules of this moment.

    Raises:
        UsageError: what is given as the deployment's settings cannot be read.
        IndexUnavailable, IndexCorrupt: the rules of the index cannot be read.
    """
    from cicada.index.access_rules import StoredAccessRules

    try:
        configured = ConfiguredAccess.model_validate_json(deployment.access)
    except ValidationError as error:
        raise UsageError(f"the settings of access cannot be read: {error.errors()[0]['msg']}") from None
    return StoredAccessRules(store_of(deployment), configured).rules()


def readable_by(deployment: Deployment, groups: tuple[str, ...] | None) -> Readable:
    """What members of some groups may read; everything for None: who calls reads the bucket itself.

    Raises as :func:`rules_of`.
    """
    return EVERYTHING if groups is None else rules_of(deployment).readable(groups)
