"""The tools of the profile agent and the theory agent.

Each acts for the connected user alone: the owner is the actor's subject, never a value from a model.
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
    """The stateless tools of an agent: one list serves any number of runs. Without a judge evidence stays unsorted."""
    on = (profile_service, retriever)
    search, show, undo = SearchScriptTool(*on), ShowProfileTool(*on), UndoChangeTool(*on)
    delete, history = DeleteProfileTool(*on), ProfileHistoryTool(*on)
    if kind == "profile":
        writing: list[Tool[Any]] = [CreateProfileTool(*on), UpdateProfileTool(*on), RemoveFieldsTool(*on)]
        return [search, ListProfilesTool(*on), show, *writing, undo, delete, history]
    theories: list[Tool[Any]] = [StateTheoryTool(*on), RefineTheoryTool(*on), GatherEvidenceTool(*on, judge)]
    verdicts: list[Tool[Any]] = [GiveVerdictTool(*on), RecordVerdictTool(*on)]
    return [search, ListTheoriesTool(*on), show, *theories, *verdicts, undo, delete, history]
