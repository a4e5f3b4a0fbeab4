"""How the index grows from 10,000 passages to a million: bytes, memory, cold and warm time, publishing, costs.

Everything is done by fresh processes, over a store with S3's manners (``benchmarks/s3_manners.py``), with the corpora
of the cold start benchmark: 384 dimensions, texts of 12 to 36 words (about 170 characters), segments of up to 250,000
passages. Texts stay in S3 unless the table says otherwise; a version of up to 16 MiB is read whole.

``first result`` is a hybrid search, its texts included, of a process that has read nothing, interpreter and imports
left out; ``warm after`` counts from the same begin until no search reads anything but texts. ``resident`` is what the
kernel tells of the process when it is warm and has searched; ``peak``, the most it ever was. ``every segment replaced``
is a warm reader under which a version is published that shares nothing with the one before: for a moment it holds
both. ``the function around it`` is what the answer function's other imports take. Searches are CPU time of one query
on one thread, the query's vector given, texts apart. Every process of a reader runs under ``RLIMIT_DATA``.

FAISS's exact scan of float32 (``IndexFlatIP``) takes turns with the searches by meaning alone, in a process of its own.

    python -m benchmarks.index_growth --work /tmp/index-growth --json growth.json --plot growth.svg
    python -m benchmarks.index_growth --from-json growth.json --plot growth.svg
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.cold_start_data import BUCKET, Prepared, prepare
from benchmarks.import_time import CASES, ENVIRONMENT
from benchmarks.index_growth_chart import chart
from benchmarks.index_growth_report import Growth, Report, panels, table
from benchmarks.index_growth_tasks import BLOCKS, Task
from benchmarks.s3_manners import PRESETS, Manners, running

ROOT = Path(__file__).parents[1]
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
QUERIES = 256
FUNCTION_MB = 2048
"""Of the function that a million passages are to fit into, in MiB."""
LIMIT_MB = FUNCTION_MB - 256
"""Of a reader's writable mappings: the rest of the function is given an eighth."""
TEXTS_IN_MEMORY_BYTES = 256 * 2**20
"""What the reader holds of texts at most unless it is told otherwise (``cicada.index.reader.TEXT_BYTES``)."""
INSTANT = Manners(first_byte_ms=0.0, connection_mb_s=10_000.0, total_mb_s=10_000.0)
KINDS = {
    "codes": "vectors.codes",
    "rows": "vectors.rows",
    "exact": "vectors.exact",
    "lexical": "lexical.",
    "texts": "passages.",
    "columns": "columns.",
    "digests of rows": "rows.",
}
"""What lies in a segment, by the begin of its sections' names."""


# --- measuring ---


def in_a_process(task: Task, buckets: Path, manners: Manners) -> dict[str, Any]:
    """Have a task done by a process of its own, over a store of its own; one thread for numpy, as a function has."""
    with running(buckets, manners) as store:
        environment = os.environ | {
            "AWS_ENDPOINT_URL": store.endpoint,
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "cicada" / "python"))),
        }
        command = [sys.executable, "-m", "benchmarks.index_growth_process"]
        done = subprocess.run(
            command, input=json.dumps(asdict(task)), env=environment, cwd=ROOT, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{task.name} at {task.rows:,} passages failed:\n{done.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def scratch_copy(prepared: Prepared) -> Iterator[Prepared]:
    """The same index in a folder of its own, to write to; objects that stay the same are not copied."""
    folder = prepared.folder.with_name(f"{prepared.folder.name}-written")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared.buckets / BUCKET / "index", folder / "buckets" / BUCKET / "index", copy_function=os.link)
    for name in ("queries.npy", "queries.json"):
        os.link(prepared.folder / name, folder / name)
    try:
        yield Prepared(folder, prepared.rows)
    finally:
        shutil.rmtree(folder)


def medians(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each figure; what is in a list already is put together."""
    told: dict[str, Any] = {}
    for name, first in found[0].items():
        values = [one[name] for one in found]
        if isinstance(first, dict):
            told[name] = medians(values)
        elif isinstance(first, list):
            told[name] = [value for one in values for value in one]
        else:
            told[name] = statistics.median(values)
    return told


def measure(prepared: Prepared, runs: int, limit_mb: int, *, faiss: bool) -> Growth:
    """All figures of one size."""
    _, _, block = next(prepared.blocks())
    texts = [" ".join(dict.fromkeys(text.split()[:4])) for text in block[:QUERIES]]
    usual = PRESETS["usual"]

    def done(name: str, of: Prepared = prepared, manners: Manners = usual, **told: Any) -> dict[str, Any]:
        return in_a_process(Task(name, str(of.folder), of.rows, texts, **told), of.buckets, manners)

    served = [done("serve", number=number, limit_mb=limit_mb) for number in range(runs)]
    first = served[0]
    fits = first["section_bytes"][BLOCKS] <= TEXTS_IN_MEMORY_BYTES
    with_texts = done("serve", text_bytes=TEXTS_IN_MEMORY_BYTES, limit_mb=limit_mb) if fits else None
    with scratch_copy(prepared) as copy:
        replaced = done("replace", copy, limit_mb=limit_mb)
    added = []
    for _ in range(runs):
        with scratch_copy(prepared) as copy:
            added.append(done("publish", copy))
    by_kind = {
        kind: sum(size for name, size in first["section_bytes"].items() if name.startswith(begin))
        for kind, begin in KINDS.items()
    }
    index = prepared.buckets / BUCKET / "index"
    return Growth(
        rows=prepared.rows,
        stored_bytes=sum(path.stat().st_size for path in index.rglob("*") if path.is_file()),
        by_kind=by_kind | {"heads": first["head_bytes"]},
        segments=first["segments"],
        served=medians(served),
        first_s=[one["first_s"] for one in served],
        with_texts=with_texts,
        replaced=replaced,
        added=medians(added),
        peer=done("peer", manners=INSTANT) if faiss else None,
    )


def function_mb() -> float:
    """What the answer function's imports take beyond those of a reader, resident, in MiB."""

    def resident(code: str) -> float:
        code += "\nimport os; print(open('/proc/self/status').read(), flush=True); os._exit(0)"
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT / "layers" / "cicada" / "python")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        return next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("VmRSS:")) / 1024

    return resident(CASES["answer"]) - resident(CASES["the search path alone"])


def main(argv: list[str] | None = None) -> int:
    """Prepare what is missing, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder for the corpora; 2 GB for all sizes")
    parser.add_argument(
        "--sizes", type=lambda told: tuple(map(int, told.split(","))), default=SIZES, help="passages, by commas"
    )
    parser.add_argument("--runs", type=int, default=5, help="fresh processes a figure (default: %(default)s)")
    parser.add_argument("--limit-mb", type=int, default=LIMIT_MB, help="RLIMIT_DATA of readers (default: %(default)s)")
    parser.add_argument("--no-faiss", action="store_true", help="without the peer")
    parser.add_argument("--json", type=Path, help="where to write the figures as well")
    parser.add_argument("--plot", type=Path, help="where to write the plot, an SVG")
    parser.add_argument("--from-json", type=Path, help="measure nothing: show what --json wrote")
    args = parser.parse_args(argv)
    if args.from_json is not None:
        told = json.loads(args.from_json.read_text())
        report = Report(**(told | {"sizes": [Growth(**one) for one in told["sizes"]]}))
    elif args.work is None:
        parser.error("--work is required")
    else:
        manners = PRESETS["usual"]
        report = Report(
            machine=f"{os.cpu_count()} cores, {platform.machine()}",
            store=f"first byte {manners.first_byte_ms:g} ms, {manners.connection_mb_s:g} MB/s a connection, "
            f"{manners.total_mb_s:g} MB/s in all",
            runs=args.runs,
            limit_mb=args.limit_mb,
            function_mb=function_mb(),
            sizes=[],
        )
        for size in args.sizes:
            prepared = prepare(args.work, size)
            report.sizes.append(measure(prepared, args.runs, args.limit_mb, faiss=not args.no_faiss))
            print(f"{size:,} passages: measured", file=sys.stderr, flush=True)
    print(
        f"{report.machine}; {report.store}; {report.runs} fresh processes a figure, {QUERIES} queries each; "
        f"RLIMIT_DATA {report.limit_mb:,} MiB; the rest of the answer function takes {report.function_mb:.0f} MiB\n"
    )
    print("\n".join(table(report)))
    if args.json is not None:
        args.json.write_text(json.dumps(asdict(report), indent=1))
    if args.plot is not None:
        args.plot.write_text(chart(panels(report)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
