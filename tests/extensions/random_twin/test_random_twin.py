"""Test the table of a trained network and its random twins in the demo, and the bundled vectors."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.errors import BadData, MissingExtra
from cardiobench.data.open import open_dataset
from cardiobench.embeddings.cached import export_stores, find_stores
from cardiobench.extensions.random_twin import demo, vectors
from cardiobench.results.printing import PrintedTable


@pytest.mark.parametrize("name", vectors.MODELS)
def test_bundled_vectors_have_all_recordings(name):
    table = vectors.read(name)
    assert list(table["id"]) == sorted(open_dataset(vectors.DATASET, None, need_media=False).frame["id"])
    stacked = np.stack(table["vector"])
    assert stacked.shape == (393, 512) and stacked.dtype == np.float16 and np.isfinite(stacked).all()
    assert vectors.path_of(name).stat().st_size < 4e5


def test_difference_is_relative_to_the_largest_number():
    bundled = pd.DataFrame({"id": ["a", "b"], "vector": [np.float16([1, 2]), np.float16([3, 4])]})
    made = pd.DataFrame({"id": ["b"], "vector": [np.float32([3, 3])]})
    assert demo.difference(made, bundled) == 0.25


def test_gain_is_that_over_the_best_random_network():
    pairs = [
        SimpleNamespace(difference=gain, low=gain - 0.1, high=gain + 0.1, p_adjusted=0.0002, outcome="better")
        for gain in (0.3, 0.25, 0.28)
    ]
    said = demo.gain_sentence(pairs)
    assert "at least 25.0 points [15.0, 35.0]" in said and "smallest of 3 seeds, p < 0.001" in said
    assert said.endswith("training helped.")
    pairs[1] = SimpleNamespace(difference=-0.1, low=-0.3, high=0.1, p_adjusted=0.4, outcome="undecided")
    assert demo.gain_sentence(pairs).endswith("p = 0.4): the difference is not significant.")


def test_other_vectors_are_not_called_the_bundled_ones(monkeypatch):
    monkeypatch.setattr(demo, "_vector", lambda *_: np.zeros(512, np.float32))
    with pytest.raises(
        BadData, match=r"differ from the bundled ones by 1 of the largest number; expected at most 0\.002"
    ):
        demo.check_sentence()


def test_extra_is_named_where_the_weights_are_not_installed(monkeypatch):
    def missing(name):
        raise MissingExtra(name, "pretrained", "openecg")

    monkeypatch.setattr(demo, "load_model", missing)
    assert "pip install 'cardiobench[pretrained]'" in demo.check_sentence()


@pytest.mark.slow
def test_demo_shows_the_gain_of_training(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDIOBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr("cardiobench.runner.run.finalize", None)  # A report would be written for nobody.
    introduction, table, sentences = demo.demo()
    assert introduction.startswith("114 real ECGs of 100 patients")
    assert isinstance(table, PrintedTable) and len(table.rows) == 6
    scores = {row[4]: float(row[1]) for row in table.rows}
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert scores["trained on other ECGs"] > 75 > 65 > max(scores[f"random weights, seed {seed}"] for seed in range(3))
    assert "training helped" in sentences and "the vectors are the bundled ones" in sentences


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trained", "seed_1"])
def test_vectors_are_made_anew(name, tmp_path):
    """Encode 40 recordings as the run that wrote the file, and export them in the same way."""
    import cardiobench

    model, variant = vectors.MODELS[name]
    settings = {"output_dir": tmp_path / "out", "cache_dir": tmp_path, "workers": 0, "limit": 12, "resamples": 20}
    chosen = {"variant": variant} if variant else {}
    cardiobench.evaluate(model, f"{vectors.DATASET}/sex", "knn", **settings, **chosen)
    export_stores(find_stores(tmp_path), tmp_path / "x.parquet")
    vectors.save(tmp_path / "x.parquet", tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as file:
        made = pd.DataFrame({"id": file["id"], "vector": list(file["vector"])})
    assert 36 <= len(made) < 60 and demo.difference(made, vectors.read(name)) < demo.TOLERANCE
