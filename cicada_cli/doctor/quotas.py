"""Quotas of the account: concurrent executions, and API Gateway's logging role."""

from __future__ import annotations

from collections.abc import Iterable

from cicada_cli.doctor.calls import Calls
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.doctor.settings import Described

MUST_STAY_UNRESERVED = 100
"""Concurrent executions that Lambda keeps for functions without a reservation."""
SMALL_LIMIT = 100
"""Below it, a handful of people who ask at once are throttled; a new account has 10."""
QUOTA = 'ask for more: Service Quotas, AWS Lambda, "Concurrent executions" (L-B99A9384)'


def check_concurrency(calls: Calls, settings: Described, region: str, *, deployed: bool) -> Iterable[Finding]:
    """Whether Lambda's quota allows the configured reservation, and enough answers at a time."""
    report = Reporter("concurrency", region)
    found = calls("lambda", "GetAccountSettings")["AccountLimit"]
    limit, unreserved = int(found["ConcurrentExecutions"]), int(found["UnreservedConcurrentExecutions"])
    reserved = {"limits.answerConcurrency": settings.answer_concurrency, "http.concurrency": settings.http_concurrency}
    asked = {name: number for name, number in reserved.items() if number}
    if settings.answer_concurrency == 0:
        yield report.warning("limits.answerConcurrency is 0: no question is answered", "set it to null, or above 0")
    if asked and unreserved - sum(asked.values()) < MUST_STAY_UNRESERVED:
        spare = max(0, unreserved - MUST_STAY_UNRESERVED)
        names = " and ".join(asked)
        message = (
            f"{' and '.join(f'{name} is {number}' for name, number in asked.items())}, but the account can reserve "
            f"{spare} more of its {limit}: {MUST_STAY_UNRESERVED} must stay unreserved"
        )
        if deployed:
            yield report.warning(f"{message}. The reservation of this deployment is not counted", QUOTA)
        else:
            yield report.problem(message, f"set {names} to null or at most {spare} in all, or {QUOTA}")
    elif limit < SMALL_LIMIT:
        yield report.warning(f"the account can run {limit} functions at a time, over all its functions", QUOTA)
    else:
        yield report.ok(f"{limit} functions at a time, {unreserved} unreserved")


def check_api_logs(calls: Calls, settings: Described, prefix: str, region: str) -> Iterable[Finding]:
    """Whether API Gateway has a logging role or gets one, and whether that replaces another one."""
    report = Reporter("api-logs", region)
    role = str(calls("apigateway", "GetAccount").get("cloudwatchRoleArn") or "")
    if not settings.create_api_logging_role:
        if role:
            yield report.ok(f"API Gateway writes logs as {role}")
        else:
            yield report.problem(
                "API Gateway has no role to write logs with in this Region, so its stage cannot be created",
                "set createApiLoggingRole to true",
            )
    elif role and f"/{prefix}-Gateway-" not in role:
        yield report.warning(
            f"API Gateway writes logs as {role}; the deployment replaces it with its own role, for the whole "
            "account and Region",
            "set createApiLoggingRole to false to keep it",
        )
    else:
        yield report.ok(
            f"API Gateway writes logs as {role}" if role else "the deployment creates API Gateway's logging role"
        )
