"""Scenes in which answers suffer: the model, the table, the index, the workflow, the workers."""

from __future__ import annotations

from tests.drills.deployment import GENERATION_MODEL, Deployment
from tests.drills.scene import NotShown, Scene, expect, some
from tests.drills.steps import QUESTIONS, answered_by_rag, ends_with
from tests.e2e.reading import SIMPLE

# --- the model ---


def _throttle(deployed: Deployment) -> None:
    deployed.cloud.arm("bedrock.throttle", model=GENERATION_MODEL)


def _ask_while_throttled(deployed: Deployment) -> None:
    for question in QUESTIONS:
        asked = deployed.ask(question)
        expect(asked.end.get("answeredBy") == "direct", f"an answer of the strategy direct; seen: {asked.saw}")
        if "dependency_down" in asked.saw:
            return
    raise NotShown(f"the breaker of the model did not open within {len(QUESTIONS)} questions")


def _raise_quota(deployed: Deployment) -> None:
    deployed.cloud.disarm("bedrock.throttle")
    deployed.did(f"aws service-quotas request-service-quota-increase …  (tokens a minute of {GENERATION_MODEL})")
    deployed.cicada("breakers", "list")
    deployed.cicada("breakers", "close", f"model:{GENERATION_MODEL}")


MODEL_THROTTLED = Scene(
    name="model-throttled",
    broken="Bedrock throttles the model that writes the answers.",
    how=f"The stand-in of Bedrock answers every call of `{GENERATION_MODEL}` with `ThrottlingException`.",
    alarm="BreakersOpened",
    also=("AnswersFellBack", "ModelNearQuota"),
    query="Failed model calls",
    expected="the model with the fault `model_busy`",
    shows=some(model_id=GENERATION_MODEL, fault="model_busy"),
    mend="Raise the quota. The breaker closes by itself; `cicada breakers close` does not wait for that.",
    over="`rag` answers again, and nothing fails before.",
    breaks=_throttle,
    traffic=_ask_while_throttled,
    mends=_raise_quota,
    is_over=answered_by_rag,
)


def _refuse(deployed: Deployment) -> None:
    deployed.cloud.arm("bedrock.error", exception="AccessDeniedException", status=403)


def _ask_without_models(deployed: Deployment) -> None:
    for question in QUESTIONS[:3]:
        ends_with(deployed.ask(question), "all_strategies_failed")


def _allow(deployed: Deployment) -> None:
    deployed.cloud.disarm("bedrock.error")
    deployed.did("access to the models is granted again, in the console of Bedrock")


MODEL_AWAY = Scene(
    name="model-away",
    broken="No text model can be called any more.",
    how="The stand-in of Bedrock refuses every call of a text model with `AccessDeniedException`.",
    alarm="AnswersMissing",
    query="Requests without an answer",
    expected="requests with the code `all_strategies_failed`, and `model_refused` among what was tried",
    shows=some(code="all_strategies_failed", failed__0="model_refused"),
    mend="Restore the account's access to the models.",
    over="`rag` answers again.",
    breaks=_refuse,
    traffic=_ask_without_models,
    mends=_allow,
    is_over=answered_by_rag,
)


def _slow(deployed: Deployment) -> None:
    deployed.cloud.arm("bedrock.slow", model=GENERATION_MODEL, first_ms=4000)


def _ask_slowly(deployed: Deployment) -> None:
    for question in QUESTIONS[:2]:
        asked = deployed.ask(question)
        expect(asked.end.get("type") == "complete", f"an answer, late; seen: {asked.saw}")


def _speed_up(deployed: Deployment) -> None:
    deployed.cloud.disarm("bedrock.slow")
    deployed.did("models.generationModelId names a faster model; make deploy")


FIRST_TEXT_SLOW = Scene(
    name="first-text-slow",
    broken="The model takes four seconds before its first word.",
    how=f"The stand-in of Bedrock waits before each answer of `{GENERATION_MODEL}`.",
    alarm="FirstTextSlow",
    query="Slow first texts",
    expected="answers of that model whose `first_chunk_ms` is above the objective",
    shows=lambda rows: any(float(row.get("first_chunk_ms", 0)) > 4000 for row in rows),
    mend="Choose a faster model, or wait for the model's service to recover.",
    over="`rag` answers within the objective.",
    breaks=_slow,
    traffic=_ask_slowly,
    mends=_speed_up,
    is_over=answered_by_rag,
)


# --- what answers are made of ---


def _throttle_table(deployed: Deployment) -> None:
    deployed.cloud.arm("dynamodb.throttle", operation="UpdateItem", share=0.7, seed=7)


def _ask_of_a_throttled_table(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE)
    expect(asked.end.get("type") == "complete", f"an answer, late; seen: {asked.saw}")


def _raise_write_units(deployed: Deployment) -> None:
    deployed.cloud.disarm("dynamodb.throttle")
    deployed.did("limits.tableWriteUnits is raised; make deploy")


TABLE_THROTTLED = Scene(
    name="table-throttled",
    broken="The table refuses writes: more come than its limit allows.",
    how="DynamoDB answers seven of ten `UpdateItem` with `ProvisionedThroughputExceededException`.",
    alarm="TableThrottled",
    query="Faults by dependency",
    expected="refused writes of the log, with DynamoDB's words",
    shows=some(dependency="log", reason="ProvisionedThroughputExceeded"),
    mend="Raise `limits.tableWriteUnits`, and deploy.",
    over="`rag` answers again.",
    breaks=_throttle_table,
    traffic=_ask_of_a_throttled_table,
    mends=_raise_write_units,
    is_over=answered_by_rag,
)


def _damage_a_segment(deployed: Deployment) -> None:
    s3, bucket = deployed.client("s3"), deployed.cloud.outputs["IndexBucket"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="index/")
    objects = [found for page in pages for found in page["Contents"] if "/segments/" in found["Key"]]
    largest = max(objects, key=lambda found: found["Size"])["Key"]
    data = s3.get_object(Bucket=bucket, Key=largest)["Body"].read()
    half = len(data) // 2
    s3.put_object(Bucket=bucket, Key=largest, Body=data[:half] + bytes(len(data) - half))
    deployed.restart("Answer")  # workers that have the index in memory would go on answering from it


def _ask_of_a_damaged_index(deployed: Deployment) -> None:
    for question in QUESTIONS[:3]:
        asked = deployed.ask(question)
        expect("index_corrupt" in asked.saw or "dependency_down" in asked.saw, f"`index_corrupt`; seen: {asked.saw}")


def _load_again(deployed: Deployment) -> None:
    deployed.cicada("index", "check", status=1)
    deployed.cicada("load", "samples/script", "--collection", "script", "--verify")
    deployed.cicada("index", "check")


INDEX_DAMAGED = Scene(
    name="index-damaged",
    broken="An object of the index is damaged.",
    how="The second half of the largest segment is overwritten with zeros; workers that have it in memory are ended.",
    alarm="AnswersFellBack",
    also=("BreakersOpened",),
    query="Why answers fell back",
    expected="`rag` failing by `index_corrupt`",
    shows=some(failed__0="index_corrupt"),
    mend="`cicada index check` names what is damaged; load that collection again with `--verify`.",
    over="`cicada index check` finds nothing, and `rag` answers again.",
    breaks=_damage_a_segment,
    traffic=_ask_of_a_damaged_index,
    mends=_load_again,
    is_over=answered_by_rag,
)


# --- who works on answers ---


def _refuse_starts(deployed: Deployment) -> None:
    deployed.cloud.arm("stepfunctions.throttle", operation="StartExecution")


def _ask_without_workflow(deployed: Deployment) -> None:
    for question in QUESTIONS[:3]:
        ends_with(deployed.ask(question), "workflow_unavailable")


def _start_again(deployed: Deployment) -> None:
    deployed.cloud.disarm("stepfunctions.throttle")
    deployed.did("aws service-quotas request-service-quota-increase …  (StartExecution throttle token refill rate)")


WORKFLOW_REFUSED = Scene(
    name="workflow-refused",
    broken="Step Functions starts no workflow.",
    how="The stand-in of Step Functions answers every `StartExecution` with `ThrottlingException`.",
    alarm="AnswersMissing",
    query="Requests without an answer",
    expected="requests with the code `workflow_unavailable`",
    shows=some(code="workflow_unavailable"),
    mend="Raise the quota of the refused call, or wait for the service. Clients may ask again.",
    over="`rag` answers again.",
    breaks=_refuse_starts,
    traffic=_ask_without_workflow,
    mends=_start_again,
    is_over=answered_by_rag,
)


def _kill(deployed: Deployment) -> None:
    deployed.cloud.arm("bedrock.slow", delay_ms=300)
    deployed.cloud.arm("functions.kill", function=deployed.function("Answer"), after_ms=1500, times=1)


def _ask_while_workers_die(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE)
    expect("worker_died" in asked.saw, f"a fallback for `worker_died`; seen: {asked.saw}")
    deployed.cloud.disarm()
    deployed.cloud.arm("stepfunctions.lost_start", times=1)
    deployed.ask(QUESTIONS[1], meanwhile=deployed.age_request)


def _mend_workers(deployed: Deployment) -> None:
    deployed.cicada("trace", deployed.kept["request_id"])
    deployed.did("answerMemoryMb is raised where `Functions that failed` shows memory; make deploy")


WORKERS_LOST = Scene(
    name="workers-lost",
    broken="A worker is killed in the middle of its answer, and a workflow is lost with its worker.",
    how="The answer function's process gets SIGKILL. Then Step Functions acknowledges a start that never runs; the "
    "request is made a minute older in the table, instead of a minute's wait.",
    alarm="WorkersLost",
    query="Lost workers",
    expected="the request that the sweep has started again",
    shows=some(action="restart"),
    mend="Nothing: the first is answered by the next strategy, the second is started again by the sweep. "
    "`cicada trace` says what was lost.",
    over="Both have their answers, and no further request is recovered.",
    breaks=_kill,
    traffic=_ask_while_workers_die,
    mends=_mend_workers,
    is_over=answered_by_rag,
)


def _leave_no_place(deployed: Deployment) -> None:
    deployed.cloud.arm("functions.throttle", function=deployed.function("Answer"))


def _ask_without_place(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE)
    expect("capacity" in asked.saw, f"an end by `capacity`; seen: {asked.saw}")


def _raise_concurrency(deployed: Deployment) -> None:
    deployed.cloud.disarm("functions.throttle")
    deployed.did("aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 …")


NO_CONCURRENCY = Scene(
    name="no-concurrency",
    broken="The account has no place left to run the answer function.",
    how="The stand-in of Lambda refuses every invocation of it with `TooManyRequestsException`.",
    alarm="ConcurrencyNearQuota",
    query="Requests without an answer",
    expected="requests whose strategies failed by `capacity`",
    shows=some(failed__0="capacity"),
    mend="Raise the account's quota, or `limits.answerConcurrency`.",
    over="`rag` answers again.",
    breaks=_leave_no_place,
    traffic=_ask_without_place,
    mends=_raise_concurrency,
    is_over=answered_by_rag,
)
