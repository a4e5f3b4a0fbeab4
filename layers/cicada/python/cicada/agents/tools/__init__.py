"""The tools of the profile agent and the theory agent, over the desk of profiles and a retriever.

Each acts as the connected user alone: the owner is the actor's subject, and nothing that a model gives names another.
"""

from __future__ import annotations

from typing import Any

from cicada.agents.instructions import AgentKind
from cicada.agents.ports import Tool
from cicada.agents.tools.evidence import EvidenceJudge, GatherEvidenceTool
from cicada.agents.tools.profiles import (
    CreateProfileTool,
    DeleteProfileTool,
    ListProfilesTool,
    ProfileHistoryTool,
    RemoveFieldsTool,
    ShowProfileTool,
    UndoChangeTool,
    UpdateProfileTool,
)
from cicada.agents.tools.search import SearchScriptTool
from cicada.agents.tools.theories import (
    GiveVerdictTool,
    ListTheoriesTool,
    RecordVerdictTool,
    RefineTheoryTool,
    StateTheoryTool,
)
from cicada.profiles.service import ProfileService
from cicada.retrieval.ports import Retriever

__all__ = ["tools_for"]


def tools_for(
    kind: AgentKind, profile_service: ProfileService, retriever: Retriever, judge: EvidenceJudge | None = None
) -> list[Tool[Any]]:
    """The tools of an agent. They keep nothing from call to call: one list serves any number of runs.

    Args:
        judge: sorts evidence by side; without it evidence stays unsorted.
    """
    search, show = SearchScriptTool(profile_service, retriever), ShowProfileTool(profile_service, retriever)
    history, undo = ProfileHistoryTool(profile_service, retriever), UndoChangeTool(profile_service, retriever)
    delete = DeleteProfileTool(profile_service, retriever)
    if kind == "profile":
        return [
            search,
            ListProfilesTool(profile_service, retriever),
            show,
            CreateProfileTool(profile_service, retriever),
            UpdateProfileTool(profile_service, retriever),
            RemoveFieldsTool(profile_service, retriever),
            undo,
            delete,
            history,
        ]
    return [
        search,
        ListTheoriesTool(profile_service, retriever),
        show,
        StateTheoryTool(profile_service, retriever),
        RefineTheoryTool(profile_service, retriever),
        GatherEvidenceTool(profile_service, retriever, judge),
        GiveVerdictTool(profile_service, retriever),
        RecordVerdictTool(profile_service, retriever),
        undo,
        delete,
        history,
    ]
