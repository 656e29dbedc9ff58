"""Test cosines of frames: hand-worked values on the circle, and the level of collapsed models."""

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.extensions.frame_similarity import figures as figure
from cardiobench.extensions.frame_similarity.protocol import FrameSimilarity
from cardiobench.protocols.base import TaskData
from cardiobench.results.analysis_result import AnalysisResult
from tests.protocols.analyses import study_of
from tests.protocols.conftest import task_data

EF = Task("phantom_echo/ef", "regression", "ef", ("mae",), unit="%")


def at(*degrees):
    angle = np.deg2rad(degrees)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def found(clips, patients, **more):
    data = task_data(EF, clips, [50.0] * len(clips), ["test"] * len(clips), patients, **more)
    return FrameSimilarity().analyze(study_of(data, resamples=50), type("M", (), {"name": "m", "frame_wise": True}))


def test_by_hand():
    """Test a clip of three frames 60 degrees apart (cosines 0.5, 0.5, -0.5) and a clip without motion."""
    finding = found([2 * at(0, 60, 120), at(90, 90, 90)], ["a", "b"])
    assert finding.tables["clips"]["mean_cosine"].tolist() == pytest.approx([0.5 / 3, 1.0])
    assert finding.values["frames of a clip"].value == pytest.approx((0.5 / 3 + 1) / 2)
    # Frames at 0, 60 and 120 degrees against 90 have the cosines 0, cos 30 and cos 30.
    assert finding.values["frames between patients"].value == pytest.approx(2 * np.cos(np.pi / 6) / 3)
    matrix = finding.tables["matrix"].pivot(index="frame", columns="other", values="cosine")
    np.testing.assert_allclose(matrix, [[1, 0.75, 0.25], [0.75, 1, 0.75], [0.25, 0.75, 1]], atol=1e-6)
    assert finding.tables["apart"]["cosine"].tolist() == pytest.approx([1, 0.75, 0.25])


def test_pairs_are_between_patients():
    rng = np.random.default_rng(0)
    clips = [rng.normal(size=(4, 5)) for _ in range(7)]
    patients = ["a", "a", "b", "c", "c", "c", "d"]
    unit = [clip / np.linalg.norm(clip, axis=1, keepdims=True) for clip in clips]
    pairs = [(unit[i] @ unit[j].T).mean() for i in range(7) for j in range(7) if patients[i] != patients[j]]
    assert found(clips, patients).values["frames between patients"].value == pytest.approx(np.mean(pairs))


def test_constant_model_has_one_everywhere():
    finding = found([np.ones((3, 4))] * 5, [f"p{n}" for n in range(5)])
    assert finding.values["difference"].value == pytest.approx(0, abs=1e-9)
    assert finding.values["frames between patients"].value == pytest.approx(1)


def test_clip_and_still_models_are_not_applicable():
    with pytest.raises(NotApplicable, match="no test recording of phantom_echo/ef has two frames"):
        found([np.ones((1, 4))] * 3, list("abc"))
    with pytest.raises(NotApplicable, match="video encodes whole clips and has no vectors of frames"):
        FrameSimilarity().analyze(
            study_of(task_data(EF, [at(0, 60)], [50.0], ["test"])), type("M", (), {"name": "video"})
        )
    still = Task("tmed2/as", "binary", "as", ("f1_macro",), ("no_AS", "AS"))
    assert FrameSimilarity().subjects([still, EF]) == {"phantom_echo": (EF,)}


def test_each_clip_counts_once_over_all_tasks():
    data = task_data(EF, [at(0, 60), at(0, 30)], [50.0] * 2, ["test", "train"])
    view = TaskData(EF, data.rows, Embeddings(data.embeddings.vectors, data.embeddings.offsets), "mean")
    study = study_of(data)
    object.__setattr__(study, "tasks", (EF, Task("phantom_echo/again", "regression", "ef", ("mae",))))
    finding = FrameSimilarity().analyze(study, type("M", (), {"name": "m", "frame_wise": True}))
    assert finding.values["frames of a clip"].n == 1 and view.rows.shape[0] == 2


def test_figure_shows_the_matrix_and_the_level_between_patients():
    finding = found([at(0, 60, 120), at(90, 80, 70)], ["a", "b"])
    record = AnalysisResult("frame_similarity", "x", ("x/ef",), finding.values, finding.tables, models=({"name": "m"},))
    left, right = figure.draw(record)["matrix"].axes[:2]
    np.testing.assert_allclose(np.diag(left.images[0].get_array()), 1)
    level = finding.values["frames between patients"].value
    assert any(np.allclose(line.get_ydata(), level) for line in right.lines)
