"""How people ask whether a claim holds: what may hold, put together with how it is said to."""

from __future__ import annotations

_AN_OBJECT = "the|a|an|my|our|your|his|her|its|their"
"""Whoever holds or adds something up speaks of no claim."""
_HOLDS = (
    f"hold|stand up !{_AN_OBJECT}",
    f"add|stack up !{_AN_OBJECT}|to|against|with",
    f"check|pan out !{_AN_OBJECT}",
    "hold|hang water|together",
)
_WHAT_HOLDS = (
    "do|does|did|would|could|can|will ..2 that|this|it [all|really|even|still] [all|really]",
    "do|does|did|would what|everything ..4",
    "do|does|did|would|could|can|will ..4 @idea ..8",
    "do|does|did|would|could|can|will ..6 @telling ..5",
    "do|does|did|would|could|can|will ..2 * being ..5",
)
_SOMEONE = "someone|somebody|anyone|anybody"

HOLDING = "\n".join(f"{what} {holds}" for what in _WHAT_HOLDS for holds in _HOLDS)
"""Phrases that ask whether an account or an idea is coherent: each verb with its own particles."""

# What happens if somebody does something is a question about rules; what if somebody did it is one about the story.
SUPPOSING = f"""
& what if !a|an|i|we|you|my|our|your|two|three|several|{_SOMEONE}
& what if {_SOMEONE} else|was|were|had|@acted
& what if {_SOMEONE} ..3 !@passive * was|were|had|@acted
& what if a|an|two|three|several ..1 @stranger ..1 was|were|had|@acted
& what if a|an|two|three|several ..3 !@passive * @deed
"""
"""Phrases that suppose something of the story."""
