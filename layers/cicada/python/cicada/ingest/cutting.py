"""From a document, as its reader gives it, to passages."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.chunking.passages import passages_of
from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.declared.sectioning import Sectioning, SectionRules
from cicada.corpus.documents import Document
from cicada.corpus.indexable import Indexable
from cicada.corpus.passages import ScriptLocator
from cicada.corpus.scripts import read_script
from cicada.corpus.windows import passages
from cicada.errors import CorpusInvalid, DocumentInvalid
from cicada.ingest.contracts import WORKFLOW_ID

SOURCE = "source"
DOC_TYPE = "doc_type"

_ARRAY = b"["
_HEAD_BYTES = 1_024


def cut(
    document: Document,
    path: Path,
    collection: str,
    options: ChunkOptions,
    *,
    metadata: Mapping[str, str],
    embed: Callable[[Sequence[str]], Sequence[Sequence[float]]],
    rules: SectionRules | None = None,
) -> list[Indexable]:
    """Cut a document into passages: a script into its messages, all else by its structure.

    Args:
        path: the file that it was read from: a script's messages are read from it.
        options: where to cut, for all but scripts.
        metadata: of every passage.
        embed: makes the vectors that tell where the subject changes, where the options ask for that.
        rules: of the sections that the collection declares: a script's headings are its episode's name and its chapter.

    Raises:
        DocumentInvalid: a script breaks its format; every line of the message names line and field.
        ModelError: ``embed`` raised it.
    """
    sectioning = None if rules is None else Sectioning(rules, document.source, document.title, document.blocks)
    if document.doc_type == "script":
        items = _messages(document, path, collection, metadata)
        return items if sectioning is None else [_placed(item, sectioning) for item in items]
    by_meaning = embed if options.boundaries == "embedding" else None
    return passages_of(document, collection, options, embed=by_meaning, metadata=metadata, sectioning=sectioning)


def _placed(item: Indexable, sectioning: Sectioning) -> Indexable:
    passage = item.passage
    if not isinstance(passage.locator, ScriptLocator):
        return item
    path = (passage.locator.episode_name, passage.locator.chapter_id)
    entities = sectioning.entities(path, passage.text)
    metadata = {**passage.metadata, SECTION: sectioning.section(path)}
    return Indexable(passage.model_copy(update={"metadata": metadata, "entities": entities}), item.parts)


def _messages(document: Document, path: Path, collection: str, metadata: Mapping[str, str]) -> list[Indexable]:
    with path.open("rb") as file:
        array = file.read(_HEAD_BYTES).lstrip().startswith(_ARRAY)
    with tempfile.TemporaryDirectory(prefix="script-") as folder:  # its reader goes by the ending of the name
        named = Path(folder) / f"script{'.json' if array else '.jsonl'}"
        named.symlink_to(path.resolve())
        try:
            messages = read_script([named])
        except CorpusInvalid as error:
            raise DocumentInvalid(str(error).replace(str(named), document.source)) from error
    ours = {**metadata, SOURCE: document.source, DOC_TYPE: "script"}
    marked = [replace(message, metadata={**_said(message.metadata), **ours}) for message in messages]
    return list(passages(collection, marked))


def _said(metadata: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in metadata.items() if key != WORKFLOW_ID}
