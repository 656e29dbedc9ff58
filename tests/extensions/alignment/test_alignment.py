"""Test alignment on constructed towers with the correlation and zero-shot error known from theory."""

import dataclasses

import numpy as np
import pytest
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.prompts import prompts
from cardiobench.extensions.alignment import figures as figure
from cardiobench.extensions.alignment.protocol import Alignment
from cardiobench.protocols.zero_shot import ZeroShot
from cardiobench.results.analysis_result import AnalysisResult
from tests.protocols.analyses import study_of
from tests.protocols.conftest import REGRESSION, task_data

EF = dataclasses.replace(REGRESSION, name="phantom_echo/ef")  # Tasks with prompts.
ARC = 0.5  # Radians covered by the prompt numbers 0 to 100.
N, NOISE = 6000, 8.0  # Number of recordings, and standard deviation of the shown number around the truth, in points.


class Pair:
    """Texts lie on an arc at the angle of their number; an image lies on the arc at the number that it shows."""

    name, modalities, pooling, dim, logit_scale = "pair", ("echo",), "mean_l2", 3, 10.0
    revision, sampling, preprocessing, loaded_by, warnings = "0", None, {}, "", ()

    def transform(self, recording): ...

    def encode(self, parts): ...

    def to(self, device):
        return self

    def encode_text(self, texts):
        numbers = [float("".join(sign for sign in text if sign.isdigit())) for text in texts]
        return torch.tensor(on_arc(np.array(numbers)), dtype=torch.float32)


def on_arc(numbers):
    angle = ARC * (numbers - 50) / 100
    return np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    truth = rng.normal(55, 10, N)
    shown = truth + rng.normal(0, NOISE, N)
    patients = [f"p{n // 2}" for n in range(N)]
    return task_data(EF, on_arc(shown), truth, ["test"] * N, patients, pooling="mean_l2")


def test_correlation_equals_its_theoretical_value(drawn):
    finding = Alignment().analyze(study_of(drawn, resamples=200), Pair())
    found = finding.values["text_axis_pearson"]
    # The truth has deviation 10 and the noise 8: r = 10 / sqrt(10^2 + 8^2).
    assert found.value == pytest.approx(10 / np.hypot(10, NOISE), abs=0.02)
    assert found.low < found.value < found.high and found.n_patients == N // 2
    assert found.high - found.low < 0.05
    assert finding.values["explained_variance"].value > 0.95, "an arc this short is almost straight"
    assert finding.values["p_value"].value < 0.002
    # The axis points along the second coordinate and increases with the number.
    along = finding.tables["recordings"]["along"].to_numpy()
    np.testing.assert_allclose(along, drawn.features[:, 1], atol=1e-6)


@pytest.mark.slow
def test_maps_of_prompts_and_recordings_on_request(drawn):
    few = task_data(EF, drawn.features[:60], drawn.labels[:60], ["test"] * 60, pooling="mean_l2")
    plain, found = (Alignment(draw_maps=maps).analyze(study_of(few, resamples=20), Pair()) for maps in (False, True))
    assert found.values == plain.values, "the map changes no number"
    for name, table in plain.tables.items():
        assert found.tables[name][["x", "y"]].notna().all().all()
        assert found.tables[name].drop(columns=["x", "y"]).equals(table)
    assert [one.get_title() for one in figure.draw(record_of(found))["maps"].axes[:2]] == [
        "101 prompts",
        "60 recordings",
    ]
    assert set(figure.draw(record_of(plain))) == {"axis"}
    alone = task_data(EF, drawn.features[:3], drawn.labels[:3], ["test"] * 3, pooling="mean_l2")
    found = Alignment(draw_maps=True).analyze(study_of(alone, resamples=20), Pair())
    assert found.warnings == ("no map of 3 recordings: it needs 4",) and "x" in found.tables["texts"]


@pytest.mark.slow
def test_text_axis_does_not_depend_on_labels(drawn):
    rows = drawn.rows.assign(ef=100 - drawn.rows["ef"])
    one, other = (
        Alignment().analyze(study_of(data, resamples=20), Pair())
        for data in (drawn, dataclasses.replace(drawn, rows=rows))
    )
    assert other.values["text_axis_pearson"].value == pytest.approx(-one.values["text_axis_pearson"].value)
    assert (one.tables["recordings"]["along"] == other.tables["recordings"]["along"]).all()


def test_zero_shot_error_equals_its_theoretical_value(drawn):
    """Check the error against that of the noise, NOISE x sqrt(2 / pi), since the nearest prompts lie around the shown number."""
    lines = np.arange(1500)
    answers = ZeroShot().predict_numbers(drawn, Pair(), prompts(EF)[0]["templates"], lines, "per_frame_median")
    inside = (answers > 12) & (answers < 88)  # At both ends of the range, all nearest prompts lie on one side.
    error = np.abs(answers - drawn.labels[lines])[inside].mean()
    assert error == pytest.approx(NOISE * np.sqrt(2 / np.pi), rel=0.06)


def test_images_across_the_axis_are_uncorrelated(drawn):
    rng = np.random.default_rng(1)
    features = np.stack([np.ones(N), 0.01 * rng.normal(size=N), drawn.labels / 100], axis=1)
    data = task_data(EF, features, drawn.labels, ["test"] * N, pooling="mean_l2")
    found = Alignment().analyze(study_of(data, resamples=100), Pair()).values["text_axis_pearson"]
    assert abs(found.value) < 0.05


def test_models_without_text_or_axis_are_not_applicable(drawn):
    mute = type("Mute", (), {k: v for k, v in vars(Pair).items() if k != "encode_text" and k[:2] != "__"})()
    with pytest.raises(NotApplicable, match="no text tower"):
        Alignment().analyze(study_of(drawn), mute)
    deaf = type("Deaf", (Pair,), {"encode_text": lambda self, texts: torch.ones(len(texts), 3) / np.sqrt(3)})()
    with pytest.raises(NotApplicable, match="same vector for every prompt"):
        Alignment().analyze(study_of(drawn), deaf)


def record_of(finding):
    """Return the record of a finding that a run saves."""
    model = {"name": "pair"}
    return AnalysisResult(
        "alignment", "toy/ef", ("toy/ef",), finding.values, finding.tables, options=finding.options, models=(model,)
    )


@pytest.mark.slow
def test_figure_shows_every_recording_and_r(drawn):
    finding = Alignment().analyze(study_of(drawn, resamples=100), Pair())
    drawing = figure.draw(record_of(finding))["axis"]
    below = drawing.axes[1]
    assert len(below.lines[0].get_xdata()) == N and "r = 0.7" in below.get_title()
