"""The training commands: what they read, and that a model they fit is the model the library reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="models are trained where scipy has a wheel")

from cicada.text.linear import LinearClassifier
from training import models
from training.changes import MODEL
from training.models import DATA, Labelled, Model, main, read, train

SMALL = Model(name="changes", package="cicada.routing", labels=("change", "read"), buckets=1 << 10, decay=1e-4)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Two authors: one trains, one tunes."""
    folder = tmp_path / "changes"
    folder.mkdir()
    for author, names in {"one": ("Corin", "Ilse", "Oda"), "two": ("Brandt", "Anke")}.items():
        rows = [
            {"query": wording.format(name), "label": label, "language": "en"}
            for name in names
            for wording, label in (
                ("Delete my profile of {}", "change"),
                ("Keep a note about {}", "change"),
                ("Who is {}?", "read"),
                ("Show me the profile of {}", "read"),
            )
        ]
        (folder / f"{author}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "split.json").write_text(json.dumps({"tuning": ["two"]}), encoding="utf-8")
    monkeypatch.setattr(models, "DATA", tmp_path)
    monkeypatch.setattr(Model, "path", property(lambda self: tmp_path / f"{self.name}.bin"))
    return tmp_path


def test_a_trained_model_decides_sentences_of_an_author_that_did_not_train_it(data, capsys):
    assert main(SMALL, []) == 0
    classifier = LinearClassifier.read(SMALL.path)
    assert classifier.decide("Delete my profile of Brandt").label == "change"
    assert classifier.decide("Who is Anke?").label == "read"
    told = capsys.readouterr().out
    assert "two              8 of     8  1.000" in told
    assert "one" not in told  # it trained: how well it does there says nothing


def test_the_check_compares_and_writes_nothing(data):
    main(SMALL, [])
    written = SMALL.path.read_bytes()
    assert main(SMALL, ["--check"]) == 0
    assert train(SMALL) == written
    SMALL.path.write_bytes(written[:-1] + bytes([written[-1] ^ 1]))
    assert main(SMALL, ["--check"]) == 1


def test_the_librarys_model_agrees_with_the_sentences_it_was_trained_on():
    split = MODEL.split()
    assert not set(split["tuning"]) & set(split["held_aside"])
    trained = [one for one in MODEL.sentences() if one.author not in (*split["tuning"], *split["held_aside"])]
    classifier = LinearClassifier.read(MODEL.path)
    agreed = sum(classifier.decide(one.query).label == one.label for one in trained)
    assert agreed >= 0.97 * len(trained)


@pytest.mark.parametrize("path", sorted(DATA.glob("changes/*.jsonl")), ids=lambda path: path.stem)
def test_every_labelled_sentence_has_a_known_label_and_a_language(path: Path):
    sentences = list(read(path))
    assert sentences
    for one in sentences:
        assert isinstance(one, Labelled)
        assert one.query.strip()
        assert one.label in MODEL.labels
        assert one.language
