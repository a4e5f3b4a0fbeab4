"""Cut a document that was read into passages."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from cicada.corpus.chunking.likeness import Embed
from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.chunking.passages import DOC_TYPE_KEY, passages_of
from cicada.corpus.declared.declaration import SECTION
from cicada.corpus.declared.sectioning import Sectioning, SectionRules
from cicada.corpus.documents import Document
from cicada.corpus.indexable import Indexable
from cicada.corpus.messages import Message
from cicada.corpus.passages import ScriptLocator
from cicada.corpus.scripts import read_script
from cicada.corpus.windows import passages
from cicada.errors import CorpusInvalid, DocumentInvalid
from cicada.ingest.contracts import WORKFLOW_ID

SOURCE = "source"

_HEAD_BYTES = 1_024


def cut(
    document: Document,
    path: Path,
    collection: str,
    options: ChunkOptions,
    *,
    metadata: Mapping[str, str],
    embed: Embed | None = None,
    rules: SectionRules | None = None,
) -> list[Indexable]:
    """Cut a document into passages: a script into its messages, any other by its structure.

    ``path``: the document's file, from which a script's messages are read; ``embed``: used where the options cut by
    meaning; ``rules``: of the collection's declared sections (a script's headings are episode and chapter). Raises
    DocumentInvalid if a script breaks its format, with line and field, and ModelError from ``embed``.
    """
    sectioning = None if rules is None else Sectioning(rules, document.source, document.title, document.blocks)
    if document.doc_type == "script":
        items = _messages(document, path, collection, metadata)
        return items if sectioning is None else [_placed(item, sectioning) for item in items]
    return passages_of(document, collection, options, embed=embed, metadata=metadata, sectioning=sectioning)


def _placed(item: Indexable, sectioning: Sectioning) -> Indexable:
    passage = item.passage
    if not isinstance(passage.locator, ScriptLocator):
        return item
    path = (passage.locator.episode_name, passage.locator.chapter_id)
    entities = sectioning.entities(path, passage.text)
    metadata = {**passage.metadata, SECTION: sectioning.section(path)}
    return Indexable(passage.model_copy(update={"metadata": metadata, "entities": entities}), item.parts)


def _messages(document: Document, path: Path, collection: str, metadata: Mapping[str, str]) -> list[Indexable]:
    marked: list[Message] = []
    with path.open("rb") as file:
        array = file.read(_HEAD_BYTES).lstrip().startswith(b"[")
    with tempfile.TemporaryDirectory(prefix="script-") as folder:  # its reader goes by the ending of the name
        named = Path(folder) / f"script{'.json' if array else '.jsonl'}"
        named.symlink_to(path.resolve())
        try:
            messages = read_script([named])
        except CorpusInvalid as error:
            raise DocumentInvalid(str(error).replace(str(named), document.source)) from error
    ours = {**metadata, SOURCE: document.source, DOC_TYPE_KEY: "script"}
    for message in messages:  # the label is the loader's to choose, not the document's
        said = {key: value for key, value in message.metadata.items() if key != WORKFLOW_ID}
        marked.append(replace(message, metadata=said | ours))
    return list(passages(collection, marked))
