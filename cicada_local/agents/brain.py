"""What a model with the agents' tools would do next, by rules: the local cloud's stand-in for one.

It plays its part well enough for everything around it to be seen at work: it looks at what was called already, calls
the tool that the user's words ask for, with the ids and versions that it was shown, and answers at the end from the
results, with their numbers. What a result says is quoted or left out, never obeyed. The same conversation always gets
the same next step.
"""

from __future__ import annotations

from collections.abc import Sequence

from cicada_local.agents.brain_memory import Memory
from cicada_local.agents.brain_profiles import PROFILE_DEEDS
from cicada_local.agents.brain_situation import Situation, ask
from cicada_local.agents.brain_theories import THEORY_DEEDS
from cicada_local.agents.turns import BrainTool, Step, Turn

_DEEDS = {**PROFILE_DEEDS, **THEORY_DEEDS, "ask": ask}


def next_step(system: str, tools: Sequence[BrainTool], turns: Sequence[Turn]) -> Step:  # noqa: ARG001 - see below
    """What the model does next.

    Args:
        system: the instructions; what they ask for, the rules do anyway.
        tools: those that are offered. One that is not known is never called.
        turns: the conversation. What was called since the user last asked counts, whoever called it.

    Returns:
        Calls, or an answer that is never empty.
    """
    situation = Situation(tools, Memory(turns))
    return _DEEDS[situation.wish.deed](situation)
