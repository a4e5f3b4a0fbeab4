"""``profile_agent``: what the asker keeps about characters and other things, to be read or changed."""

from __future__ import annotations

from cicada.routing.evidence.table import DECISIVE, FAIR, STRONG, WEAK, said, seen
from cicada.routing.reading import Fact

ROWS = (
    said(
        "profile_agent",
        DECISIVE,
        "speaks of their own profiles or notes",
        """
        my|our !session ..3 @record
        my|our saved|stored|own @kind
        my|our list|lists|collection of @kind|@record
        saved|stored|bookmarked @kind|@record
        of my|our characters|locations|places|people|persons|npcs|theories|suspects|factions
        """,
    ),
    said(
        "profile_agent",
        STRONG,
        "wants something done with a profile or a note",
        """
        & @manage ..6 @profile
        & @alter ..5 note|notes|entry|entries|bookmark|bookmarks
        & @manage ..4 my @kind
        & @manage ..4 note|notes|entry|entries about|on|for|of
        & add|create|make|save|start a|an|new|the|another [new] @item :|named|called
        & forget|remember ..3 i told|said|wrote|gave|mentioned|saved
        have|has|having [a|any] @profile
        & remove|delete|drop|add ..4 from|to my|our @kind|list
        """,
    ),
    said(
        "profile_agent",
        STRONG,
        "names a profile and nothing else",
        """
        ^ @profile of|on|for|about|:|$
        ^ all|any|every ..1 @record
        ^ * @profile $
        ^ * * @profile $
        ^ * 's @profile $
        ^ new ..1 @record
        ^ new character|location|npc :
        """,
    ),
    said(
        "profile_agent",
        STRONG,
        "dictates something to be kept",
        """
        & @jot @this
        ^ @jot down
        ^ @jot ..1 @this down
        ^ @jot|keep [down] that|:
        ^ keep in mind that
        ^ keep ..1 note|record|track of
        ^ @put @this ..3 to|in|into|under|onto
        ^ make|take|add|leave|write|create|start|attach [me] a|an|another|some|new ..2 note|notes|memo|entry|bookmark
        ^ note to
        ^ do not forget that|:
        ^ do not forget !to|@asking *
        ^ remember|memorize|memorise for me
        ^ remember|note !@asking|me|the|a|this|that * ..2 is|was|has|had|can|will
        ^ mark|tag|flag|label|register|classify|save|list ..5 as
        ^ store|save|keep|take ..2 the following|something|somebody|someone
        ^ memo|reminder :
        """,
    ),
    said(
        "profile_agent",
        STRONG,
        "wants somebody's record changed",
        """
        & @put|@jot|@change ..9 's @record
        & @put|@jot|@change ..8 to|in|into|under|on|onto|from the|this|that|his|her|their|its @record
        & @change ..6 his|her|their|its @profile
        """,
    ),
    said(
        "profile_agent",
        DECISIVE,
        "asks what they have kept",
        """
        theories|hypotheses|characters|locations|npcs|factions do|have|did i [already|still|even] have|keep|hold|$
        theories|hypotheses|characters|locations|npcs|factions have i [already|still|even] kept|got
        do|did i [already|still|even] have|keep [any|a|some|no] [other|more|old] @theory
        have [not] i [already|still|even] [got|kept] [any|a|some|no] [other|more|old] @theory|@record
        do|have i [already|still|even] [have|got] any|some|no [other|more] characters|locations|npcs|factions $|yet
        theories|hypotheses|profiles of mine
        what|anything [has|is|was] [been] changed|new|updated in|on|about|to my|our [old] @theory
        & @manage|tell [me] [all] [of] my|our [own] theories|hypotheses $|,|please
        have i ..3 @kept
        i have [already|previously|ever|so] ..2 @kept
        did i ..2 save|note|write|record|bookmark|store|log|jot|put|add
        i saved|noted|bookmarked|jotted|wrote|recorded|stored
        do|did i [already|still|even] have ..4 @record
        what|anything|something|everything|much|who ..2 i [already|still|even] have|got ..3 on|about|under|regarding
        have i [already|even] got ..2 on|about|for
        what|all|everything i have [got] on|about
        did|have i|we ..1 tell|told you
        on|in|from|to my|our list|lists
        anything|something|everything|is saved|noted|stored|kept about|on|under
        did i ..2 edit|update|change|create|delete|rename ..4 @record
        @record i ..2 @kept
        @record ..2 do|have|did i
        we have ..2 saved|noted|stored
        """,
    ),
    said(
        "profile_agent",
        FAIR,
        "wants something stored, changed or deleted",
        """
        ^ @alter|save|store|add|update|remember|bookmark|forget !up|to|@asking *
        ^ @manage ..3 note|notes|entry|entries|bookmark|bookmarks
        ^ my|our @kind
        ^ notes|note|entry|entries on|about|for|:|$
        @profile ..2 updated|changed|edited|created|deleted|saved
        """,
    ),
    said(
        "profile_agent",
        FAIR,
        "asks what has changed in somebody's profile",
        """
        what|anything [has|is|was] [been] changed|new|updated in|on|about|to ..3 's @profile
        what|anything [has|is|was] [been] changed|new|updated in|on|about|to the @profile of|for|on !a|an|the|his|her *
        """,
    ),
    said("profile_agent", FAIR, "names somebody's profile", "'s @profile\n @profile of|on|for"),
    said("profile_agent", WEAK, "mentions a profile", "@profile"),
    seen("profile_agent", -FAIR, "asks for a fact of the text", Fact.ASKS_A_FACT),
    said(
        "profile_agent",
        -STRONG,
        "speaks of a profile that the story tells of",
        """
        in profile
        police|criminal|psychological|killer|side|dating|wind @profile
        @profile ..6 report|newspaper|drawer|magazine|museum|coin|wall|window
        """,
    ),
    said(
        "profile_agent",
        STRONG,
        "speaks of their own profiles or notes in another language",
        """
        mein|meine|meinem|meiner|meinen ..1 profil|profile|profilen|notiz|notizen|einträge
        mon|ma|mes ..1 profil|profils|notes|fiche|fiches
        mi|mis ..1 perfil|perfiles|notas|apuntes
        il|i|le mio|miei|mie profilo|profili|note
        我的笔记
        我的档案
        私のメモ
        プロフィール
        """,
    ),
)
