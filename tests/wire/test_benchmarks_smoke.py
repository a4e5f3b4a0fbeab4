"""Every measuring command, in a process of its own at a tiny size: it ends well and prints its table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from cicada.corpus.scripts import read_script, script_files
from tests.support.judged_sets import write_beir

pytest.importorskip("scipy", reason="training and evaluation need scipy, which has no wheel here")

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
EPISODE = SAMPLES / "script" / "episode-5.jsonl"
CAMPAIGN_FILES = (
    "character_data/teasel-marrowby.yaml",
    "rulebook/01-rolling-the-dice.md",
    "session_notes/session-1.md",
)
AT_ONCE = 2
TIMEOUT_S = 600.0
"""Far more than any of them takes, even on a busy machine: it only ends one that hangs."""

COMMANDS = {
    "benchmarks.answerer_quality --script {episode} --most 1": "extractive answerer",
    "benchmarks.capacity --kept --check": "capacity.md is up to date",
    "benchmarks.chunking --datasets {sets}": "before the text and its windows",
    "benchmarks.citations --most 1": "unchecked",
    "benchmarks.classifier --most 2 --rounds 1": "substring search",
    "benchmarks.cold_start --work {work}/cold --sizes 100 --presets usual --runs 1 --no-lancedb": "Cicada, hybrid",
    "benchmarks.delivery_layout --chunks 1": "spilled (the library's)",
    "benchmarks.enrichment": "precision",
    "benchmarks.entities --campaign {campaign} --most 4 --sizes 10": "gazetteer",
    "benchmarks.evidence": "precision",
    "benchmarks.facets --passages 100": "cold filter by an entity",
    "benchmarks.first_chunk --in-process --runs 1 --first-piece-ms 1": "rest p50",
    "benchmarks.followups --most 1": "completed",
    "benchmarks.fusion --script {episode} {sets}/cranfield": "find",
    "benchmarks.import_time --own-python --runs 1 --only connection --packages": "aws_lambda_powertools",
    "benchmarks.index_damage --count 2": "refused",
    "benchmarks.index_growth --work {work}/growth --sizes 100 --runs 1 --no-faiss": "resident",
    "benchmarks.lexical_search --sizes 100 --queries 5": "| cicada |",
    "benchmarks.lexical_search --datasets {sets}": "| cranfield |",
    "benchmarks.loading --documents 12": "loaded again",
    "benchmarks.page --runs 1": "interactive",
    "benchmarks.permissions --calls 2": "dynamodb",
    "benchmarks.pipelines --datasets {sets} --set cranfield --limit 2": "ideal re-ranking",
    "benchmarks.profile_lists --counts 1": "common",
    "benchmarks.reading --times 1 {parts}": "fresh process",
    "benchmarks.retrieval_calibration --script {episode}": "fitted: midpoint",
    "benchmarks.retrieval_quality --script {episode}": "window as one text",
    "benchmarks.selection --campaign {campaign} --most 4 --timed 1 --latency-ms 1": "routers, side by side",
    "benchmarks.semantic_cache --most 1": "cosine alone",
    "benchmarks.vector_search --sets 1000x32 --queries 2": "recall",
    "supply_chain.sbom": "cicada.cdx.json",
    "tests.chaos --help": "--kills",
    "tests.drills --list": "issuer-away",
    "tests.drills.restore --help": "--report",
    "tests.load --help": "--sockets",
    "tests.simulation --faults 100 --processes 1 --first-seed 1": "every invariant held",
    "training.abstentions --trial 5": "abstentions.bin",
    "training.changes --trial 5": "changes.bin",
    "training.documents --trial 2": "documents.json",
    "training.followups --trial 5": "followups.bin",
    "training.languages --trial 5": "languages.bin",
    "training.manuals {work}/manuals": "of 300 documents gathered",
    "training.routing --trial 5": "routing.bin",
}
"""What is run, and a piece of the table."""
BESIDES = {"tests.chaos", "tests.drills", "tests.drills.restore", "tests.load", "tests.simulation"}
"""Of the tests' own commands."""
ELSEWHERE = {
    "benchmarks.aws_calls": "over a local cloud: tests/e2e/test_benchmarks_cloud.py",
    "benchmarks.dashboard_example": "over the stacks' dashboard: tests/template/test_template_dashboard.py",
    "benchmarks.dashboard_picture": "over plain data: tests/unit/test_dashboard_picture.py",
    "benchmarks.index_growth_process": "started by benchmarks.index_growth",
    "benchmarks.s3_manners": "started by benchmarks.cold_start",
    "supply_chain.audit": "needs a network",
    "supply_chain.lock": "needs a network",
    "supply_chain.release": "needs a clean tree: its parts are tested in tests/unit/test_release.py",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Tiny data of the samples: judged sets, and a campaign of a file a collection."""
    work = tmp_path_factory.mktemp("benchmarks")
    messages = read_script(script_files([EPISODE]))
    documents = {message.message_id: (message.speaker, message.texts["ENG"]) for message in messages}
    asked = [messages[3], messages[9]]
    for name in ("cranfield", "xquad-en", "xquad-zh"):
        queries = {message.message_id: message.texts["ENG"][:60] for message in asked}
        write_beir(work / "sets" / name, documents, queries, {query: {query: 1} for query in queries})
    for file in CAMPAIGN_FILES:
        copy = work / "campaign" / file
        copy.parent.mkdir(parents=True)
        shutil.copy(SAMPLES / "campaign" / file, copy)
        shutil.copy((SAMPLES / "campaign" / file).with_name("collection.yaml"), copy.parent)
    return {
        "campaign": work / "campaign",
        "episode": EPISODE,
        "parts": SAMPLES / "shelf" / "parts.md",
        "sets": work / "sets",
        "work": work,
    }


class Runs:
    """The processes of some commands, each started when it or the one before it is asked for.

    Another of xdist's workers may take over the later ones, although all workers know all tests.
    """

    def __init__(self, pool: ThreadPoolExecutor, commands: Sequence[str], places: Mapping[str, Path]) -> None:
        self._pool = pool
        self._commands = commands
        self._places = places
        self._started: dict[str, Future[subprocess.CompletedProcess[str]]] = {}

    def done(self, command: str) -> subprocess.CompletedProcess[str]:
        """How a command has ended."""
        place = self._commands.index(command)
        for one in self._commands[place : place + AT_ONCE]:
            if one not in self._started:
                self._started[one] = self._pool.submit(run, one, self._places)
        return self._started[command].result()


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, places: Mapping[str, Path]) -> Iterator[Runs]:
    """The commands whose tests were chosen, some at once."""
    chosen = [
        str(item.callspec.params["command"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.module is request.module and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield Runs(pool, chosen, places)


def run(command: str, places: Mapping[str, Path]) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python")))
    return subprocess.run(
        [sys.executable, "-m", *command.format_map(places).split()],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_measuring_command_prints_its_table(command: str, runs: Runs) -> None:
    done = runs.done(command)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert COMMANDS[command] in done.stdout


def test_every_measuring_command_is_run() -> None:
    started = re.compile(r'^if __name__ == "__main__":$', re.MULTILINE)
    modules = {
        f"{package}.{path.stem}"
        for package in ("benchmarks", "supply_chain", "training")
        for path in (ROOT / package).glob("*.py")
        if started.search(path.read_text(encoding="utf-8"))
    }
    run_here = {command.partition(" ")[0] for command in COMMANDS}
    assert run_here & ELSEWHERE.keys() == set()
    assert run_here | ELSEWHERE.keys() == modules | BESIDES
