"""The published index: version, passages, age, and whether it fits the embedding model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cicada.errors import IndexUnavailable
from cicada_cli.doctor.findings import Finding, Reporter
from cicada_cli.text import counted

if TYPE_CHECKING:
    from cicada.index.ports import ObjectStore

NOTHING = "cicada load PATH"


def check_index(
    store: ObjectStore,
    outputs: Mapping[str, str],
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterable[Finding]:
    """What the bucket's current version holds, and whether workers can search it.

    Args:
        store: the deployment's bucket.
        outputs: the stacks': they say what a corpus must be embedded with.
        now: the time, with its zone.
    """
    from cicada.errors import CicadaError
    from cicada.index.versions import read_current

    report = Reporter("index", outputs.get("IndexBucket", "the index"))
    try:
        current = read_current(store)
    except IndexUnavailable as error:
        yield report.unknown(f"cannot read the bucket: {error}", permission="s3:GetObject")
        return
    except CicadaError as error:
        yield report.problem(
            f"{error.told} ({error.code}: {error})", "cicada index check, then docs/troubleshooting.md"
        )
        return
    if current is None:
        yield report.warning("nothing is loaded, so every answer finds nothing", NOTHING)
        return
    manifest = current.manifest
    model, dimensions = outputs.get("EmbeddingModelId"), outputs.get("EmbeddingDimensions")
    if (model, dimensions) not in ((None, None), (manifest.embedding_model_id, str(manifest.dimensions))):
        yield report.problem(
            f"embedded with {manifest.embedding_model_id} in {manifest.dimensions} dimensions, but the deployment uses "
            f"{model} in {dimensions}",
            "load the corpus again",
        )
        return
    live = sum(entry.live for entry in manifest.segments)
    age = now() - manifest.created_at
    held = f"{counted(live, 'passage')} in {counted(len(manifest.collections), 'collection')}"
    yield report.ok(f"version {manifest.version}: {held}, published {_age(age.total_seconds())} ago")


def _age(seconds: float) -> str:
    for name, length_s in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length_s:
            return counted(int(seconds // length_s), name)
    return "less than a minute"
