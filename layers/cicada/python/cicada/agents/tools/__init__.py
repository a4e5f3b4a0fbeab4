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
from cicada.profiles.desk import ProfileDesk
from cicada.retrieval.ports import Retriever

__all__ = ["tools_for"]


def tools_for(
    kind: AgentKind, desk: ProfileDesk, retriever: Retriever, judge: EvidenceJudge | None = None
) -> list[Tool[Any]]:
    """The tools of an agent. They keep nothing from call to call: one list serves any number of runs.

    Args:
        judge: sorts evidence by side; without it evidence stays unsorted.
    """
    search, show = SearchScriptTool(desk, retriever), ShowProfileTool(desk, retriever)
    history, undo = ProfileHistoryTool(desk, retriever), UndoChangeTool(desk, retriever)
    delete = DeleteProfileTool(desk, retriever)
    if kind == "profile":
        return [
            search,
            ListProfilesTool(desk, retriever),
            show,
            CreateProfileTool(desk, retriever),
            UpdateProfileTool(desk, retriever),
            RemoveFieldsTool(desk, retriever),
            undo,
            delete,
            history,
        ]
    return [
        search,
        ListTheoriesTool(desk, retriever),
        show,
        StateTheoryTool(desk, retriever),
        RefineTheoryTool(desk, retriever),
        GatherEvidenceTool(desk, retriever, judge),
        GiveVerdictTool(desk, retriever),
        RecordVerdictTool(desk, retriever),
        undo,
        delete,
        history,
    ]
