"""Import time of each function: what its initialisation costs, in CPU milliseconds of a fresh process.

Each row is a function's handler imported with its settings in the environment (clients are made), as a ratio to
importing boto3 and making one client. The bare interpreter is included; compiled files are warm. *The search path* is
the index's reader, its store and the retriever, as the answer function has them: what searching needs, without the SDK,
the models and the telemetry.

    .venv/bin/python -m benchmarks.import_time
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": "http://127.0.0.1:9",
    "POWERTOOLS_SERVICE_NAME": "cicada",
    "POWERTOOLS_METRICS_NAMESPACE": "Cicada",
    "REQUESTS_TABLE": "t",
    "INDEX_BUCKET": "b",
    "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
    "GENERATION_MODEL_ID": "g",
    "DIRECT_MODEL_ID": "d",
    "EMBEDDING_MODEL_ID": "e",
    "EMBEDDING_DIMENSIONS": "384",
    "JWT_ISSUER": "https://issuer.example/",
    "JWT_AUDIENCE": "a",
    "JWKS_URL": "https://issuer.example/jwks.json",
}
SEARCH_PATH = """
from cicada.index.reader import IndexReader
from cicada.index.s3_direct import DirectS3Store
from cicada.retrieval.shards import ShardRetriever
reader = IndexReader(DirectS3Store("b"), embedding_model_id="e", dimensions=384)
"""
BASE = "boto3 and one client"
CASES = {
    "bare interpreter": "pass",
    "numpy": "import numpy",
    "the search path alone": SEARCH_PATH,
    "... with the SDK's client": f"{SEARCH_PATH}\nimport boto3; boto3.client('s3')",
    BASE: "import boto3; boto3.client('dynamodb')",
    **{
        name: f"import sys; sys.path.insert(0, {str(ROOT / 'lambdas' / name)!r}); import handler"
        for name in ("connection", "authorizer", "message_processor", "answer", "exhausted")
    },
}


def cpu_ms(code: str) -> float:
    """CPU milliseconds of a process that runs the code and leaves at once."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT / "layers" / "cicada" / "python")}
    subprocess.run(
        [sys.executable, "-c", f"{code}\nimport os; os._exit(0)"],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="processes a row, taken in turns (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=CASES, default=tuple(CASES), help="these rows (default: all)")
    args = parser.parse_args(argv)
    cases = {name: code for name, code in CASES.items() if name in (*args.only, BASE)}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(args.runs + 1):
        for name, code in cases.items():
            taken = cpu_ms(code)
            if turn:  # the first turn compiles
                times[name].append(taken)
    base = statistics.median(times[BASE])
    print(f"{'case':24}{'median ms':>12}{'best ms':>10}{'ratio':>8}")
    for name, taken_ms in times.items():
        median = statistics.median(taken_ms)
        print(f"{name:24}{median:>12.0f}{min(taken_ms):>10.0f}{median / base:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
