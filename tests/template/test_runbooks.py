"""The runbooks: a page for each alarm, and nothing on a page that does not exist.

What stands in backticks on a page is the name of something: a saved query or a column of one that the page names, a
metric, a code, a setting, a function, a strategy, a resource, a check of ``cicada doctor``, an output, or a command
that is typed. Words that are none of these are written without.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

import pytest
from botocore import xform_name
from botocore.session import Session
from pydantic import BaseModel

from cicada import metrics
from cicada.attempts.chain import FALLS_TO, WORKER_LOSSES
from cicada.breakers.dependencies import CACHE, INDEX, agent_breaker, embedder_breaker, model_breaker
from cicada.errors import CicadaError
from cicada.usage.limits import LimitName
from cicada_cli.main import build_parser
from stacks.alarms import runbook
from stacks.queries import CATALOGUE
from stacks.settings import Settings
from tests.template.templates import FUNCTIONS, ROOT, STACKS, Synthesis

RUNBOOKS = ROOT / "docs" / "runbooks"
PAGES = {page.name: page.read_text(encoding="utf-8") for page in RUNBOOKS.glob("*.md") if page.name != "README.md"}
HEADINGS = ["Symptom", "Query", "Causes", "Mend", "How to know that it is over"]

WORDS = {"$connect", "$disconnect", "$default", "collection.yaml", "false", "https", "null", "stackPrefix"}
"""Plain words, and parts of names, that may stand in backticks too."""
CODES_OF_WORKFLOWS = {*WORKER_LOSSES, "capacity", "upload_unreadable"}
"""Codes that are no error's class: of workers that end before they can report, and of uploads."""
PLACEHOLDERS = {
    "REQUEST_ID": str(uuid.UUID(int=0)),
    "QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/queue",
    "VERSION": "000001-5988accaffc910e1",
}
"""What stands for the words in capitals; for others the word itself."""

_FENCED = re.compile(r"^ *```\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="session")
def alarms(full: Synthesis) -> frozenset[str]:
    """The names of the alarms that are deployed, without the prefix."""
    return frozenset(
        one.properties["AlarmName"].removeprefix(f"{full.prefix}-") for one in full.resources("AWS::CloudWatch::Alarm")
    )


def test_every_alarm_has_a_page_and_every_page_an_alarm(alarms: frozenset[str]) -> None:
    assert set(PAGES) == {runbook(name) for name in alarms}
    for name in alarms:
        assert PAGES[runbook(name)].startswith(f"# {name}\n")


def test_the_list_of_runbooks_is_whole() -> None:
    listed = re.findall(r"^\| \[(\w+)\]\((.+?)\) \| .+ \|$", (RUNBOOKS / "README.md").read_text(), re.MULTILINE)
    assert sorted(page for _, page in listed) == sorted(PAGES)
    assert all(runbook(name) == page for name, page in listed)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_has_its_parts(page: str) -> None:
    text = PAGES[page]
    assert re.findall(r"^#+ (.+)$", text, re.MULTILINE)[1:] == HEADINGS
    query, causes = (text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] for heading in ("Query", "Causes"))
    assert {query.name for query in CATALOGUE}.intersection(re.findall(r"`([^`]+)`", query))
    assert re.findall(r"^(\d+)\. ", causes, re.MULTILINE)[:2] == ["1", "2"], "in the order of their likelihood"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_names_only_what_exists(page: str, known: frozenset[str]) -> None:
    text = PAGES[page]
    columns = {
        word
        for query in CATALOGUE
        if f"`{query.name}`" in text
        for word in re.findall(r"[@a-z][a-zA-Z_.0-9]*", query.text)
    }
    named = re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))
    unknown = [name for name in named if name not in known | columns and not is_command(name)]
    assert unknown == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_has_only_commands_that_can_be_typed(page: str, names: frozenset[str]) -> None:
    text = PAGES[page]
    lines = [line.strip() for block in _FENCED.findall(text) for line in block.splitlines()]
    for line in [*lines, *filter(is_command, re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)))]:
        assert can_be_typed(line), line
        for name in re.findall(r"\bCicada-[\w-]+", line):
            assert name.replace("Cicada-", "<prefix>-") in names, line


def test_what_does_not_exist_is_found(known: frozenset[str]) -> None:
    assert not known & {"Why answers fail", "QuestionsAsked", "worker_gone", "limits.answers", "AnswersLate", "reply"}
    for line in ("cicada breaker", "cicada index compact --all", "make undeploy", "aws events enable --name x"):
        assert not can_be_typed(line)
    assert not can_be_typed("aws sqs purge-queue --queue QUEUE_URL")


# --- what exists ---


@pytest.fixture(scope="session")
def known(full: Synthesis, alarms: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    """The names of all that a page may speak of."""
    outputs = (name for stack in full.stacks for name in full.template(stack).get("Outputs", {}))
    breakers = (model_breaker(""), embedder_breaker(""), agent_breaker(""), INDEX, CACHE)
    return frozenset(
        {query.name for query in CATALOGUE}
        | {metric.name for metric in metrics.CATALOGUE}
        | set(metrics_of_aws(full))
        | {kind.code for kind in kinds(CicadaError)}
        | CODES_OF_WORKFLOWS
        | set(settings_of(Settings))
        | set(get_args(LimitName))
        | set(FUNCTIONS)
        | set(FALLS_TO)
        | alarms
        | names
        | set(outputs)
        | set(breakers)
        | checks_of_doctor()
        | WORDS
    )


@pytest.fixture(scope="session")
def names(full: Synthesis) -> frozenset[str]:
    """The names that resources and stacks have, with ``<prefix>`` in the place of the deployment's."""
    given = {
        value
        for one in full.resources()
        for key, value in one.properties.items()
        if key in ("Name", "FunctionName", "QueueName", "StateMachineName") and isinstance(value, str)
    }
    own = {name.replace(f"{full.prefix}-", "<prefix>-") for name in given if name.startswith(f"{full.prefix}-")}
    return frozenset(own | {f"<prefix>-{stack}" for stack in STACKS})


def test_codes_that_are_no_errors_are_codes() -> None:
    library = ROOT / "layers" / "cicada" / "python" / "cicada"
    sources = "".join(path.read_text(encoding="utf-8") for path in library.rglob("*.py"))
    assert all(f'"{code}"' in sources for code in CODES_OF_WORKFLOWS)


def kinds(of: type[CicadaError]) -> Iterator[type[CicadaError]]:
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


def settings_of(group: type[BaseModel], within: str = "") -> Iterator[str]:
    """The settings, as they are written in ``cdk.json``, and their groups."""
    for name, field in group.model_fields.items():
        path = f"{within}{field.alias or name}"
        yield path
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from settings_of(field.annotation, f"{path}.")


def metrics_of_aws(full: Synthesis) -> Iterator[str]:
    """The names of the metrics that the alarms watch."""
    for one in full.resources("AWS::CloudWatch::Alarm"):
        if "MetricName" in one.properties:
            yield one.properties["MetricName"]
        for part in one.properties.get("Metrics", ()):
            if "MetricStat" in part:
                yield part["MetricStat"]["Metric"]["MetricName"]


def checks_of_doctor() -> set[str]:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("\n### `cicada doctor`\n")[2]
    return set(re.findall(r"^\| `([a-z-]+)` \|", page.partition("\n### ")[0], re.MULTILINE))


# --- commands ---


def is_command(text: str) -> bool:
    return text.startswith(("cicada ", "make ", "aws "))


def can_be_typed(line: str) -> bool:
    """Whether a command, with its placeholders filled in, has only words that it takes."""
    program, *words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line)]
    match program:
        case "cicada":
            return parses(build_parser(), words)
        case "make":
            targets = re.findall(r"^([a-z]+):.* ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            return words[0] in targets and all(word.startswith("ARGS=") for word in words[1:])
        case "aws":
            service, operation, *options = words
            return set(options[::2]) <= options_of_aws(service, operation)
        case _:
            return False


def parses(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    with contextlib.suppress(SystemExit):
        parser.parse_args(words)
        return True
    return False


@cache
def options_of_aws(service: str, operation: str) -> frozenset[str]:
    """The options of a command of the AWS CLI, which are the operation's members; none where there is no such one."""
    model = session().get_service_model(service)
    named = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in named:
        return frozenset()
    shape: Any = model.operation_model(named[operation]).input_shape
    return frozenset(f"--{xform_name(member, '-')}" for member in (shape.members if shape else ()))


@cache
def session() -> Session:
    return Session()
