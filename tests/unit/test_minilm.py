"""The embedding model in numpy, and its cache on disk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cicada_local.bedrock.minilm import MAX_TOKENS, CachedEmbedder, MiniLM
from cicada_local.bedrock.minilm_encoder import DIMENSIONS, Floats

SENTENCES = [
    "Who locked the boathouse?",
    "",
    "I locked the boathouse at ten, and I gave the key to Mara before the fog came in over the lake.",
    "雨が降っています。",
    "A lone surrogate \ud83d is no character at all.",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM.load()


def test_rows_are_unit_vectors_whatever_the_text(model: MiniLM) -> None:
    rows = model.embed(SENTENCES)
    assert rows.shape == (len(SENTENCES), DIMENSIONS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_no_texts_make_no_rows(model: MiniLM) -> None:
    assert model.embed([]).shape == (0, DIMENSIONS)


def test_similarities_are_those_of_the_reference_implementation(model: MiniLM) -> None:
    # The example of the model's page, as sentence-transformers computes it, to the three places it shows.
    person, *others = model.embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert [round(float(person @ other), 3) for other in others] == [0.695, 0.943, 0.257]


def test_a_question_is_nearest_to_the_sentence_that_answers_it(model: MiniLM) -> None:
    question, answer, *others = model.embed(
        [
            "Where was the key hidden?",
            "She put the key under the flat stone by the door.",
            "The launch crossed the lake in the fog.",
            "Dinner is served at eight.",
        ]
    )
    assert float(question @ answer) > max(float(question @ other) for other in others)


def test_a_row_depends_neither_on_padding_nor_on_its_companions(model: MiniLM) -> None:
    texts = [*SENTENCES, "lake " * 200, "A short one.", "Fog. " * 60]
    together = model.embed(texts)
    alone = np.vstack([model.embed([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_rows_keep_the_order_of_the_texts(model: MiniLM) -> None:
    forwards, backwards = model.embed(SENTENCES), model.embed(SENTENCES[::-1])
    np.testing.assert_allclose(forwards, backwards[::-1], atol=2e-6)


def test_a_long_text_is_cut_after_the_last_token_the_model_reads(model: MiniLM) -> None:
    read = "lake " * (MAX_TOKENS - 2)
    cut, whole, shorter = model.embed([read + "murder weapon", read, read.removesuffix("lake ") + "murder"])
    np.testing.assert_allclose(cut, whole, atol=2e-6)
    assert float(np.abs(whole - shorter).max()) > 1e-4


def test_tokens_are_counted_without_frame_and_without_cut(model: MiniLM) -> None:
    assert model.pieces.count("") == 0
    assert model.pieces.count("The lake is quiet.") == 5
    assert model.pieces.count("lake " * 1000) == 1000
    assert len(model.pieces.ids("lake " * 1000)) == MAX_TOKENS


def test_threads_share_one_model(model: MiniLM) -> None:
    expected = model.embed(SENTENCES)
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: model.embed(SENTENCES), range(8)):
            np.testing.assert_allclose(rows, expected, atol=2e-6)


class CountingModel:
    """A model whose vectors are cheap and told apart by the text's length; it counts what it is asked for."""

    def __init__(self) -> None:
        self.computed: list[str] = []
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Floats:
        with self._lock:
            self.computed.extend(texts)
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        rows[np.arange(len(texts)), [len(text) for text in texts]] = 1
        return rows


def test_a_second_start_computes_nothing_and_loads_no_model(tmp_path: Path) -> None:
    model = CountingModel()
    first = CachedEmbedder(tmp_path / "made" / "vectors.sqlite", load=lambda: model)
    rows = first.embed(["one", "three", "one"])
    first.close()
    assert model.computed == ["one", "three"]

    def no_model() -> CountingModel:
        raise AssertionError("the model was loaded although every text is known")

    second = CachedEmbedder(tmp_path / "made" / "vectors.sqlite", load=no_model)
    np.testing.assert_array_equal(second.embed(["three", "one"]), rows[[1, 0]])
    second.close()


def test_only_unknown_texts_are_computed_and_order_is_kept(tmp_path: Path) -> None:
    model = CountingModel()
    cached = CachedEmbedder(tmp_path / "vectors.sqlite", load=lambda: model)
    cached.embed(["a", "bb"])
    rows = cached.embed(["ccc", "bb", "", "a"])
    assert model.computed == ["a", "bb", "ccc", ""]
    assert rows.argmax(axis=1).tolist() == [3, 2, 0, 1]
    assert cached.embed([]).shape == (0, DIMENSIONS)
    cached.close()


def test_texts_that_are_not_valid_unicode_are_remembered_too(tmp_path: Path) -> None:
    model = CountingModel()
    cached = CachedEmbedder(tmp_path / "vectors.sqlite", load=lambda: model)
    for _ in range(2):
        cached.embed(["\ud800", "\ud801"])
    assert model.computed == ["\ud800", "\ud801"]
    cached.close()


@pytest.mark.parametrize("content", [b"this is no database", b"SQLite format 3\x00" + b"\x07" * 4096])
def test_a_file_that_is_no_cache_is_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(content)
    cached = CachedEmbedder(path, load=CountingModel)
    assert cached.embed(["one"]).argmax() == 3
    cached.close()


def test_a_cache_that_fails_costs_time_and_no_answer(tmp_path: Path) -> None:
    model = CountingModel()
    cached = CachedEmbedder(tmp_path / "vectors.sqlite", load=lambda: model)
    cached.embed(["one"])
    cached.close()
    assert cached.embed(["one", "three"]).argmax(axis=1).tolist() == [3, 5]
    assert model.computed == ["one", "one", "three"]


def test_threads_and_two_embedders_share_one_file(tmp_path: Path) -> None:
    model = CountingModel()
    embedders = [CachedEmbedder(tmp_path / "vectors.sqlite", load=lambda: model) for _ in range(2)]
    texts = ["x" * length for length in range(1, 101)]

    def embed(worker: int) -> list[int]:
        return [int(embedders[worker % 2].embed([text])[0].argmax()) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert all(lengths == list(range(1, 101)) for lengths in pool.map(embed, range(4)))
    before = len(model.computed)
    embedders[0].embed(texts)
    assert len(model.computed) == before
    for embedder in embedders:
        embedder.close()
