"""Scenes around answers: sign-in, roles, schedules, the message processor, limits, uploads."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.drills.deployment import Deployment, wait_for
from tests.drills.scene import Scene, expect, some
from tests.drills.steps import QUESTIONS, answered_by_rag, ends_with
from tests.e2e.reading import SIMPLE

SHELF = Path(__file__).parents[2] / "samples" / "shelf"
MANUAL = "keepers-manual.pdf"
COLLECTION, LOST_COLLECTION = "manuals", "lost-manuals"
_QUESTION = "How often is the wick trimmed?"
"""The manual answers it."""
_RUN_S = 60.0
INCOMPLETE = 4
"""The command's status where a document was set aside."""


# --- who may connect ---


def _take_issuer_away(deployed: Deployment) -> None:
    deployed.issuer.is_away = True
    deployed.restart("Authorizer")  # one that has the keys goes on for an hour


def _connect(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE)
    expect(asked.end.get("refused") == 500, f"a connection that is refused with HTTP 500; seen: {asked.saw}")


def _bring_issuer_back(deployed: Deployment) -> None:
    deployed.issuer.is_away = False
    deployed.did("the issuer answers again")


ISSUER_AWAY = Scene(
    name="issuer-away",
    broken="The issuer's keys cannot be fetched, and no authorizer has them yet.",
    how="The issuer answers HTTP 503 to whoever asks for its keys, and the authorizers start anew.",
    alarm="IssuerUnavailable",
    query="Refused connections",
    expected="the address that did not answer, and its HTTP status",
    shows=some(why="503"),
    mend="Bring the issuer back; `why` names the address. Authorizers that have keys use them for an hour.",
    over="Askers connect, and `rag` answers.",
    breaks=_take_issuer_away,
    traffic=_connect,
    mends=_bring_issuer_back,
    is_over=answered_by_rag,
)


# --- roles ---

_WRITE, _POST = "dynamodb:UpdateItem", "execute-api:ManageConnections"


def _take_away(deployed: Deployment, action: str) -> None:
    """Take an action from the role of the answer function."""
    iam, role = deployed.client("iam"), deployed.role("Answer")
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        if action in json.dumps(document):
            whole = {"RoleName": role, "PolicyName": name, "PolicyDocument": json.dumps(document)}
            deployed.kept["policy"] = whole
            deployed.undo(partial(iam.put_role_policy, **whole))
            iam.put_role_policy(**whole | {"PolicyDocument": json.dumps(_without(document, action))})
            return
    raise LookupError(f"no policy of {role} allows {action}")


def _without(document: Mapping[str, Any], action: str) -> dict[str, Any]:
    """A policy without an action."""
    left = []
    for statement in document["Statement"]:
        actions = statement.get("Action", [])
        kept = [one for one in ([actions] if isinstance(actions, str) else actions) if one != action]
        left += [statement | {"Action": kept}] if kept else []
    return {**document, "Statement": left}


def _ask_without_right(deployed: Deployment) -> None:
    for question in QUESTIONS[:3]:
        asked = deployed.ask(question)
        expect(asked.end.get("type") == "error", f"an error; seen: {asked.saw}")


def _give_right_back(deployed: Deployment) -> None:
    kept = deployed.kept["policy"]
    deployed.client("iam").put_role_policy(**kept)
    deployed.did('make deploy ARGS="--revert-drift"', f"the policy {kept['PolicyName']} is as the stack declares it")


ROLE_CHANGED = Scene(
    name="role-changed",
    broken=f"Somebody has taken `{_WRITE}` from the role of the answer function.",
    how="The policy is changed by `PutRolePolicy`; the local cloud holds each function's calls to its role.",
    alarm="AnswersMissing",
    query="Faults by dependency",
    expected="the refused action and the role that lacks it",
    shows=some(reason=_WRITE),
    mend='`make deploy ARGS="--revert-drift"` restores what was changed outside of the stacks.',
    over="`rag` answers again.",
    breaks=partial(_take_away, action=_WRITE),
    traffic=_ask_without_right,
    mends=_give_right_back,
    is_over=answered_by_rag,
)


def _ask_without_posts(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE, patience_s=4)
    expect(not asked.end, f"nothing after `accepted`; seen: {asked.saw}")
    resumed = deployed.resume_until_end(SIMPLE)
    expect(resumed.end.get("type") == "complete", f"the whole answer by a resume; seen: {resumed.saw}")


POSTS_REFUSED = Scene(
    name="posts-refused",
    broken=f"The role of the answer function has lost `{_POST}`.",
    how="`PutRolePolicy`, as before. The asker comes back after four seconds, by a `resume`.",
    alarm="GatewayFailed",
    query="Faults by dependency",
    expected="rejected posts, with the reason",
    shows=some(dependency="connections", reason="not authorized"),
    mend='`make deploy ARGS="--revert-drift"` restores what was changed outside of the stacks.',
    over="`rag` answers again, live.",
    breaks=partial(_take_away, action=_POST),
    traffic=_ask_without_posts,
    mends=_give_right_back,
    is_over=answered_by_rag,
)


# --- schedules ---

SWEEP_RULE = "Cicada-recovery-sweep"


def _disable_sweep(deployed: Deployment) -> None:
    events = deployed.client("events")
    events.disable_rule(Name=SWEEP_RULE)
    deployed.undo(lambda: events.enable_rule(Name=SWEEP_RULE))
    deployed.cloud.arm("stepfunctions.lost_start", times=1)


def _ask_without_sweep(deployed: Deployment) -> None:
    asked = deployed.ask(SIMPLE, meanwhile=deployed.age_request, patience_s=5)
    expect(not asked.end, f"a question that stays without an end; seen: {asked.saw}")


def _enable_sweep(deployed: Deployment) -> None:
    deployed.client("events").enable_rule(Name=SWEEP_RULE)
    deployed.did(f"aws events describe-rule --name {SWEEP_RULE}", '"State": "DISABLED"')
    deployed.did(f"aws events enable-rule --name {SWEEP_RULE}")


def _is_swept(deployed: Deployment) -> None:
    began, swept = time.time() - _RUN_S, {"request_id": deployed.kept["request_id"], "by": "sweep"}

    def is_swept() -> bool:
        return any(swept.items() <= row.items() for row in deployed.saved_query("Lost workers", began))

    expect(wait_for(is_swept, _RUN_S), "the sweep taking up the request")
    seen = deployed.resume_until_end(deployed.asked[0].question)
    expect(seen.end.get("type") == "complete", f"the answer that was missing; seen: {seen.saw}")


SWEEP_SILENT = Scene(
    name="sweep-silent",
    broken="The rule that runs the recovery sweep is disabled, and a request has lost its workflow.",
    how="`DisableRule`; then Step Functions acknowledges a start that never runs, and the request is made a minute "
    "older in the table.",
    alarm="SweepSilent",
    query="Lost workers",
    expected="no row: nobody looks for requests that were lost",
    shows=lambda rows: not rows,
    mend="Enable the rule.",
    over="The request that waited has its answer, without its asker's help.",
    breaks=_disable_sweep,
    traffic=_ask_without_sweep,
    mends=_enable_sweep,
    is_over=_is_swept,
)


def _kill_sweeps(deployed: Deployment) -> None:
    deployed.cloud.arm("functions.kill", function=deployed.function("Sweep"))


def _mend_sweeps(deployed: Deployment) -> None:
    deployed.cloud.disarm("functions.kill")
    deployed.did("the release before is deployed again: git checkout TAG; make deploy")


UPKEEP_FAILED = Scene(
    name="upkeep-failed",
    broken="The recovery sweep dies in each of its runs.",
    how="Its process gets SIGKILL at the beginning of each invocation; its rule goes on invoking it.",
    alarm="UpkeepFailed",
    query="Functions that failed",
    expected="runs of the sweep that ended with `Runtime.ExitError`",
    shows=lambda rows: any("Sweep" in row["@log"] and "ExitError" in row.get("record.errorType", "") for row in rows),
    mend="Deploy the release that worked before.",
    over="Answers were not affected, and sweeps run again.",
    breaks=_kill_sweeps,
    traffic=answered_by_rag,
    mends=_mend_sweeps,
    is_over=answered_by_rag,
)


# --- the message processor ---


def _break_message_processor(deployed: Deployment) -> None:
    deployed.cloud.arm("functions.kill", function=deployed.function("Message"))


def _send_frames(deployed: Deployment) -> None:
    for question in QUESTIONS[:2]:
        asked = deployed.ask(question)
        expect("Internal server error" in asked.saw, f"the gateway's internal server error; seen: {asked.saw}")


def _mend_message_processor(deployed: Deployment) -> None:
    deployed.cloud.disarm("functions.kill")
    deployed.did("the release before is deployed again: git checkout TAG; make deploy")


MESSAGES_FAILED = Scene(
    name="messages-failed",
    broken="The message processor dies on every frame.",
    how="Its process gets SIGKILL at the beginning of each invocation.",
    alarm="MessagesFailed",
    also=("GatewayFailed",),
    query="Functions that failed",
    expected="invocations that ended with `Runtime.ExitError`",
    shows=lambda rows: any("Runtime.ExitError" in json.dumps(row) for row in rows),
    mend="Deploy the release that worked before; the failure's own lines say what the new one lacks.",
    over="`rag` answers again.",
    breaks=_break_message_processor,
    traffic=_send_frames,
    mends=_mend_message_processor,
    is_over=answered_by_rag,
)


# --- clocks ---

_AHEAD_S = -600


def _put_clock_back(deployed: Deployment) -> None:
    deployed.cloud.arm("functions.clock", function=deployed.function("Message"), ahead_s=_AHEAD_S)
    deployed.restart("Message")
    deployed.undo(lambda: deployed.restart("Message"))


def _ask_at_a_wrong_time(deployed: Deployment) -> None:
    for question in QUESTIONS[:3]:
        asked = deployed.ask(question)
        expect(asked.end.get("type") == "error", f"an error; seen: {asked.saw}")


def _replace_environments(deployed: Deployment) -> None:
    deployed.cloud.disarm("functions.clock")
    functions, name = deployed.client("lambda"), deployed.function("Message")
    size = functions.get_function_configuration(FunctionName=name)["MemorySize"]
    functions.update_function_configuration(FunctionName=name, MemorySize=size + 64)
    deployed.undo(partial(functions.update_function_configuration, FunctionName=name, MemorySize=size))
    deployed.did(
        f"aws lambda update-function-configuration --function-name MESSAGE_PROCESSOR --memory-size {size + 64}"
    )


CLOCK_WRONG = Scene(
    name="clock-wrong",
    broken="The clock of the message processor is ten minutes behind: AWS refuses what it signs.",
    how="Its environments start with such a clock. As AWS does, the local cloud refuses calls that were signed more "
    "than five minutes before or after their arrival.",
    alarm="AnswersMissing",
    query="Requests without an answer",
    expected="questions that were not taken, with AWS's words about the time",
    shows=some(why="Signature expired"),
    mend="Any change of the function's configuration gives it new environments. If it comes again: AWS Support.",
    over="`rag` answers again.",
    breaks=_put_clock_back,
    traffic=_ask_at_a_wrong_time,
    mends=_replace_environments,
    is_over=answered_by_rag,
)


# --- limits ---


def _stop_answering(deployed: Deployment) -> None:
    deployed.cicada("limits", "stop")
    deployed.undo(lambda: deployed.cicada("limits", "start"))


def _ask_while_stopped(deployed: Deployment) -> None:
    ends_with(deployed.ask(SIMPLE), "spending_stopped")


def _start_answering(deployed: Deployment) -> None:
    deployed.cicada("limits", "show")
    deployed.cicada("limits", "start")


QUESTIONS_STOPPED = Scene(
    name="questions-stopped",
    broken="An administrator has stopped answering, and gone home.",
    how="`cicada limits stop`.",
    alarm="LimitsReached",
    query="Refused by limits",
    expected="questions that were refused with `spending_stopped`",
    shows=some(code="spending_stopped"),
    mend="`cicada limits show` shows the switch; `cicada limits start` opens it.",
    over="`rag` answers again.",
    breaks=_stop_answering,
    traffic=_ask_while_stopped,
    mends=_start_answering,
    is_over=answered_by_rag,
)


# --- uploads ---


def _upload_poison(deployed: Deployment) -> None:
    deployed.upload(f"{COLLECTION}/{MANUAL}", (SHELF / MANUAL).read_bytes()[:4000])


def _wait_for_run(deployed: Deployment) -> None:
    expect(wait_for(lambda: deployed.alarm_state("DocumentsSetAside") == "ALARM", _RUN_S), "a run that sets it aside")
    ends_with(deployed.ask(_QUESTION, collections=[COLLECTION]), "collection_unknown")


def _upload_again(deployed: Deployment) -> None:
    deployed.cicada("ingest", "report", "--collection", COLLECTION, status=INCOMPLETE)
    deployed.upload(f"{COLLECTION}/{MANUAL}", (SHELF / MANUAL).read_bytes())


def _cites(deployed: Deployment, collection: str) -> None:
    """An answer cites the manual, of this collection."""
    deployed.ask_until(_QUESTION, lambda end: end.get("grounded") is True, collections=[collection], within_s=_RUN_S)


POISON_UPLOAD = Scene(
    name="poison-upload",
    broken="A document is uploaded that cannot be read.",
    how="A PDF that was cut off after 4,000 bytes is put below `incoming/`.",
    alarm="DocumentsSetAside",
    query="Documents set aside",
    expected="the collection, and the document's fault by its code",
    shows=some(collection=COLLECTION, code="document_"),
    mend="`cicada ingest report` names the document and its fault; mend it, and upload it again.",
    over="An answer cites the document.",
    breaks=_upload_poison,
    traffic=_wait_for_run,
    mends=_upload_again,
    is_over=lambda deployed: _cites(deployed, COLLECTION),
)


def _refuse_runs(deployed: Deployment) -> None:
    deployed.cloud.arm("stepfunctions.error", operation="StartExecution")
    deployed.upload(f"{LOST_COLLECTION}/{MANUAL}", (SHELF / MANUAL).read_bytes())


def _wait_for_dead_letter(deployed: Deployment) -> None:
    expect(wait_for(lambda: deployed.dead_letters() > 0, _RUN_S), "a message in the queue of dead letters")
    deployed.cloud.disarm("stepfunctions.error")  # the outage is over, but the upload is not told again
    ends_with(deployed.ask(_QUESTION, collections=[LOST_COLLECTION]), "collection_unknown")


def _load_by_hand(deployed: Deployment) -> None:
    deployed.cicada("ingest", "run", "--collection", LOST_COLLECTION)
    deployed.client("sqs").purge_queue(QueueUrl=deployed.dead_letter_queue())
    deployed.did("aws sqs purge-queue --queue-url QUEUE_URL")


UPLOAD_LOST = Scene(
    name="upload-lost",
    broken="No run can be started for an upload, and its event is given up.",
    how="The stand-in of Step Functions fails every `StartExecution`; the function is tried three times.",
    alarm="DeadLetters",
    query="Failed uploads",
    expected="the error that `ingest_start` failed by",
    shows=some(errorType="Workflow"),
    mend="`cicada ingest run` loads the folder as it is; then the queue is emptied.",
    over="An answer cites the document, and the queue is empty.",
    breaks=_refuse_runs,
    traffic=_wait_for_dead_letter,
    mends=_load_by_hand,
    is_over=lambda deployed: _cites(deployed, LOST_COLLECTION),
)
