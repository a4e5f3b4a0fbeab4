"""The local cloud's embedding model for one command: its Bedrock stand-in as a child process, over its own endpoint.

So `cicada eval` runs on a laptop without AWS and without a local cloud, and the very adapter that calls Bedrock calls
this. The child ends with its parent, however that ends: it watches the pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cicada_evaluation.errors import EvaluationRefused

MODEL_ID = "local.all-minilm-l6-v2"
DIMENSIONS = 384
RERANKER_ID = "amazon.rerank-v1:0"
"""As the stand-in plays it: it compares words."""
WRITER_ID = "local.extractive"

_PROJECT = Path(__file__).resolve().parents[1]
_LIBRARY = _PROJECT / "layers" / "cicada" / "python"
_STOP_TIMEOUT_S = 5.0


@contextmanager
def embedding_endpoint() -> Iterator[str]:
    """Run the stand-in while the block runs.

    Yields:
        Its URL, to be called as Amazon Bedrock.

    Raises:
        EvaluationRefused: it cannot be started; the message says what helps.
    """
    if not (_PROJECT / "cicada_local").is_dir():
        raise EvaluationRefused(
            "the local embedding model runs only from Cicada's repository (make setup): elsewhere, name a model on "
            "Amazon Bedrock with --embedding-model and --dimensions"
        )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_PROJECT), str(_LIBRARY)])}
    child = subprocess.Popen(
        [sys.executable, "-m", "cicada_local.bedrock"],
        cwd=_PROJECT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield _told_url(child)
    finally:
        _stop(child)


def _told_url(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        _, complaint = child.communicate()
        last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise EvaluationRefused(
            f"the local embedding model does not start: {last}\n"
            "Run `make setup`, or name a model on Amazon Bedrock with --embedding-model and --dimensions."
        )
    url: str = json.loads(line)["endpointUrl"]
    return url


def _stop(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    try:
        child.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
