"""Whether this account can call each configured model from this Region."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cicada.models.embedding_models import embedding_model
from cicada.models.model_ids import read_endpoint_id, read_model_id
from cicada_cli.doctor.calls import CallFailed, Calls, Failure
from cicada_cli.doctor.explaining import explained
from cicada_cli.doctor.findings import Finding, Reporter, Status
from cicada_cli.text import clipped

GUIDE = "docs/models.md (Access to models) has the steps for an administrator"
EMBEDDING_SETTING = "models.embeddingModelId"
ANTHROPIC = "anthropic."
RE_RANKING = ("amazon.rerank-", "cohere.rerank-")
"""Models without the Converse API."""
ADMINISTRATOR = (
    "have somebody with aws-marketplace:Subscribe and aws-marketplace:ViewSubscriptions call it once: " + GUIDE
)


def by_model(models: Mapping[str, str]) -> dict[str, list[str]]:
    """The settings that name each model."""
    found: dict[str, list[str]] = {}
    for setting, model_id in models.items():
        found.setdefault(model_id, []).append(setting)
    return found


def check_model(
    calls: Calls,
    model_id: str,
    settings: Sequence[str],
    *,
    region: str,
    dimensions: int,
    allowed: Sequence[str],
) -> Iterable[Finding]:
    """Whether a model can be called, cheapest checks first. It is called only if no check failed.

    The first call of a third-party model subscribes the account to it, so a model without a subscription is not called.

    Args:
        calls: the port.
        model_id: a model's id, an inference profile's, or ``<endpoint>/<model>``.
        settings: those that name it.
        region: the deployment's.
        dimensions: of the embedding, where it makes any.
        allowed: Regions in which the functions may call the model through this profile; none where they are not known.
    """
    report = Reporter("model", model_id)
    if read_endpoint_id(model_id) is not None:
        return [report.unknown("a model of your own endpoint, which is not called here")]
    told = [*_profile(calls, report, model_id, region, allowed), *_access(calls, report, model_id)]
    if any(finding.status is Status.PROBLEM for finding in told):
        return told
    try:
        said = _call(calls, model_id, settings, dimensions)
    except CallFailed as failed:
        return [*told, _refused(report, failed)]
    return [*told, report.ok(f"{said} ({', '.join(settings)})")]


# --- the profile ---


def _profile(calls: Calls, report: Reporter, model_id: str, region: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Whether the inference profile exists, and routes only to Regions that the functions may call."""
    geography = read_model_id(model_id).profile
    if geography is None:
        return
    try:
        found = calls("bedrock", "GetInferenceProfile", inferenceProfileIdentifier=model_id)
    except CallFailed as failed:
        if failed.code in ("ResourceNotFoundException", "ValidationException"):
            yield report.problem(
                f"unknown inference profile in {region}",
                "choose one of `aws bedrock list-inference-profiles`, or a model id",
            )
        else:
            yield explained(report, failed)
        return
    regions = {model["modelArn"].split(":")[3] for model in found.get("models", ())}
    if allowed and (more := sorted(regions - set(allowed) - {""})):
        yield report.warning(
            f"the profile also routes to {', '.join(more)}, where the functions may not call the model",
            f"add {json.dumps(more)} to models.destinationRegions",
        )


# --- access ---


def _access(calls: Calls, report: Reporter, model_id: str) -> Iterator[Finding]:
    """Subscription, authorisation and forms, without a call of the model."""
    name = read_model_id(model_id)
    try:
        found = calls("bedrock", "GetFoundationModelAvailability", modelId=name.base)
    except CallFailed as failed:
        if failed.code in ("ResourceNotFoundException", "ValidationException"):
            yield report.problem(
                "unknown model in Amazon Bedrock", "choose one of `aws bedrock list-foundation-models`"
            )
            return
        yield explained(report, failed)
    else:
        yield from _availability(report, found, through_profile=name.profile is not None)
    if name.base.startswith(ANTHROPIC):
        yield from _use_case(calls, report)


def _availability(report: Reporter, found: Mapping[str, object], *, through_profile: bool) -> Iterator[Finding]:
    agreement = found.get("agreementAvailability")
    status = agreement.get("status") if isinstance(agreement, Mapping) else None
    if status == "ERROR" and isinstance(agreement, Mapping):
        yield report.problem(
            f"the subscription failed: {clipped(str(agreement.get('errorMessage', '')), 200)}", ADMINISTRATOR
        )
    elif status == "NOT_AVAILABLE" or found.get("entitlementAvailability") == "NOT_AVAILABLE":
        yield report.problem("this account has not subscribed to the model", ADMINISTRATOR)
    elif status == "PENDING":
        yield report.warning("the subscription is in progress", "wait up to 15 minutes")
    if found.get("authorizationStatus") == "NOT_AUTHORIZED":
        yield report.problem("this account is not authorised to use the model", GUIDE)
    if found.get("regionAvailability") == "NOT_AVAILABLE" and not through_profile:
        yield report.problem(
            "the model is not available in this Region", "choose an inference profile, another model, or another Region"
        )


def _use_case(calls: Calls, report: Reporter) -> Iterator[Finding]:
    try:
        calls("bedrock", "GetUseCaseForModelAccess")
    except CallFailed as failed:
        if failed.code == "ResourceNotFoundException":
            yield report.problem("Anthropic's use-case form has not been submitted for this account", GUIDE)
        else:
            yield explained(report, failed)


# --- a call ---


def _call(calls: Calls, model_id: str, settings: Sequence[str], dimensions: int) -> str:
    """Call the model for one token or one vector; raises CallFailed."""
    base = read_model_id(model_id).base
    if base.startswith(RE_RANKING):
        return "available; re-ranking models are not called here"
    if EMBEDDING_SETTING in settings:
        return _embed(calls, model_id, dimensions)
    answer = calls(
        "bedrock-runtime",
        "Converse",
        modelId=model_id,
        messages=[{"role": "user", "content": [{"text": "Hi"}]}],
        inferenceConfig={"maxTokens": 1},
    )
    usage = answer["usage"]
    return (
        f"answers: {usage['inputTokens']} tokens in, {usage['outputTokens']} out, {answer['metrics']['latencyMs']} ms"
    )


def _embed(calls: Calls, model_id: str, dimensions: int) -> str:
    model = embedding_model(model_id, dimensions)
    body = json.dumps(model.body(["Hi"], dimensions, "query"))
    answer = calls("bedrock-runtime", "InvokeModel", modelId=model_id, body=body)
    try:
        length = len(model.vectors(json.loads(answer["body"].read()))[0])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CallFailed(Failure.REFUSED, "bedrock-runtime", "InvokeModel", "Unreadable", repr(error)) from error
    if length != dimensions:
        message = f"returns vectors of {length} dimensions; models.embeddingDimensions is {dimensions}"
        raise CallFailed(Failure.REFUSED, "bedrock-runtime", "InvokeModel", "Dimensions", message)
    return f"returns vectors of {length} dimensions"


_REFUSALS = {
    "use case": ("Anthropic's use-case form has not been submitted for this account", GUIDE),
    "marketplace": ("this account has not subscribed to the model", ADMINISTRATOR),
    "on-demand throughput": (
        "the model can only be called through an inference profile",
        "use the profile instead: us.…, eu.…, apac.… or global.…",
    ),
    "legacy": ("the model is a legacy model, closed to new accounts", "choose a newer model"),
}
"""Words in Bedrock's refusals, with their meaning and what to do."""
_NOT_TO_BE_CALLED = ("ValidationException", "ResourceNotFoundException", "Dimensions", "Unreadable")


def _refused(report: Reporter, failed: CallFailed) -> Finding:
    """A refused call as a finding."""
    said, shown = str(failed).lower(), clipped(str(failed), 200)
    for words, (message, mend) in _REFUSALS.items():
        if words in said:
            return report.problem(f"{message} ({failed.code}: {shown})", mend)
    if failed.code in _NOT_TO_BE_CALLED:
        mend = "choose a model that this Region offers and that the setting can use"
        return report.problem(f"the call was refused ({failed.code}: {shown})", mend)
    if failed.failure is Failure.DENIED and "is not authorized to perform" not in said:
        return report.problem(f"no access to the model ({shown})", GUIDE)
    if failed.failure is Failure.THROTTLED:
        return report.warning(
            "throttled at the first call: the account's quota for this model may be very small",
            "request a higher quota in Service Quotas, Amazon Bedrock",
        )
    return explained(report, failed)
