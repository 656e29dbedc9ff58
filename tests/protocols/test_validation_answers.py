"""Test predictions of validation recordings, which are made by models that were not trained on their patients."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pyarrow.parquet import ParquetFile, write_table
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cardiobench
from cardiobench.core.errors import BadPredictions
from cardiobench.data.open import open_dataset
from cardiobench.protocols.knn import NearestNeighbours
from cardiobench.protocols.probe import LinearProbe
from cardiobench.results.paths import validation_path
from cardiobench.results.predictions_file import load_validation
from cardiobench.results.score_result import ScoreResult


@pytest.mark.parametrize("min_samples", [0, 10**6], ids=["penalty by validation", "penalty by partitions"])
def test_probe_is_fitted_on_train_only(regression, binary, min_samples):
    train, validation = regression.indices("train"), regression.indices("validation")
    output = LinearProbe(min_samples=min_samples).predict(regression, None, "")
    peer = make_pipeline(StandardScaler(), Ridge(alpha=output.details["penalty"]))
    peer.fit(regression.features[train], regression.labels[train])
    np.testing.assert_array_equal(output.validation.indices, validation)
    np.testing.assert_allclose(output.validation.values, peer.predict(regression.features[validation]), rtol=1e-6)
    train, validation = binary.indices("train"), binary.indices("validation")
    output = LinearProbe(min_samples=min_samples).predict(binary, None, "")
    C = 1 / output.details["penalty"]
    peer = make_pipeline(
        StandardScaler(), LogisticRegression(C=C, class_weight="balanced", tol=1e-8, max_iter=5000)
    ).fit(binary.features[train], binary.labels[train])
    np.testing.assert_allclose(output.validation.values, peer.predict_proba(binary.features[validation]), atol=5e-3)


def changed_labels(data, patient):
    """Return the same data with another label for every recording of one patient."""
    rows = data.rows.copy()
    own = rows["patient_id"] == patient
    target = data.task.target
    flipped = rows[target].map({name: data.task.classes[number - 1] for number, name in enumerate(data.task.classes)})
    rows.loc[own, target] = flipped[own] if data.task.classes else rows.loc[own, target] + 1000
    return replace(data, rows=rows), own.to_numpy()


@pytest.mark.parametrize(
    "protocol", [LinearProbe(penalties=(1.0,)), NearestNeighbours(neighbours=(5,))], ids=lambda one: one.name
)
def test_predictions_ignore_own_patient_labels(regression, binary, protocol):
    for data in (regression, binary):
        before = protocol.predict(data, None, "").validation
        patient = data.patients[data.indices("validation")[0]]
        changed, own = changed_labels(data, patient)
        after = protocol.predict(changed, None, "").validation
        np.testing.assert_array_equal(before.indices, after.indices)
        rows = own[before.indices]
        assert rows.any()
        np.testing.assert_allclose(before.values[rows], after.values[rows])


@pytest.mark.slow
def test_validation_predictions_have_a_separate_file(tmp_path):
    results = cardiobench.evaluate(
        "cardiobench/ecg-morphology",
        ["ptb_xl_sample/cd"],
        ["probe", "knn"],
        output_dir=tmp_path / "out",
        cache_dir=tmp_path / "cache",
        resamples=20,
    )
    dataset = open_dataset("ptb_xl_sample")
    references = dataset.references(dataset.spec.task("cd")).set_index("id")
    paths = sorted((tmp_path / "out").rglob("*__cd.json"))
    assert len(paths) == len(results) == 2
    for path in paths:
        result = ScoreResult.load(path)
        frame = load_validation(result, path)
        assert set(references.loc[frame["id"], "split"]) == {"validation"} and len(frame) == 34
        assert (references.loc[frame["id"], "y_true"] == frame["y_true"].to_numpy()).all()
        scored = pd.read_parquet(path.with_suffix(".predictions.parquet"))
        assert set(references.loc[scored["id"], "split"]) == {"test"} and result.coverage["scored"] == len(scored)
        assert not validation_path(path).name.endswith(".predictions.parquet"), "pushed files are found by this name"
    first, second = paths
    validation_path(second).write_bytes(validation_path(first).read_bytes())
    with pytest.raises(BadPredictions, match="does not belong to"):
        load_validation(ScoreResult.load(second), second)
    own = validation_path(first)
    table = ParquetFile(own).read()
    changed = table.set_column(table.column_names.index("y_pred"), "y_pred", table["y_pred"].take([*range(1, 34), 0]))
    write_table(changed.replace_schema_metadata(table.schema.metadata), own)
    with pytest.raises(BadPredictions, match="was changed after it was written: its rows have the checksum"):
        load_validation(ScoreResult.load(first), first)
    validation_path(second).unlink()
    assert load_validation(ScoreResult.load(second), second) is None
