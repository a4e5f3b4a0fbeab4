"""``theory_agent``: the asker claims something, or wants to know what speaks for and against a claim."""

from __future__ import annotations

from cicada.routing.evidence.holding import HOLDING, SUPPOSING
from cicada.routing.evidence.table import DECISIVE, FAIR, STRONG, WEAK, said, seen
from cicada.routing.reading import Fact

ROWS = (
    said(
        "theory_agent",
        STRONG,
        "puts forward a theory of their own",
        """
        my|our !saved|stored ..1 @theory
        this|new|another|following|crazy|wild|working|pet|alternative ..1 @theory
        my|our argument|statement
        my|our ..2 @idea|money|feeling|take|conclusion|thinking|bet|view is|:|that|was
        i have an|some|one idea
        i have ..3 @theory|suspicion|feeling|inkling|impression
        & @theory [time] :|-|,|$
        & @theory [is] that
        ^ assume|suppose|assuming|supposing|imagine [that] *
        ^ say that *
        ^ maybe|perhaps|surely|obviously|clearly !you|we|i|it|this|that|@asking *
        """,
    ),
    said(
        "theory_agent",
        DECISIVE,
        "rewords a theory of their own",
        """
        & refine|reword|rephrase|revise|sharpen|amend|change|update|correct|edit|narrow my|our @theory
        """,
    ),
    said(
        "theory_agent",
        STRONG,
        "makes a claim in the first person",
        """
        & i ..3 @claim !i|so|we|it|you|not|of|about|:|,|$|@asking
        & i ..3 @claim it is|was|must|could|has
        & pretty|quite|fairly|almost|very sure|certain that
        & i am ..3 @certain !i|about|if|@asking
        here is what i ..1 @claim
        & i would ..1 say|argue|bet|guess
        & i ..1 say|insist|hold !@asking|it|so|, *
        & i ..3 think|believe|guess i ..1 know|found|figured|solved|understand|cracked
        & i feel like|that
        the way i see|read|understand it|this|that
        it is ..1 obvious|clear|evident|certain|likely|plain that
        here is a|my ..1 thought|idea|take|theory
        as i see it
        hear me out
        i am ..1 leaning|inclined
        of the opinion|view|belief
        i ..2 figured|worked it|this|everything out
        & in my opinion|view
        my gut|guts|instinct says|tells
        something tells me
        & fight me
        & calling it
        hot take
        unpopular|controversial opinion
        shake the feeling|suspicion
        i have|see ..2 reason|reasons to|for
        we think|believe|suspect
        & it seems|looks|appears [to] [me] [that|like|as]
        i can not help thinking|feeling|suspecting|wondering
        """,
    ),
    said(
        "theory_agent",
        STRONG,
        "wants a claim tested",
        """
        & refute|debunk|disprove|falsify|rebut|corroborate|substantiate *
        & @test :
        & confirm|prove|verify or|and
        true or false
        agree or disagree
        is it just|only me
        tell me|us why|how|where i am wrong|mistaken|right
        @safe to assume|say|conclude|suppose|think|claim|believe
        be sure|certain that|if|about
        thoughts|opinion|feedback|views ..1 on|about ..2 @idea
        build|make ..3 case for|against
        rule out
        & convince|persuade me that|of
        do|would|can you ..1 agree|think|believe|buy
        is|are|was|were my|our|this|that ..1 @idea
        is|are|be|can the @idea that|of
        & validate|confirm|verify|challenge|test|check [out] this|that|whether|if|:
        & @weigh ..3 @theory
        & @weigh this|that|following :
        & @weigh ..2 this|that|the|my|our ..1 @idea
        & prove|convince me|it|that|him|her|us ..1 wrong|right|otherwise|true|false
        & prove|confirm that|:|whether
        & prove * ..3 is|was|did|are|were|has|had
        poke|find|pick|any|some ..1 holes|flaws|weaknesses
        tear|pick|take|shoot ..4 apart|down
        & fact check
        change my mind
        & play devil
        & argue for|against|that
        tell me [if|whether] ..2 i am ..1 right|wrong|crazy|onto|mistaken
        am i ..2 right|wrong|crazy|onto|mistaken|correct|overthinking
        what do you think of|about ..2 @idea
        """,
    ),
    said(
        "theory_agent",
        STRONG,
        "asks what speaks for or against a claim",
        """
        is|are|was there ..5 @backing !@container|'s
        is|are|was there ..1 @any ..6 @uphold
        have|do|does|can|could we|i|you ..2 @any ..2 @backing
        reason|reasons|grounds to|for believe|suspect|think|doubt|assume
        support|basis|grounds|backing for the|that|this|my|such
        everything|all|much|evidence ..3 points|point|pointing to|at|towards
        do|does this|that|it ..1 fit|fits|square|agree|tally with|in
        do|does not that|this mean|imply|prove|show|suggest
        do|does the|your @text_source agree
        @text_source ..1 supported|confirmed|contradicted
        is|was that|this|it supported|confirmed|contradicted|disproved
        any|some|enough|more ..2 @evidence for|against|that|suggesting|showing|supporting
        ^ any|some ..2 @backing
        @any to ..1 @uphold
        what|which ..1 @backing ..1 is|are there
        @backing ..1 is|are there for|against|that
        @backing ..2 pro|contra
        what do|would you ..1 think|say|reckon $|to|of|about
        what|which @backing do|have we|i|you
        what is|are the ..1 @backing !@container|'s
        what @backing that|for|against
        what|which ..1 @backing|passages|quotes|scenes ..4 @uphold
        what [else|in|would|could] ..3 @uphold ..2 @idea|this|that|it|my
        what @uphold [the] @idea|that|my|this
        what|anything @uphold ..5 being|having
        & @evidence for|against|that|of
        find|list|give|show|collect|gather|cite|quote|get ..5 @evidence for|against|that|showing|proving|supporting
        @evidence|case|argument|arguments|passages for and|or against
        for and|or against ..1 the @idea
        @speak for|against ..6 being|as|@idea
        what|which|anything|anyone ..6 @speak for|against|to|towards|at
        count|counts|say|says|stands against
        in favour|favor of
        anything|something|anyone|someone that|which|who ..2 @uphold
        counterevidence|counterargument|counterarguments
        case for|against the|a|my|him|her|them
        which|what|do|does|did ..5 @uphold the|this|that|my|our ..1 @idea
        rule|rules|bear|bears ..3 out
        do|does|did|could|would|can|will ..1 @text_source ..4 @uphold
        do|does|did|could|would|can|will ..1 @text_source ..4 @speak for|against|to|towards|at
        @text_source ..1 back|backs ..4 up
        @uphold ..2 the|this|that|my @idea
        @idea ..2 @uphold [by]
        """,
    ),
    said(
        "theory_agent",
        STRONG,
        "asks whether a claim holds",
        HOLDING
        + SUPPOSING
        + """
        do|does|would this|that|it|my|the ..4 make [any] sense
        do|does|would ..2 * being ..5 make [any] sense
        how ..1 @likely is|are|would
        is|be it ..2 @likely that|for
        ^ is it ..2 @likely !to
        is|be it consistent with
        is not it|that ..1 suspicious|odd|strange|obvious|clear|likely|weird|possible|@likely
        @likely that
        what are|is the odds|chances|chance|probability|likelihood
        could|can|might it ..1 be [true] that
        @idea ..4 @likely|contradicted|supported|refuted
        """,
    ),
    said("theory_agent", FAIR, "speaks of a theory", "@theory that|about|is\n @theory ..2 :\n @theory $"),
    said(
        "theory_agent",
        FAIR,
        "concludes what must have been",
        "must have ..1 been|known|done|had|seen|killed|taken|lied",
    ),
    said(
        "theory_agent",
        FAIR,
        "asks which passages bear on an idea",
        "which|what * ..2 @uphold the|this|that|my|our ..1 @idea",
    ),
    said(
        "theory_agent",
        WEAK,
        "names a culprit",
        "@culprit is|was|has|must|could|can|might\n be the|a @culprit",
    ),
    said("theory_agent", WEAK, "mentions a theory", "@theory"),
    said("theory_agent", FAIR, "speaks of evidence for or against something", "@backing for|against|that"),
    said(
        "theory_agent",
        FAIR,
        "wonders whether something could be",
        "^ could|might !i|you|we|this ..4 be|have|explain|mean|cause",
    ),
    said(
        "theory_agent",
        WEAK,
        "supposes a hidden truth",
        """
        secretly|faked|framed|staged|impostor|imposter
        all along
        same|one person|man|woman|hand|people
        in disguise
        behind it|everything all|$
        really|actually|definitely|certainly|obviously|clearly|undoubtedly is|was|are|were|dead|alive|a|an|the
        is|was|are|were really|actually|definitely|certainly|obviously|clearly|undoubtedly
        has|have|had to be *
        must be|have *
        ^ is not *
        """,
    ),
    said(
        "theory_agent",
        -STRONG,
        "wants a theory fetched or kept, not tested",
        """
        & @alter|save|list|show|open|store|view|load ..3 @theory
        do|did i [already|still|even] have|keep [any|a|some|no] [other|more|old] @theory
        have [not] i [already|still|even] [got|kept] [any|a|some|no] [other|more|old] @theory
        what|anything [has|is|was] [been] changed|new|updated in|on|about|to my|our [old] @theory
        which of my|our theories|hypotheses
        """,
    ),
    said(
        "theory_agent",
        -STRONG,
        "speaks of a theory that the story tells of",
        """
        's ..1 @theory
        his|her|their ..1 @theory
        music|game|string|number|literary|colour|color|political|probability @theory
        """,
    ),
    said(
        "theory_agent",
        -FAIR,
        "asks what the text tells",
        "@text_source ..1 say|says|mention|mentions|tell|tells @fact_asked",
    ),
    seen("theory_agent", FAIR, "asserts something of the story", Fact.ASSERTS),
    said(
        "theory_agent",
        FAIR,
        "asserts something and wants to hear that it is so",
        """
        , right|correct|no|yes|true $
        , is|was|are|were|did|do|does|has|have|had|could|can|would not he|she|it|they|him
        ; true|right|correct $
        """,
    ),
    said("theory_agent", FAIR, "wonders whether something is so", "& i ..1 wonder|wondered|wondering if|whether"),
    seen("theory_agent", -FAIR, "asks for a fact of the text", Fact.ASKS_A_FACT),
    said(
        "theory_agent",
        STRONG,
        "puts forward or tests a claim in another language",
        """
        meine theorie|hypothese|vermutung
        ich glaube|denke|vermute|behaupte dass|der|die|das|,
        ma théorie|hypothèse
        je pense|crois|soupçonne|parie que|qu
        mi teoría|hipótesis
        creo|pienso|sospecho|apuesto que
        la mia teoria|ipotesi
        beweise|belege|preuves|pruebas für|gegen|que|pour|contre|de
        widerlege|réfute|réfutez|refuta
        我认为
        我觉得
        我的理论
        我的假设
        と思う
        と思います
        私の説
        証拠
        证据
        """,
    ),
)
