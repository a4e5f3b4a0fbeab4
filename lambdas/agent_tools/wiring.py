"""What the action-group function is made of: the one place that chooses implementations."""

from __future__ import annotations

import time
from collections.abc import Callable

import boto3

from cicada.agents.classic.function import ActionFunction
from cicada.agents.tools import tools_for
from cicada.delivery.dynamodb import STORE_CONFIG, DynamoDbLog
from cicada.delivery.record import RequestKey
from cicada.integrators.settings import SearchSettings
from cicada.integrators.wiring import access_of, index_reader, search_of
from cicada.profiles.dynamodb import PROFILES_CONFIG, DynamoDbProfiles
from cicada.profiles.service import ProfileService
from cicada.settings import ProfileSettings


class AgentToolsSettings(SearchSettings, ProfileSettings):
    """The function's."""


def build(settings: AgentToolsSettings, *, on_admitted: Callable[[RequestKey], None]) -> ActionFunction:
    """The function, with the tools of both agents.

    Args:
        settings: the function's.
        on_admitted: told whose request a call is made for.
    """
    retriever, _ = search_of(settings, index_reader(settings))
    profiles = DynamoDbProfiles(boto3.client("dynamodb", config=PROFILES_CONFIG), settings.requests_table)
    profile_service = ProfileService(profiles, limits=settings.profile_limits)
    return ActionFunction(
        DynamoDbLog(boto3.client("dynamodb", config=STORE_CONFIG), settings.requests_table),
        [*tools_for("profile", profile_service, retriever), *tools_for("theory", profile_service, retriever)],
        access=access_of(settings),
        now_s=time.time,
        on_admitted=on_admitted,
    )
