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
        privacy|cookie|cookies|refund|cancellation|cancelation|return|retention|usage|moderation|security|data @document
        credit|debit|gift|bank card|cards|transfer
        payment|billing|subscription method|methods|option|options|plan|plans|cycle|question|address|details|information
        free trial|tier|plan|version
        money back
        @plan [or|and|vs|versus] [@plan] plan|plans|tier|tiers|version|account|licence|license|membership
        @plan and|or|vs|versus @plan
        @plan @business
        @business settings|options|portal
        what is included|free $
        i|we ..1 upload|uploaded
        data retention|protection|processing|privacy|residency|deletion
        student|volume|educational|education|academic|nonprofit|group discount|discounts|pricing|price|licence|license
        acceptable|fair|permitted use
        commercially
        commercial use
        copyright policy|notice|infringement
        of|on|over the answers|answer|output|outputs
        promo|promotion|voucher|coupon|discount|gift code|codes|card|cards
        auto renew|renewal
        renew|renews|renewed automatically
        uploads|questions|queries|seats|users included|allowed|available
        email|confirmation|verification|activation email|mail|link
        opening|business|support hours
        unused|remaining|leftover|extra credits|tokens|quota|minutes
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
        contact|reach|email you|support|billing|sales|customer
        log|sign|logging|signing in|up|out $|to|with|using
        two factor
        create|open|register|make a|an|my|new account
        one|same|single account $
        log out
        @cheapest plan|tier|subscription
        available|current|your|all plans|tiers|subscriptions
        which|what plan|tier|subscription ..3 i|we|you
        next|last|monthly|yearly|first payment|invoice|bill|charge
        @business for students|teams|schools|teachers|companies|groups|nonprofits
        am|are i|we under contract
        overcharged|unsubscribed
        support available|open|reachable
        rules|rule ..2 for|on|about sharing|using|publishing|uploading|posting
        delete|close|deactivate|upgrade|cancel ..1 account|accounts|subscription
        """,
    ),
    said(
        "cag",
        STRONG,
        "names a matter of business and nothing else",
        """
        ^ @business $
        ^ * @business $
        ^ @business and|or @business
        ^ @business list|page|info|information|overview|failed|declined|deletion|expired|overdue|pending|missing $
        """,
    ),
    said(
        "cag",
        STRONG,
        "asks what the service does with data or money",
        """
        do|does|will|can|would|are|is|have|may you|cicada|we ..3 @treat ..4 @data|@business|@account
        @data|@business|@account ..2 do|does|will|can|would|are|did you|cicada ..1 @treat
        @data|@business|@account|charge ..4 do you
        my|our ..2 @data|@account ..4 private|secure|safe|confidential|@treated
        who|can|anyone|anybody ..4 see|read|access|view my|our
        may|can|could|should i|we ..3 publish|use|share|reuse|sell|quote|cite ..2 answers|answer|output|results|content
        limit|limits|cap on uploads|questions|queries|messages|files|requests|@business
        uptime
        you accept|offer|charge|sell|refund|comply|retain|encrypt|invoice|bill
        who|can|anyone|anybody ..4 see|read|access|view what i|we
        what i|we upload|type|submit|ask
        used|use ..2 for|to training|train|ads|advertising
        opt|opting out|in of|$
        are|is your servers|server|company|office|headquarters
        do|does|can|will you train|profile|spy|listen|record
        you ..1 do with my|our
        questions|requests|queries|uploads|messages per day|week|month|hour|user
        is it legal|allowed|permitted|okay|ok to ..1 upload|share|publish|use|post|sell
        third|3rd party|parties
        content|data|text|texts|files|script|scripts|anything i|we upload|uploaded|submit|provide|send|enter
        """,
    ),
    said(
        "cag",
        STRONG,
        "asks how long things are kept, or what becomes of them",
        """
        how long ..3 you|cicada ..1 @treat
        if|when|after|once|before|unless i|we ..2 cancel|unsubscribe|quit|downgrade
        if|when|after|once|before|unless i|we ..2 close|delete|leave|stop ..2 account|subscription|plan|paying|service
        """,
    ),
    said(
        "cag",
        STRONG,
        "asks what it costs, or how to leave",
        """
        how much ..3 it|this|cicada|you|plan|subscription|licence|license|service|upgrade cost|costs|charge|$
        how much ..3 month|year|user|seat $
        how much ..2 @plan|@business cost|costs|$
        how much ..2 @plan|@business ..3 cost|costs
        what ..3 it|this|cicada|you cost|costs|charge
        how|can|could|do|may|should|must|will|would i|we ..2 @leave
        i|we ..2 @leave ..2 my|your|@plan|@account|@business
        ^ @leave ..2 my|the|@plan|@account|$
        what|how ..3 upgrade|renewal|seat|premium|pro|enterprise cost|costs
        @plan|plan ..1 include|includes|cover|covers|offer|offers
        included in|with ..2 @plan|plan
        is|are there ..3 fee|fees|discount|discounts|refund|refunds|trial|quota
        age restriction|limit|requirement
        i|we|it|this|cicada ..5 for free
        free of charge
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
    said("cag", -FAIR, "speaks of the past", "did !you|i|my|we|our\n @asking ..2 was|were !i|we|my|our|you"),
    said("cag", -WEAK, "asks who or whose", "^ who|whom|whose"),
    said("cag", -FAIR, "names a part of the text", "@unit @number\n in ..2 @unit"),
    seen("cag", -WEAK, "names somebody", Fact.NAMES_SOMEBODY),
    said(
        "cag",
        STRONG,
        "speaks of billing, subscriptions or privacy in another language",
        """
        abo|abonnement|kündigen|kündigung|rückerstattung|datenschutz|zahlungsmethoden
        remboursement|remboursé|résilier|abonnements|tarif|tarifs|confidentialité
        suscripción|reembolso|precios|privacidad|facturación
        abbonamento|rimborso|prezzi
        meine|ma|mes|mi|mis rechnung|rechnungen|facture|factures|factura|facturas|daten|données|datos
        退款
        订阅
        返金
        解約
        料金
        """,
    ),
)
