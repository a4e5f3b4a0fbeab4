"""Each function can be imported with what its layers bring, and imports nothing heavier than it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.import_time import ENVIRONMENT
from cicada_local.functions.packages import RUNTIME_MODULES, modules_required

ROOT = Path(__file__).parents[2]
LAYERS = {
    "connection": ("base",),
    "authorizer": ("base", "auth"),
    "message_processor": ("base",),
    "answer": ("base", "search"),
    "agent_tools": ("base", "search"),
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
os._exit(0)
"""
"""Ends at once: a thread that the function has begun may be logging, or importing."""


def modules_of(layer):
    return modules_required((ROOT / "layers" / "vendor" / layer / "requirements.txt").read_text())


def imported(function, told):
    paths = [str(ROOT / "lambdas" / function), str(ROOT / "layers" / "cicada" / "python")]
    allowed = {*RUNTIME_MODULES, "cicada", *(name for layer in LAYERS[function] for name in modules_of(layer))}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(paths), json.dumps(sorted(allowed)), str(told)],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(json.loads(told.read_text()))


def test_every_function_is_here():
    assert {path.parent.name for path in (ROOT / "lambdas").glob("*/handler.py")} == LAYERS.keys()


@pytest.mark.parametrize("function", LAYERS)
def test_a_function_finds_all_that_it_imports_in_its_layers(function, tmp_path):
    modules = imported(function, tmp_path / "modules.json")
    assert "aws_xray_sdk" not in modules, "the Tracer costs half a second of every cold start"
    assert not READERS & modules, "they are for the process that reads a document"
    if "search" not in LAYERS[function]:
        assert "numpy" not in modules
        searching = {name for name in modules if name.startswith(("cicada.index.", "cicada.retrieval."))}
        assert searching <= {"cicada.index.ports", "cicada.index.s3"}, "the bucket alone"
    if function in ("connection", "authorizer"):
        assert "boto3" not in modules
    if function == "connection":
        assert "pydantic" not in modules
