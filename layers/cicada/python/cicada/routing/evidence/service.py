"""``cag``: questions about the service itself: billing, prices, plans, accounts, privacy, rules.

Their words live in stories too (a *policy*, a *bill*, a *plan*), so what tells them apart is who takes part: the
asker and the service here; names, third persons and the past there.
"""

from __future__ import annotations

from cicada.routing.evidence.table import FAIR, STRONG, WEAK, said, seen
from cicada.routing.reading import Fact

ROWS = (
    said(
        "cag",
        STRONG,
        "speaks of billing, subscriptions or terms of service",
        """
        @service
        terms of|and|& service|use|conditions
        privacy|cookie|cookies|refund|cancellation|cancelation|return|retention|usage|use|moderation|security|data policy|policies|statement|notice
        credit|debit|gift|bank card|cards|transfer
        payment|billing|subscription method|methods|option|options|plan|plans|cycle|question|address|details|information
        free trial|tier|plan|version
        money back
        @plan [or] plan|plans|tier|tiers|version|account|licence|license|membership
        data retention|protection|processing|privacy|residency|deletion
        student|volume|educational|education|academic|nonprofit|group discount|discounts|pricing|price|rate|licence|license
        commercially|commercial use
        rate|usage limit|limits
        customer|technical support|service
        """,
    ),
    said(
        "cag",
        STRONG,
        "speaks of their account, or asks for the service's rules",
        """
        my|our ..2 @account
        your ..2 @business|@data
        you have ..4 @business
        do|does|is|are there|you ..4 @business policy|policies
        policy|policies|guidelines|rule|rules on|regarding|concerning
        the|any|a policy|policies for|about
        i|we ..4 charged|billed|refunded|invoiced
        charged|billed me|us
        contact|reach|email|call you|support|billing|sales|customer
        log|sign|logging|signing in|up|out $|to|with|using
        two factor
        delete|close|deactivate|upgrade|cancel ..1 account|accounts|subscription
        """,
    ),
    said("cag", STRONG, "names a matter of business and nothing else", "^ @business $\n ^ * @business $\n ^ @business and|or|& @business"),
    said(
        "cag",
        STRONG,
        "asks what the service does with data or money",
        """
        do|does|will|can|would|are|is|have|may you|cicada|we ..3 @treat ..4 @data|@business|@account
        @data|@business|@account ..2 do|does|will|can|would|are|did you|cicada ..1 @treat
        @data|@business|@account|charge ..4 do you
        my|our ..2 @data|@account ..4 private|secure|safe|stored|used|shared|kept|sold|encrypted|deleted|training|trained|confidential|train|read|seen
        who|can|anyone|anybody ..4 see|read|access|view my|our
        used|use ..2 for|to training|train|ads|advertising
        third|3rd party|parties
        how long ..3 you|cicada ..1 @treat
        """,
    ),
    said(
        "cag",
        STRONG,
        "asks what it costs, or how to leave",
        """
        how much ..3 it|this|cicada|you|plan|subscription|licence|license|service|month|year|user|seat|upgrade cost|costs|charge|$
        how much ..2 @plan|@business ..3 cost|costs|$
        what ..3 it|this|cicada|you cost|costs|charge
        how|can|could|do|may|should|must|will|would i|we ..2 @leave
        i|we ..2 @leave ..2 my|the|your|@plan
        ^ @leave ..2 my|the|@plan|@account|$
        per month|year|user|seat
        is cicada|it|this|there ..1 free $|to|of|for
        need|have|must to|i pay
        """,
    ),
    said("cag", FAIR, "asks for something of their account", "i|we ..5 @business"),
    said("cag", WEAK, "mentions rules, prices or an account", "@business"),
    said("cag", WEAK, "mentions several matters of business", "@business ..5 @business"),
    said(
        "cag",
        -STRONG,
        "means a term, a price or a plan of the story",
        """
        insurance|life|foreign|trade|military|economic policy|policies
        bank account|accounts
        account of
        on|by|of|into all|no|any account|accounts
        in charge
        @person|who|whose ..1 @business
        @business @person|@fact_asked
        's ..1 plan|price|fee|terms|policy|account|bill|charge
        """,
    ),
    said("cag", -WEAK, "speaks of people of the story", "@person"),
    said("cag", -WEAK, "speaks of the past", "did !you|i|my|we|our"),
    said("cag", -WEAK, "asks who or whose", "^ who|whom|whose"),
    said("cag", -FAIR, "names a part of the text", "@unit @number\n in ..2 @unit"),
    seen("cag", -WEAK, "names somebody", Fact.NAMES_SOMEBODY),
)
