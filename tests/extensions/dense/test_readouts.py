"""Check training frames that lack points: available points are used, and points without labels are reported."""

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.data import DenseData, FrameKey, frame_id
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE
from cardiobench.extensions.dense.readouts import fit_read_outs
from cardiobench.extensions.dense.variants import DenseVariant
from cardiobench.tasks.dense_label import DenseLabel

TASK = catalog.task("phantom_echo/landmarks")
POINTS = np.array([[8.0, 10], [8, 20], [8, 40], [8, 50]])
PATIENTS = ("a", "b", "c")


def data_without(absent):
    """Return three training frames; `absent` lists the points that each lacks, by position."""
    labels = []
    for patient, gone in zip(PATIENTS, absent, strict=True):
        points = POINTS.copy()
        points[list(gone)] = np.nan
        labels.append(DenseLabel(TASK.name, patient, patient, "train", patient, 0, points=points))
    return DenseData(
        task=TASK,
        keys=tuple(FrameKey(frame_id(one), one.patient, one.split) for one in labels),
        labels=lambda split: iter([one for one in labels if one.split == split]),
        tokens=lambda ids: np.random.default_rng(0).normal(size=(len(ids), 4, 4, 3)).astype(np.float16),
        box=lambda label: Letterbox(64, 64),
        window=lambda side: WHOLE_SQUARE,
        grid=(4, 4),
    )


@pytest.mark.parametrize("further", ["", "ridge"])
def test_partly_missing_point_is_still_learned(further):
    fitted = fit_read_outs(data_without([(0,), (1,), (2, 3)]), PATIENTS, DenseVariant("heatmap", further), [1.0])
    assert fitted.mean.predict(Letterbox(64, 64), WHOLE_SQUARE, np.empty(0)) == pytest.approx(POINTS)
    ((_, read_out),) = fitted.path
    assert np.isfinite(read_out.predict(Letterbox(64, 64), WHOLE_SQUARE, np.zeros((4, 4, 3), np.float32))).all()


@pytest.mark.parametrize("kind", [DenseVariant("heatmap"), DenseVariant("global"), DenseVariant("heatmap", "ridge")])
def test_point_absent_in_all_frames_is_named(kind):
    with pytest.raises(NotApplicable, match=r"no training frame of phantom_echo/landmarks here has wall_outer; a"):
        fit_read_outs(data_without([(3,), (0, 3), (3,)]), PATIENTS, kind, [1.0])


def test_global_read_out_needs_a_frame_with_all_points():
    with pytest.raises(NotApplicable, match=r"has all points; `global` requires such frames"):
        fit_read_outs(data_without([(0,), (1,), (2,)]), PATIENTS, DenseVariant("global"), [1.0])
