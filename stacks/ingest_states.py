"""The ingest workflow's states: plain data, without the CDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PLAN_TIMEOUT_S = 300
DOCUMENT_TIMEOUT_S = 900
COMMIT_TIMEOUT_S = 900
"""Lambda's longest: a batch is given back before it, a commit is one publication."""
STATE_MARGIN_S = 10
EXECUTION_LIMIT_S = 24 * 3600
"""A run that takes longer is given up: what was prepared is kept, and the next run finds it."""

WAIT, PLAN, NEEDED, TO_PREPARE = "GatherUploads", "Plan", "AnythingToDo", "AnythingToPrepare"
PREPARE, FINISH, DONE, NOTHING, FAILED = "PrepareDocuments", "Finish", "Loaded", "NothingToDo", "IngestFailed"
LEFT, PAUSE = "AnythingLeft", "LookAgain"
BATCH, ONE_BY_ONE, ONE, LOST = "PrepareBatch", "OneByOne", "PrepareOne", "NotPrepared"

_LAMBDA_FAULTS = (
    "Lambda.TooManyRequestsException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
)


def _retry(errors: Sequence[str], *, first_s: int, attempts: int, most_s: int) -> dict[str, Any]:
    return {
        "ErrorEquals": list(errors),
        "IntervalSeconds": first_s,
        "BackoffRate": 2,
        "MaxAttempts": attempts,
        "MaxDelaySeconds": most_s,
        "JitterStrategy": "FULL",
    }


# Services that were busy, and workers that were lost, are worth waiting for: nothing that was prepared is done again.
_PATIENT = _retry(["States.ALL"], first_s=5, attempts=4, most_s=120)
_FOR_A_WORKER = _retry(_LAMBDA_FAULTS, first_s=5, attempts=12, most_s=120)
_OUT_OF_TIME = _retry(["OutOfTime"], first_s=1, attempts=20, most_s=5)
"""A batch that was given back because its time ran out goes on where it stopped."""

BATCH_FIELDS = ("collection", "run", "round", "number", "items", "sectionsKey")
"""Of a batch, as a plan writes it and the function that prepares it takes it."""


def definition(
    *, partition: str, bucket: str, plan_arn: str, document_arn: str, commit_arn: str, concurrency: int
) -> dict[str, Any]:
    """The workflow in the Amazon States Language (JSONPath), for a Standard state machine.

    Its input is ``{"collection", "run", "startAt"}``. Documents go from function to function by their keys: the plan
    writes the batches into the bucket, a Distributed Map reads them there, and each batch leaves its outcome there.

    Args:
        partition: of the resources' ARNs, ``aws`` almost everywhere.
        bucket: the name of the bucket.
        plan_arn: the function that plans.
        document_arn: the function that prepares a batch.
        commit_arn: the function that finishes.
        concurrency: batches that are prepared at once.
    """

    def invoke(arn: str, payload: dict[str, Any], timeout_s: int, *retries: dict[str, Any]) -> dict[str, Any]:
        return {
            "Type": "Task",
            "Resource": f"arn:{partition}:states:::lambda:invoke",
            "Parameters": {"FunctionName": arn, "Payload": payload},
            "OutputPath": "$.Payload",
            "TimeoutSeconds": timeout_s + STATE_MARGIN_S,
            "Retry": list(retries),
        }

    batch = {f"{name}.$": f"$.{name}" for name in BATCH_FIELDS}
    prepare = (DOCUMENT_TIMEOUT_S, _OUT_OF_TIME, _FOR_A_WORKER, _PATIENT)
    failed = {"ErrorEquals": ["States.ALL"], "Next": FAILED}
    run = {"collection.$": "$.collection", "run.$": "$.run"}
    return {
        "Comment": "Loads what was uploaded to a collection's folder",
        "StartAt": WAIT,
        "TimeoutSeconds": EXECUTION_LIMIT_S,
        "States": {
            WAIT: {"Type": "Wait", "TimestampPath": "$.startAt", "Next": PLAN},
            PLAN: {**invoke(plan_arn, run, PLAN_TIMEOUT_S, _PATIENT), "Catch": [failed], "Next": NEEDED},
            NEEDED: {
                "Type": "Choice",
                "Choices": [{"Variable": "$.needed", "BooleanEquals": False, "Next": NOTHING}],
                "Default": TO_PREPARE,
            },
            TO_PREPARE: {
                "Type": "Choice",
                "Choices": [{"Variable": "$.batches", "NumericEquals": 0, "Next": FINISH}],
                "Default": PREPARE,
            },
            PREPARE: {
                "Type": "Map",
                "Label": "Documents",
                "ItemReader": {
                    "Resource": f"arn:{partition}:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "JSON"},
                    "Parameters": {"Bucket": bucket, "Key.$": "$.batchesKey"},
                },
                "MaxConcurrency": concurrency,
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                    "StartAt": BATCH,
                    "States": {
                        BATCH: {
                            **invoke(document_arn, batch, *prepare),
                            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": ONE_BY_ONE}],
                            "End": True,
                        },
                        # One document that brings its function down must not take its batch with it.
                        ONE_BY_ONE: {
                            "Type": "Map",
                            "ItemsPath": "$.items",
                            "MaxConcurrency": 1,
                            "ItemSelector": {**batch, "items.$": "States.Array($$.Map.Item.Value)"},
                            "ItemProcessor": {
                                "ProcessorConfig": {"Mode": "INLINE"},
                                "StartAt": ONE,
                                "States": {
                                    ONE: {
                                        **invoke(document_arn, batch, *prepare),
                                        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": LOST}],
                                        "End": True,
                                    },
                                    LOST: {"Type": "Pass", "Result": {}, "End": True},
                                },
                            },
                            "End": True,
                        },
                    },
                },
                # Batches give nothing back. (The CDK leaves a null out, so the result is not dropped by its path.)
                "ResultSelector": {},
                "ResultPath": "$.prepared",
                # What could not be prepared is in the report: it keeps nothing else from being loaded.
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": FINISH}],
                "Next": FINISH,
            },
            FINISH: {
                **invoke(commit_arn, run, COMMIT_TIMEOUT_S, _FOR_A_WORKER, _PATIENT),
                "Catch": [failed],
                "Next": LEFT,
            },
            LEFT: {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.more", "BooleanEquals": True, "Next": FINISH},
                    {"Variable": "$.again", "BooleanEquals": True, "Next": PAUSE},
                ],
                "Default": DONE,
            },
            # Somebody has uploaded something meanwhile, or something is worth another try.
            PAUSE: {"Type": "Wait", "SecondsPath": "$.waitS", "Next": PLAN},
            DONE: {"Type": "Succeed"},
            NOTHING: {"Type": "Succeed"},
            FAILED: {"Type": "Fail", "ErrorPath": "$.Error", "CausePath": "$.Cause"},
        },
    }
