"""English words that carry nothing, and words that turn what others say."""

from __future__ import annotations

STOP = frozenset(
    """
    a about actually all along already also am among an and another any are around as at be became because become
    been being
    both but by came can come could did do does doing done down each either else enough even ever every everybody
    everyone everything exactly for from further had has have having he her here hers him himself his how however i
    if in
    indeed into is it its itself just let like made main make makes making many may me might mine more most much must my
    myself neither never no nobody none nor not nothing now of off on once one only onto or other others our ours out
    over
    own per quite rather really same shall she should since so some somebody someone something still such take taken
    takes
    than that the their theirs them themselves then there therefore these they thing things this those though through
    thus to too took toward towards under until up upon us use used using very via was we well were what whatever when
    where whereas whether which while who whole whom whose why will with within without would yet you your yours
    according say says said state states stated tell tells told report reports reported explain explains explained claim
    claims claimed mention mentions mentioned insist insists insisted
    think thinks thought believe believes believed passage text document manual
    need needs needed able way time times possible necessary o'clock oclock clock go goes went gone put able order
    total altogether people person persons number numbers amount kind sort lot lots spend spends spent
    s t d ll re ve m
    """.split()
)
"""Words that a sentence may have without its passage having them. Those that can turn a meaning are read apart."""

INTRODUCING = frozenset(
    """
    add adds added admit admits admitted announce announces announced answer answers answered ask asks asked begin
    begins
    began call calls called continue continues continued cry cries cried exclaim exclaims exclaimed line lines message
    narration narrator note notes noted observe observes observed quote quotes quoted read reads recall recalls recalled
    remark remarks remarked remember remembers remembered reply replies replied respond responds responded shout shouts
    shouted warn warns warned whisper whispers whispered words wonder wonders wondered write writes wrote
    """.split()
)
"""Words that introduce a quotation, besides those that carry nothing anywhere."""

NEGATIONS = frozenset(
    "not no never nobody none nothing neither nor without nowhere cannot hardly scarcely barely refuse refused refuses "
    "refusing deny denies denied unable impossible".split()
)
"""What turns the words after it."""

LEVELS = {
    **dict.fromkeys("all every each everyone everybody everything always both anyone anybody".split(), "all"),
    **dict.fromkeys("most mostly majority".split(), "most"),
    **dict.fromkeys("some several somebody someone sometimes".split(), "some"),
    **dict.fromkeys("few fewer hardly seldom rarely".split(), "few"),
    **dict.fromkeys("none nobody neither never no".split(), "none"),
    "only": "only", "half": "half", "alone": "only",
}  # fmt: skip
NECESSARY = frozenset(
    "must shall need needs needed require requires required mandatory obliged compulsory has_to have_to".split()
)
POSSIBLE = frozenset(
    "may can could might allowed permitted able optional recommended advisable voluntary free_to".split()
)
SPECULATIVE = frozenset("might perhaps maybe possibly probably likely suspect suspects doubt doubts".split())
FIRST_PERSON = frozenset("i me we us".split())
FIRST_POSSESSIVE = frozenset("my our mine ours".split())
AFTER_COMMA = frozenset(
    "and but or so because while although though which who whose when whereas then not if unless until he she it they "
    "we i you nor except".split()
)
"""What begins a clause after a comma."""
ALONE = frozenset("but that because while although though whereas unless when which who".split())
"""What begins a clause wherever it stands."""
AFTER_AND = frozenset(
    "i he she it they we you nobody somebody everyone there cannot can can't could does doesn't do don't did didn't "
    "is isn't was wasn't are aren't were weren't has hasn't have haven't had will won't would must may never not "
    "then".split()
)
"""What begins a clause after *and*."""
BE = frozenset("is are was were be been being get gets got".split())
REFUSALS = frozenset("refuse refuses refused refusing deny denies denied".split())
"""Words that deny what follows, and say something themselves."""
FAILS = frozenset("fail fails failed failing".split())
"""Words that deny what follows before *to* alone."""
UNLIKE = frozenset("united undertaken unable understated unveiled unloaded unfolded unpacked unlocked".split())
"""Words that begin like a denied one."""
NOT_NAMES = frozenset("I A The An It He She They We You My His Her Our Their This That These Those There".split())
"""Words that are written with a capital without being names."""
DOUBTFUL = frozenset(
    """
    avoid avoids avoided avoiding rule rules ruled limits off-limits forbid forbids forbidden prohibit prohibits
    prohibited
    ban bans banned prevent prevents prevented lack lacks lacked lacking miss misses missing missed lose loses lost
    exclude excludes excluded refrain abstain except unless only rather instead too less fewer few least
    stop stops stopped cease ceases ceased free absent absence missing empty spare spared escape escaped escapes
    survive survived survives save saved free impossible unable refuse refuses refused
    fail fails failed unlike until till hardly scarcely barely seldom rarely otherwise
    abandon abandoned halt halted suspend suspended waive waived exempt cancel cancelled zero
    """.split()
)
"""Words that deny by their meaning, or only under a condition: where one clause alone has one, a denial is in doubt."""
STATING = frozenset(
    "more later less fewer earlier sooner greater higher matter doubt until before unless but other than".split()
)
"""After *no* or *not* these state something: *no later than*, *not until*."""
