"""Check that the metadata baseline encodes facts of a recording and never its signal."""

import numpy as np
import pytest

from cardiobench.data.media import Clip, Ecg
from cardiobench.data.open import open_dataset
from cardiobench.models.baselines.metadata import DIM, metadata_features
from cardiobench.models.load import load_model

pytestmark = pytest.mark.filterwarnings("ignore")


def ecg(signal=0.0, **facts) -> Ecg:
    return Ecg(np.full((5000, 12), signal, np.float32), 500.0, facts)


def test_facts_of_an_ecg_by_hand():
    found = metadata_features(ecg(age=70.0, sex="F"))
    assert len(found) == DIM
    assert found[:10] == [7.0, 1.0, 1.0, 0.0, 0.0, 10.0, 5.0, 0.0, 0.0, 1.0]
    assert sum(found[10:]) == 0, "the machine is unknown"


def test_only_headers_are_read():
    assert metadata_features(ecg(0.0, age=50.0)) == metadata_features(ecg(3.0, age=50.0))
    assert metadata_features(ecg(age=50.0)) != metadata_features(ecg(age=51.0)) != metadata_features(ecg())
    assert sum(metadata_features(ecg(machine="GE"))[10:]) == 1


def test_shape_of_a_clip():
    clip = Clip(np.zeros((1, 112, 224, 3), np.uint8), np.array([0]), 100, 50.0, {"sex": "M"})
    found = metadata_features(clip)
    assert found[2:5] == [0, 1, 0] and found[5:10] == [2.0, 5.0, 1.12, 2.24, 1.0]


def test_model_sees_row_facts_but_not_labels():
    dataset = open_dataset("ptb_xl_sample", None)
    row, recording = dataset.frame.iloc[0], dataset.recording(0)
    assert recording.facts == {"age": row["age"], "sex": row["sex"]}
    encoder = load_model("cardiobench/metadata").encoder
    part = encoder.encode(encoder.transform(recording)).numpy()
    assert part.shape == (1, DIM) and part[0, 0] == pytest.approx(row["age"] / 10)
