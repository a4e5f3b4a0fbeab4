"""The training commands: what they read, and that a model they fit is the model the library reads."""

from __future__ import annotations

import json
from array import array

import pytest

pytest.importorskip("scipy", reason="models are trained where scipy has a wheel")

from cicada.text.linear import LinearClassifier, dumped
from training import abstentions, changes, languages, models, routing
from training.models import DATA, Labelled, Model, main, read, train

MODELS = [abstentions.MODEL, changes.MODEL, languages.MODEL, routing.MODEL]
SAMPLED = 1_000
"""Of the sentences that a model was trained on, from all of its authors, at least so many are decided again."""
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


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_librarys_model_agrees_with_the_sentences_it_was_trained_on(model: Model):
    split = model.split()
    assert not set(split["tuning"]) & set(split["held_aside"])
    trained = [one for one in model.sentences() if one.author not in (*split["tuning"], *split["held_aside"])]
    sample = trained[:: max(1, len(trained) // SAMPLED)]
    classifier = LinearClassifier.read(model.path, model.featuring)
    agreed = sum(classifier.decide(one.query).label == one.label for one in sample)
    assert agreed >= 0.97 * len(sample)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_labelled_sentence_has_a_known_label_and_a_language(model: Model):
    for one in model.sentences():
        assert isinstance(one, Labelled)
        assert one.query.strip()
        assert one.label in model.labels
        assert len(one.language) == 2


def test_an_author_labels_no_sentence_twice():
    for path in (DATA / "routing").glob("*.jsonl"):
        queries = [one.query for one in read(path)]
        assert len(queries) == len(set(queries)), path


def test_a_models_file_bridges_distant_rows(tmp_path):
    weights = array("b", [1, -1, 2, -2, 3, -3, 4, -4])
    path = tmp_path / "model.bin"
    path.write_bytes(dumped(["a", "b"], 2_000, 0.5, 1.0, [0, 255, 765, 1_999], weights))
    known = LinearClassifier(["a", "b"], 2_000, 0.5, 1.0, [0, 255, 765, 1_999], weights)
    read_again = LinearClassifier.read(path)
    for text in ("Who is Oda?", "Delete my note", "".join(map(chr, range(32, 700)))):
        assert read_again.decide(text) == known.decide(text)


def test_a_models_weights_need_a_row_each():
    with pytest.raises(ValueError, match="3 weights for 1 rows and 2 labels"):
        LinearClassifier(["a", "b"], 10, 1.0, 1.0, [1], array("b", [1, 2, 3]))
