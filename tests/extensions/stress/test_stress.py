"""Test disturbances pixel by pixel and frame by frame, and the predictions on disturbed recordings."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.media.types import Clip, Ecg
from cardiobench.data.references import references_of
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.extensions.stress import ecg, echo
from cardiobench.extensions.stress import figures as figure
from cardiobench.extensions.stress.protocol import Stress
from cardiobench.models.load import load_model
from cardiobench.protocols.base import TaskData, aggregate
from cardiobench.protocols.probe import LinearProbe
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import ResultContext
from cardiobench.scoring.compare import compare
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.testing.protocol import with_other_test_rows
from tests.protocols.analyses import layers_of, study_of
from tests.protocols.conftest import BINARY, task_data


def clip(frames):
    frames = np.asarray(frames, dtype=np.uint8)
    return Clip(frames, np.arange(len(frames)), len(frames), 30.0)


@pytest.fixture
def numbered():
    """Return ten frames; all pixels of a frame have its index as grey level."""
    return clip(np.arange(10)[:, None, None, None] * np.ones((1, 4, 4, 3)))


def order(found):
    return found.frames[:, 0, 0, 0].tolist()


def rng(seed=0):
    return np.random.default_rng(seed)


def test_shuffling_moves_only_a_share_of_frames():
    whole = echo.shuffle(10, 1.0, rng()).tolist()
    assert sorted(whole) == list(range(10)) and whole != list(range(10))
    half = echo.shuffle(10, 0.5, rng(1)).tolist()
    assert sorted(half) == list(range(10)) and sum(a != b for a, b in enumerate(half)) <= 5
    assert echo.shuffle(10, 0.0, rng()).tolist() == list(range(10))


def test_reversed_and_dropped_frames(numbered):
    assert order(echo.KINDS["reverse"][0](numbered, 1.0, rng())) == list(range(9, -1, -1))
    lost = echo.drop(10, 0.5, rng()).tolist()
    assert lost[0] == 0 and len(set(lost)) == 5 and lost == sorted(lost), "the previous frame replaces a lost frame"
    assert echo.drop(1, 0.75, rng()).tolist() == [0]


def test_brightness_by_hand():
    pixels = clip(np.array([0, 50, 100, 200])[None, None, :, None] * np.ones((1, 1, 4, 3)))
    assert echo.gain(pixels, 0.5, rng()).frames[0, 0, :, 0].tolist() == [0, 75, 150, 255]
    # The mean of the lit pixels is (50 + 100 + 200) / 3 = 116.7; move half the distance towards it.
    assert echo.contrast(pixels, 0.5, rng()).frames[0, 0, :, 0].tolist() == [0, 83, 108, 158]


def test_speckle_has_requested_deviation_and_keeps_black():
    grey = clip(np.full((8, 64, 64, 3), 100))
    noisy = echo.speckle(grey, 0.2, rng()).frames.astype(float)
    assert noisy.mean() == pytest.approx(100, abs=1) and noisy[..., 0].std() == pytest.approx(20, rel=0.05)
    assert (noisy[..., 0] == noisy[..., 2]).all(), "grey pixels stay grey"
    assert not echo.speckle(clip(np.zeros((2, 8, 8, 3))), 0.4, rng()).frames.any()


def test_sector_loses_its_sides():
    """Return a sector of 40 degrees to either side, of which a share will be lost."""
    rows, columns = np.mgrid[:200, :201]
    angle = np.rad2deg(np.abs(np.arctan2(columns - 100, rows + 1)))
    full = clip(np.where(angle <= 40, 80, 0)[None, :, :, None] * np.ones((2, 1, 1, 3)))
    for share in (0.1, 0.5):
        kept = echo.sector(full, share, rng()).frames[0, :, :, 0] > 0
        assert (kept == kept[:, ::-1]).all()
        assert angle[kept].max() == pytest.approx(40 * (1 - share), abs=1)
        assert kept[angle < 40 * (1 - share) - 1].all()


@pytest.mark.parametrize("name", list(echo.KINDS))
def test_disturbances_keep_clip_shape_and_original(name, numbered):
    apply, severities = echo.KINDS[name]
    before = numbered.frames.copy()
    for severity in severities:
        found = apply(numbered, severity, rng())
        assert found.frames.shape == before.shape and found.frames.dtype == np.uint8
        np.testing.assert_array_equal(found.frames, apply(numbered, severity, rng()).frames)
    np.testing.assert_array_equal(numbered.frames, before)


def test_ecg_noise_and_leads():
    quiet = Ecg(np.ones((5000, 12), dtype=np.float32), 500.0)
    assert ecg.noise(quiet, 0.1, rng()).signal.std() == pytest.approx(0.1, rel=0.02)
    off = ecg.leads_off(quiet, 3, rng()).signal
    assert (off == 0).all(axis=0).sum() == 3 and off.dtype == np.float32


def test_disturbance_depends_on_recording():
    echo_names = {change.name for change in Stress().perturbations([catalog.task("phantom_echo/ef")])}
    assert echo_names == set(echo.KINDS)
    stills = {change.name for change in Stress().perturbations([catalog.task("tmed2/as")])}
    assert stills == {"gain", "contrast", "speckle", "sector"}, "frames of a still image have no order"
    assert {change.name for change in Stress().perturbations([catalog.task("ptb_xl/cd")])} == set(ecg.KINDS)
    assert {change.name for change in Stress(kinds=("shuffle",)).perturbations([catalog.task("camus/ef")])} == {
        "shuffle"
    }


EF = Task("phantom_echo/ef", "regression", "ef", ("mae",), unit="%")


def real_study(name, patients=36):
    """Return embeddings of generated clips, and of the same clips with shuffled frames."""
    builder = catalog.builder("phantom_echo")
    table = builder.table(None).frame
    rows = table[table["view"].isin(("A4C",))].head(patients).reset_index(drop=True)
    rows["split"] = np.where(np.arange(len(rows)) % 3 == 0, "test", "train")
    encoder = load_model(name).encoder

    def embedded(part, change=None):
        vectors = []
        for row in part.to_dict("records"):
            recording = builder.recording(None, row, encoder.sampling)
            if change is not None:
                recording = change.apply(recording, change.severity, np.random.default_rng(0))
            vectors.append(encoder.encode(encoder.transform(recording)).numpy())
        offsets = np.r_[0, np.cumsum([len(found) for found in vectors])]
        return TaskData(EF, part, Embeddings(np.concatenate(vectors), offsets), encoder.pooling)

    base = embedded(rows)
    test = rows[rows["split"] == "test"].reset_index(drop=True)
    return study_of(base, lambda change: base if change is None else embedded(test, change)), encoder


@pytest.mark.slow
@pytest.mark.parametrize("name, moves", [("cardiobench/pixel-motion", True), ("cardiobench/random-vit", False)])
def test_shuffling_frames_separates_motion_models(name, moves):
    study, encoder = real_study(name, 36 if moves else 15)
    protocol = Stress(kinds=("shuffle",))
    finding = protocol.analyze(study, encoder)
    scores = finding.tables["scores"].set_index(["change", "severity"])["score"]
    if moves:
        assert abs(scores["shuffle", 1.0] - scores["none", 0.0]) > 0.05
    else:
        assert scores["shuffle", 1.0] == pytest.approx(scores["none", 0.0], abs=1e-6)
    model_free = finding.values["probe: shuffle 1, change"]
    assert model_free.value == pytest.approx(scores["shuffle", 1.0] - scores["none", 0.0])


def made(strength, shift=0.0, split=None):
    labels = ["no", "yes"] * 40
    features = np.where(np.array(labels) == "yes", strength, -strength)[:, None] * np.array([[1.0, 0.0]]) + shift
    return task_data(
        Task("phantom_echo/as", "binary", "as", ("f1_macro",), BINARY.classes),
        features,
        labels,
        split or (["train"] * 40 + ["test"] * 40),
    )


def test_probe_is_fitted_once_for_all_changes():
    """Test a disturbance that negates every feature and so reverses every prediction: macro F1 falls from 1 to 0."""
    base = made(1.0)
    turned = made(-1.0)
    rows = turned.rows[turned.rows["split"] == "test"].reset_index(drop=True)
    changed = TaskData(base.task, rows, Embeddings(turned.features[40:].astype(np.float32), np.arange(41)), "mean")
    study = study_of(base, lambda change: base if change is None else changed)
    finding = Stress(kinds=("gain",)).analyze(study, load_model("cardiobench/constant"))
    table = finding.tables["scores"]
    assert table["score"].tolist() == [1.0, 0.0, 0.0] and table["floor"].unique() == pytest.approx(1 / 2)
    assert finding.values["probe: gain 1, change"].value == -1.0
    record = AnalysisResult("stress", "x/as", ("x/as",), finding.values, finding.tables, models=({"name": "m"},))
    panels = [axes for axes in figure.draw(record)["severity"].axes if axes.get_visible()]
    assert [axes.get_title() for axes in panels] == ["gain"]


def test_disturbed_patients_are_compared_with_themselves():
    """Return predictions wrong for every second of 20 test patients with two recordings; 5 patients are disturbed."""
    base = made(1.0)
    patients = [f"p{n // 2}" for n in range(80)]
    base = TaskData(base.task, base.rows.assign(patient_id=patients), base.embeddings, "mean")
    change = Stress(kinds=("gain",), patients=5).perturbations([base.task])[0]
    rows = change.rows(base.rows)
    assert rows["patient_id"].nunique() == 5 and len(rows) == 10 and set(rows["split"]) == {"test"}
    assert len(change.rows(base.rows[::-1])) == 10 and set(change.rows(base.rows[::-1])["id"]) == set(rows["id"])
    lines = [base.rows["id"].tolist().index(name) for name in rows["id"]]
    part = Embeddings(base.embeddings.vectors[lines], np.arange(11))
    changed = TaskData(base.task, rows.reset_index(drop=True), part, "mean")
    study = study_of(base, lambda change: changed)
    finding = Stress(kinds=("gain",), patients=5).analyze(study, load_model("cardiobench/constant"))
    assert finding.warnings == ("5 of 20 test patients were disturbed",)
    assert (finding.tables["scores"]["difference"] == 0).all() and finding.values["probe: undisturbed"].n == 10
    assert Stress(patients=None).perturbations([base.task])[0].rows(base.rows)["patient_id"].nunique() == 20


def test_intervals_equal_results_and_compare():
    """Test disturbed recordings in another order, without one that could not be encoded."""
    base = made(1.0)
    lost = base.rows.index[base.rows["split"] == "test"][3]
    test = [row for row in base.rows.index[base.rows["split"] == "test"][::-1] if row != lost]
    noisy = base.features[test] + np.random.default_rng(0).normal(size=(len(test), 2))
    changed = TaskData(
        base.task,
        base.rows.loc[test].reset_index(drop=True),
        Embeddings(noisy.astype(np.float32), np.arange(len(test) + 1)),
        "mean",
    )
    study = study_of(base, lambda change: changed)
    found = Stress(kinds=("gain",)).analyze(study, load_model("cardiobench/constant"))
    probe = LinearProbe().fit(base)
    references = references_of(base.rows.drop(index=lost), base.task)
    (clean, disturbed) = (
        Predictions.join(references, answers.loc[answers["id"] != base.rows["id"][lost]], base.task, source="")
        for answers in (aggregate(data, probe.predict(data)) for data in (base, changed))
    )
    row = found.tables["scores"].iloc[-1]
    known = score(disturbed, references, ResultContext(resamples=100)).score
    assert tuple(row[["score", "low", "high"]]) == pytest.approx((known.value, known.low, known.high), abs=1e-12)
    known = compare(disturbed, clean, resamples=100)
    columns = ["difference", "difference_low", "difference_high"]
    assert tuple(row[columns]) == pytest.approx((known.difference, known.low, known.high), abs=1e-12)
    assert (found.tables["scores"].iloc[0][columns] == 0).all(), "an undisturbed recording from its copy"


def test_models_without_predictions_are_not_applicable():
    data = made(1.0, split=["validation"] * 40 + ["test"] * 40)
    with pytest.raises(NotApplicable, match=r"no training rows.*no trained heads.*no text tower"):
        Stress().analyze(study_of(data), load_model("cardiobench/constant"))


def test_changes_are_part_of_the_key():
    keys = [change.key for change in Stress().perturbations([catalog.task("phantom_echo/ef")])]
    assert len(keys) == len(set(keys)) == sum(len(severities) for _, severities in echo.KINDS.values())
    assert "shuffle-1-v1" in keys
    assert Stress(patients=None).patients is None


def test_probe_learns_nothing_from_test_rows(monkeypatch):
    base = made(1.0)

    def layers(data):
        test = data.indices("test")
        part = Embeddings(data.embeddings.vectors[test], np.arange(len(test) + 1))
        clean = replace(data, rows=data.rows.iloc[test].reset_index(drop=True), embeddings=part)
        study = study_of(data, lambda change: data if change is None else clean)
        return layers_of(
            monkeypatch, lambda: Stress(kinds=("gain",)).analyze(study, load_model("cardiobench/constant"))
        )

    before, after = layers(base), layers(with_other_test_rows(base))
    assert len(before) == len(after) and all(map(np.array_equal, before, after))
