"""Guards: whether two questions that lie near each other ask the same.

An embedding puts *who betrayed Mara* beside *whom did Mara betray*, and episode 3 beside episode 4. So what decides is
what the questions say: their question words, numbers, names, negations, words, and who does what to whom.
"""

from cicada.guards.compare import Difference, difference
from cicada.guards.reading import GuardName

__all__ = ["Difference", "GuardName", "difference"]
