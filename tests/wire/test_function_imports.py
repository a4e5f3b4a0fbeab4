"""Each function can be imported with what its layers bring, imports nothing heavier than it needs, and writes metrics
and errors at every ``logLevel``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.import_time import ENVIRONMENT
from cicada.metrics import CATALOGUE
from cicada_local.functions.log_levels import passes
from cicada_local.functions.packages import RUNTIME_MODULES, modules_required
from stacks.http_access import BRINGS
from stacks.settings import Settings

ROOT = Path(__file__).parents[2]
LAYERS = {
    "connection": ("base",),
    "authorizer": ("base", "auth"),
    "message_processor": ("base",),
    "answer": ("base", "search"),
    "agent_tools": ("base", "search"),
    "corpus": ("base", "search"),
    "exhausted": ("base",),
    "recovery_sweep": ("base",),
    "index_maintenance": ("base", "search"),
    "ingest_start": ("base",),
    "ingest_plan": ("base", "search", "yaml"),
    "ingest_document": ("base", "search", "documents", "yaml"),
    "ingest_commit": ("base", "search"),
    "retrieve": ("base", "search"),
    "index_document": ("base", "search", "documents", "yaml"),
    "get_document_summary": ("base", "search"),
    "extract_citations": ("base", "search"),
    "graph_query": ("base", "search"),
    "facets": ("base", "search"),
    "enrich_schema": ("base", "search"),
    "page_files": ("base",),
    "record_settings": ("base",),
    "http": ("base", "http"),
    "uploads": ("base",),
}
READERS = {"docx", "lxml", "markdown_it", "pypdf"}
"""What reads documents, in a process of its own."""
PROBE = """
import json, os, sys
from cicada_local.functions.worker import InstalledModules, third_party_folders
sys.meta_path.insert(0, InstalledModules(json.loads(sys.argv[2]), third_party_folders()))
sys.path[:0] = json.loads(sys.argv[1])
import handler
assert callable(handler.handler)
tokens, events = map(sys.modules.get, ("cicada.text.tokens", "cicada.protocol.events"))
assert tokens is None or not tokens._in_any_script.cache_info().currsize, "most processes never need this pattern"
assert events is None or not events.Complete.__pydantic_complete__, "models are built when they are first used"
with open(sys.argv[3], "w") as told:
    json.dump(list(sys.modules), told)
import logging
from cicada import metrics, telemetry
telemetry.report({one: 1 for one in metrics.CATALOGUE})
for name in ("cicada.answering", "another"):
    logging.getLogger(name).warning("a warning")
    logging.getLogger(name).error("an error")
telemetry.logger.error("an error")
sys.stdout.flush()
os._exit(0)
"""
"""Ends at once: a thread that the function has begun may be logging, or importing."""
QUIETEST = "ERROR"
DEPLOYED = {"LOG_LEVEL": QUIETEST, "AWS_LAMBDA_LOG_LEVEL": "TRACE", "AWS_LAMBDA_LOG_FORMAT": "JSON"}
"""What every function's environment says of its lines, with the quietest ``logLevel``."""


def modules_of(layer):
    return modules_required((ROOT / "layers" / "vendor" / layer / "requirements.txt").read_text())


def imported(function, told):
    paths = [str(ROOT / "lambdas" / function), str(ROOT / "layers" / "cicada" / "python")]
    brought = {path.name for path in BRINGS} if function == "http" else set()
    allowed = {
        *RUNTIME_MODULES,
        "cicada",
        *brought,
        *(name for layer in LAYERS[function] for name in modules_of(layer)),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(paths), json.dumps(sorted(allowed)), str(told)],
        env=os.environ | ENVIRONMENT | DEPLOYED,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(json.loads(told.read_text())), (done.stdout + done.stderr).splitlines()


def test_every_function_is_here():
    assert {path.parent.name for path in (ROOT / "lambdas").glob("*/handler.py")} == LAYERS.keys()


@pytest.mark.parametrize("function", LAYERS)
def test_a_function_finds_all_that_it_imports_in_its_layers(function, tmp_path):
    modules, lines = imported(function, tmp_path / "modules.json")
    assert "aws_xray_sdk" not in modules, "the Tracer costs half a second of every cold start"
    assert not READERS & modules, "they are for the process that reads a document"
    if "search" not in LAYERS[function]:
        assert "numpy" not in modules
        searching = {name for name in modules if name.startswith(("cicada.index.", "cicada.retrieval."))}
        rules = {"cicada.index.access_rules", "cicada.index.manifest"} if function == "uploads" else set()
        assert searching <= {"cicada.index.ports", "cicada.index.s3", *rules}, "the bucket alone"
    if function in ("connection", "authorizer"):
        assert "boto3" not in modules
    if function == "connection":
        assert "pydantic" not in modules
    assert all(passes(line, DEPLOYED["AWS_LAMBDA_LOG_LEVEL"]) for line in lines)
    assert [name for line in lines for name in emf_metrics(line)] == [one.name for one in CATALOGUE]
    assert sum("an error" in line for line in lines) == 3
    assert not any("a warning" in line for line in lines)


def emf_metrics(line):
    written = json.loads(line) if line.startswith("{") else {}
    directives = written.get("_aws", {}).get("CloudWatchMetrics", ())
    return [metric["Name"] for one in directives for metric in one["Metrics"] if metric["Name"] in written]


def test_no_level_is_quieter():
    assert set(get_args(Settings.model_fields["log_level"].annotation)) == {"DEBUG", "INFO", "WARN", QUIETEST}
