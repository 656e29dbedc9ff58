"""Check that test rows that were scaled separately are detected, without false alarms."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

from cardiobench.embeddings.split_audit import audit_splits
from cardiobench.embeddings.vector_files import read_vectors

SPLITS = np.repeat(["train", "validation", "test"], [60, 20, 40])
IDS = [f"r{number}" for number in range(len(SPLITS))]
TRAIN, TEST = SPLITS == "train", SPLITS == "test"


def audit(values, ids=IDS):
    frame = pd.DataFrame({"id": ids, "vector": list(values)})
    return list(audit_splits(read_vectors(frame), IDS, SPLITS, "camus"))


def features(seed=0, dim=20):
    mixing = np.random.default_rng(9).normal(size=(dim, dim))
    return np.random.default_rng(seed).normal(size=(len(SPLITS), dim)) @ mixing + 5


def by_split(values, scale):
    out = values.copy()
    for split in np.unique(SPLITS):
        out[SPLITS == split] = scale().fit_transform(values[SPLITS == split])
    return out


def only_test(values, scale):
    return np.where(TEST[:, None], scale().fit_transform(values[TEST])[np.cumsum(TEST) - 1], values)


def centre():
    return StandardScaler(with_std=False)


@pytest.mark.parametrize("scale", [StandardScaler, MinMaxScaler, centre, lambda: PCA(20, whiten=True)])
def test_rows_scaled_by_their_own_split_are_found(scale):
    found = audit(by_split(features(), scale))
    assert any(
        one.startswith("camus: the test rows look standardised separately from the training rows") for one in found
    )
    assert any("validation rows" in one for one in found)


def test_test_rows_scaled_alone_are_found():
    (found,) = audit(only_test(features(), StandardScaler))
    assert "test rows" in found and "their own mean is 0 in all 20 directions" in found


def test_rows_scaled_all_together_are_found():
    (found,) = audit(StandardScaler().fit_transform(features()))
    assert "by all rows together, test rows included" in found


@pytest.mark.parametrize("seed", range(20))
def test_vectors_scaled_on_training_rows_pass(seed):
    raw = features(seed)
    binary = (raw > 5).astype(float)
    honest = {
        "raw": raw,
        "scaled by train": StandardScaler().fit(raw[TRAIN]).transform(raw),
        "unit length": Normalizer().fit_transform(raw),
        "by row": (raw - raw.mean(axis=1, keepdims=True)) / raw.std(axis=1, keepdims=True),
        "rectified": np.maximum(raw - 5, 0),
        "saturated": np.clip(raw, 4, 6),
        "binary": binary,
        "constant": np.ones_like(raw),
        "one number": raw[:, :1],
    }
    assert {name: audit(values) for name, values in honest.items() if audit(values)} == {}


def test_vectors_normalised_per_recording_pass():
    tokens = np.random.default_rng(0).normal(size=(len(SPLITS), 30, 8))
    tokens = (tokens - tokens.mean(axis=1, keepdims=True)) / tokens.std(axis=1, keepdims=True)
    assert audit(tokens.reshape(-1, 8), np.repeat(IDS, 30)) == []


def test_few_rows_are_not_judged():
    some = np.r_[np.flatnonzero(TRAIN)[:9], np.flatnonzero(TEST)]
    assert audit(by_split(features(), StandardScaler)[some], np.array(IDS)[some]) == []
