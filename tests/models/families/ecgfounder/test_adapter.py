"""Test the labels, heads and leads of ECGFounder."""

import json

import numpy as np
import pytest
import torch

from cardiobench.data import catalog
from cardiobench.data.media.leads import keep_leads
from cardiobench.models.base import NativeHeads
from cardiobench.models.cards import card
from cardiobench.models.detect import detect
from cardiobench.models.families.ecgfounder import adapter as ecgfounder
from cardiobench.models.families.ecgfounder import heads as ecgfounder_heads
from cardiobench.models.files import given_files
from tests.models.encoders import load, record
from tests.models.families.ecgfounder import checkpoint


def test_labels_of_ecgfounder():
    names = ecgfounder_heads.labels()
    assert len(names) == len(set(names)) == 150
    for index, name in {
        5: "ATRIAL FIBRILLATION",
        11: "RIGHT BUNDLE BRANCH BLOCK",
        20: "LEFT BUNDLE BRANCH BLOCK",
        36: "LEFT ANTERIOR FASCICULAR BLOCK",
        54: "ANTEROLATERAL INFARCT",
        61: "INFERIOR INFARCT",
        79: "WITH 1ST DEGREE AV BLOCK",
        107: "WOLFF-PARKINSON-WHITE",
        132: "POSTERIOR INFARCT",
        149: "MULTIFOCAL ATRIAL TACHYCARDIA",
    }.items():
        assert names[index] == name
    assert all(label in names for labels in ecgfounder_heads.TARGETS.values() for label in labels)
    assert {*ecgfounder_heads.TARGETS, *ecgfounder_heads.SEVERAL} == set(card("PKUDigitalHealth/ECGFounder").native)
    assert all(
        label in names for classes in ecgfounder_heads.SEVERAL.values() for of in classes.values() for label in of
    )
    asked = {"six": "code15", "six_clean": "code15", "nine": "cpsc2018", "super": "ptb_xl"}
    for target, classes in ecgfounder_heads.SEVERAL.items():
        assert tuple(classes) == catalog.task(f"{asked[target]}/{target}").classes, "in the order of the task"


@pytest.mark.parametrize(
    ("target", "label", "place"),
    [
        ("six", "MARKED SINUS BRADYCARDIA", [3]),
        ("six", "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK", [1]),
        ("nine", "NORMAL ECG", [0]),
        ("nine", "OTHERWISE NORMAL ECG", []),
        ("nine", "PREMATURE VENTRICULAR AND FUSION COMPLEXES", [6]),
        ("nine", "ST NO LONGER DEPRESSED IN", []),
        ("nine", "INFERIOR INJURY PATTERN", [8]),
        ("super", "INFERIOR INJURY PATTERN", [2]),
        ("super", "RBBB AND LEFT ANTERIOR FASCICULAR BLOCK", [0]),
        ("super", "BIATRIAL ENLARGEMENT", [1]),
        ("super", "OTHERWISE NORMAL ECG", [3]),
        ("super", "T WAVE INVERSION NO LONGER EVIDENT IN", []),
        ("super", "PROLONGED QT", [4]),
    ],
)
def test_label_of_ecgfounder_makes_its_class_and_no_other(target, label, place):
    outputs = np.zeros((1, 150))
    outputs[0, ecgfounder_heads.labels().index(label)] = 0.7
    (found,) = ecgfounder_heads.probability(target, outputs)
    assert np.flatnonzero(found).tolist() == place and set(found) <= {0, 0.7}


@pytest.mark.slow
def test_heads_of_ecgfounder_on_stored_vectors(folders, encoders):
    name = "PKUDigitalHealth/ECGFounder"
    encoder = encoders(name)
    assert isinstance(encoder, NativeHeads)
    parts = torch.cat([encoder.transform(record(seed=seed)) for seed in range(3)])
    vectors = encoder.encode(parts).numpy()
    with torch.no_grad():
        wanted = torch.sigmoid(encoder.network.network(parts)).numpy()
    np.testing.assert_allclose(encoder.label_probabilities(vectors), wanted, atol=1e-5)
    af = encoder.predict_native("af", [vectors[:1], vectors[1:]])
    assert af.dtype == np.float64
    np.testing.assert_allclose(af, [wanted[0, 5], wanted[1:, 5].mean()], atol=1e-5)
    chosen = [index for index, label in enumerate(ecgfounder_heads.labels()) if label in ecgfounder_heads.TARGETS["cd"]]
    assert len(chosen) == 18
    np.testing.assert_allclose(encoder.predict_native("cd", [vectors[2:]]), wanted[2:, chosen].max(axis=1), atol=1e-5)
    # The head was trained on the mean of the tokens, so it would give invalid output for any other vector.
    assert not isinstance(load(name, folders(name), pooling="max"), NativeHeads)


@pytest.mark.slow
def test_lead_i_has_own_weights(tmp_path):
    encoder = load("PKUDigitalHealth/ECGFounder", checkpoint.ecgfounder_one_lead(tmp_path))
    assert encoder.leads == ("I",) and encoder.preprocessing["leads"] == "I"
    assert "lead I only" in encoder.warnings[0]
    ecg = record()
    parts = encoder.transform(ecg)
    assert parts.shape == (1, 1, 5000)
    assert torch.equal(parts, encoder.transform(keep_leads(ecg, ("I",))))


def test_scales_use_present_leads():
    signal = np.zeros((5000, 12))
    wave = np.sin(np.arange(5000) / 20)
    signal[:, 0] = wave
    one = ecgfounder.prepare(signal, 500, "zscore", present=[0])[0]
    np.testing.assert_allclose(one[0], (wave - wave.mean()) / wave.std(), atol=1e-6)
    assert not one[1:].any() and ecgfounder.prepare(signal, 500, "zscore")[0, 1:].any()


def test_other_weights_of_a_registered_network(tmp_path):
    (tmp_path / "cardiobench.json").write_text(json.dumps({"like": "PKUDigitalHealth/ECGFounder", "pooling": "max"}))
    found = detect(given_files("mine", tmp_path))
    assert (
        found.rule
        == "cardiobench.json states like 'PKUDigitalHealth/ECGFounder' -> the adapter of PKUDigitalHealth/ECGFounder"
    )
    assert found.poolings[0] == "max"
