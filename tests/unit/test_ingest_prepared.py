"""Prepared documents: what is written is read again, and what is damaged is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cicada.corpus.chunking.options import ChunkOptions
from cicada.corpus.indexable import Indexable, WeightedText
from cicada.errors import IndexCorrupt
from cicada.index.segment import content_digest, id_digest
from cicada.ingest.contracts import Recipe
from cicada.ingest.prepared import BLOCK_PASSAGES, FIRST_BYTES, PreparedFile, encode_prepared, prepared_key
from tests.support.ingest import item
from tests.support.object_stores import InMemoryStore
from tests.support.passages import make_passages, unit_rows

KEY = "prepared/shelf/x"
RECIPE = Recipe(embedding_model_id="m", dimensions=8)


def items(count):
    return [
        Indexable(passage, (WeightedText(passage.context, 1.0), WeightedText(f"near {number}", 0.25)))
        for number, passage in enumerate(make_passages(count))
    ]


def stored(count):
    store, vectors = InMemoryStore(), unit_rows(count, 8).astype(np.float16)
    store.write(KEY, encode_prepared("a.md", "d" * 64, items(count), vectors, "m", notes=["a note"]), replaces=None)
    return store, vectors


@pytest.mark.parametrize("count", [1, BLOCK_PASSAGES, 3 * BLOCK_PASSAGES + 1, 2 + FIRST_BYTES // 28])
def test_what_is_prepared_is_read_again(count):
    store, vectors = stored(count)
    file = PreparedFile.open(store, KEY)
    assert (file.source, file.notes, file.count) == ("a.md", ("a note",), count)
    assert file.ids.tolist() == [id_digest(one.passage.id) for one in items(count)]
    assert file.contents.tobytes() == b"".join(content_digest(one) for one in items(count))
    chosen = sorted({0, count // 2, count - 1})
    text = file.read(store, chosen)
    assert text.items == [items(count)[place] for place in chosen]
    assert np.array_equal(text.vectors, vectors[chosen].astype(np.float16).astype(np.float32))
    assert PreparedFile.whole(KEY, store.objects[KEY]).count == count


@given(data=st.data())
@settings(max_examples=60)
def test_an_object_that_was_changed_anywhere_is_not_used(data):
    store, _ = stored(BLOCK_PASSAGES + 5)
    written = bytearray(store.objects[KEY])
    at = data.draw(st.integers(0, len(written) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "grow"])):
        case "flip":
            written[at] ^= 1 << data.draw(st.integers(0, 7))
        case "cut":
            del written[at:]
        case _:
            written += b"\0"
    with pytest.raises(IndexCorrupt) as told:
        PreparedFile.whole(KEY, bytes(written))
    assert told.value.key == KEY


def test_a_block_is_checked_when_it_is_read_by_itself():
    store, _ = stored(2 * BLOCK_PASSAGES)
    file = PreparedFile.open(store, KEY)
    store.objects[KEY] = store.objects[KEY][:-1] + b"\0\0"
    assert len(file.read(store, [0]).items) == 1
    with pytest.raises(IndexCorrupt):
        file.read(store, [2 * BLOCK_PASSAGES - 1])


def test_an_object_that_is_missing_is_told_as_damaged():
    with pytest.raises(IndexCorrupt, match="is missing"):
        PreparedFile.open(InMemoryStore(), KEY)


def test_a_document_is_prepared_anew_when_anything_that_it_depends_on_changes():
    recipes = [
        RECIPE,
        RECIPE.model_copy(update={"dimensions": 9}),
        RECIPE.model_copy(update={"embedding_model_id": "n"}),
    ]
    recipes.append(RECIPE.model_copy(update={"chunks": ChunkOptions(chunk_size=100, overlap=10)}))
    documents = [item("a"), item("b"), item("a", collection="c"), item("a", title="t"), item("a", metadata={"k": "v"})]
    keys = [prepared_key(one, digest, RECIPE) for one in documents for digest in ("1", "2")]
    keys += [prepared_key(item("a"), "1", recipe) for recipe in recipes[1:]]
    assert len(set(keys)) == len(keys)
    assert prepared_key(item("a", key="elsewhere", size=7, etag="e"), "1", RECIPE) == keys[0]
    assert keys[0].startswith("prepared/shelf/")
