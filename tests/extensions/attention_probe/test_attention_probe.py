"""Test the attention probe: its definition, labels that are local in time or space, seeds and refusals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

import cardiobench
from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.data.media.types import Clip
from cardiobench.data.phantom.ecg import EcgTruth, ecg_signal
from cardiobench.data.phantom.echo import echo_clip
from cardiobench.data.phantom.echo_cohort import echo_patients
from cardiobench.data.spec import Task
from cardiobench.extensions.attention_probe.protocol import AttentionProbe
from cardiobench.models.load import load_model
from cardiobench.protocols.attention.training import AttentionPooling, AttentionTraining
from cardiobench.protocols.probe import LinearProbe
from cardiobench.runner.cells.answers import refit_answers, seed_scores
from cardiobench.scoring.predictions import Predictions
from cardiobench.tasks.labels import label_set
from tests.protocols.conftest import BINARY, REGRESSION, VIEWS, binary, task_data  # noqa: F401

FS, WINDOW, RUN = 100, 50, 75
QUICK = AttentionProbe(epochs=4, seeds=2, heads=2)


def splits(n):
    return ["train"] * (n // 2) + ["validation"] * (n // 6) + ["test"] * (n - n // 2 - n // 6)


def tokens_of(n, dim=6, seed=0):
    """Return recordings of 1 to 5 tokens."""
    rng = np.random.default_rng(seed)
    return [rng.normal(3, 2, size=(1 + number % 5, dim)) for number in range(n)]


def record(seed, ectopic, gain):
    """Return ten seconds of one heart; an ectopic run is 0.75 s of broad beats at a random position."""
    rng = np.random.default_rng([seed, 7])
    truth = EcgTruth(
        False, False, "normal", rng.uniform(55, 100), rng.uniform(75, 110), rng.uniform(130, 190), seed=seed
    )
    signal = ecg_signal(truth, FS)
    if ectopic:
        broad = EcgTruth(False, True, "lbbb", rng.uniform(120, 150), 150.0, 150.0, seed=seed)
        start = rng.integers(0, len(signal) - RUN)
        signal[start : start + RUN] = ecg_signal(broad, FS)[start : start + RUN]
    return signal * gain


def window_tokens(signal):
    """Hand-made encoder: twenty windows of half a second, with size and slope of four leads."""
    windows = signal.reshape(-1, WINDOW, 12)[:, :, [0, 1, 6, 10]]
    return np.concatenate([windows.std(axis=1), np.abs(np.diff(windows, axis=1)).max(axis=1)], axis=1)


@pytest.mark.slow
def test_attention_beats_mean_only_for_local_labels():
    n, rng = 600, np.random.default_rng(3)
    gains, ectopic = rng.uniform(0.6, 1.6, n), rng.random(n) < 0.5
    low_voltage = gains * np.exp(0.3 * rng.normal(size=n)) < 1
    tokens = [window_tokens(record(seed, *facts)) for seed, facts in enumerate(zip(ectopic, gains, strict=True))]
    areas = {}
    for label, marked in (("local", ectopic), ("global", low_voltage)):
        data = task_data(BINARY, tokens, np.where(marked, "yes", "no"), splits(n))
        truth = data.labels[data.indices("test")]
        for protocol in (AttentionProbe(epochs=60, seeds=1), LinearProbe()):
            areas[label, protocol.name] = roc_auc_score(truth, protocol.predict(data, None, "").values[:, 1])
    assert areas["local", "attention_probe"] > areas["local", "probe"] + 0.05
    assert areas["local", "attention_probe"] > 0.95
    assert areas["global", "probe"] > 0.7
    assert areas["global", "attention_probe"] < areas["global", "probe"] + 0.02


def spotted(record, marked, rng):
    """Return one frame of a phantom with random gain, with a bright disc of 13 pixels at a random position if marked."""
    frame = echo_clip(record.truth, frames=1).astype(float) * rng.uniform(0.6, 1.0)
    row, column = rng.integers(25, 90, 2)
    rows, columns = np.mgrid[: frame.shape[1], : frame.shape[2]]
    disc = (rows - row) ** 2 + (columns - column) ** 2 <= 36
    frame[:, disc & marked] = 255
    return Clip(frame.astype(np.uint8), np.arange(1), 1)


@pytest.mark.slow
def test_attention_over_patches_beats_mean_for_local_labels():
    records = [record for record in echo_patients(300) if record.truth.view != "PLAX"][:400]
    rng = np.random.default_rng(0)
    marked = rng.random(len(records)) < 0.5
    encoder = load_model("cardiobench/random-vit", pooling="tokens").encoder
    clips = (spotted(record, mark, rng) for record, mark in zip(records, marked, strict=True))
    tokens = [encoder.encode(encoder.transform(clip)).flatten(0, 1).numpy() for clip in clips]
    data = task_data(BINARY, tokens, np.where(marked, "yes", "no"), splits(len(records)))
    truth = data.labels[data.indices("test")]
    areas = [
        roc_auc_score(truth, protocol.predict(data, None, "").values[:, 1])
        for protocol in (AttentionProbe(seeds=1), LinearProbe())
    ]
    assert areas[0] > 0.95 and areas[0] > areas[1] + 0.1, areas


@pytest.mark.slow
def test_hundred_recordings_find_one_token_in_thirty():
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(600, 1, 64)) / 2 + rng.normal(size=(600, 30, 64))
    marked = rng.random(600) < 0.5
    tokens[np.flatnonzero(marked), rng.integers(0, 30, marked.sum())] += rng.normal(size=64)  # A direction of length 8.
    split = ["train"] * 100 + ["validation"] * 50 + ["test"] * 450
    data = task_data(BINARY, list(tokens), np.where(marked, "yes", "no"), split)
    area, of_mean = (
        roc_auc_score(marked[150:], protocol.predict(data, None, "").values[:, 1])
        for protocol in (AttentionProbe(seeds=1), LinearProbe())
    )
    assert area > 0.85 and area > of_mean + 0.2, (area, of_mean)


def test_head_pools_weighted_mean_without_padding():
    generator = torch.Generator().manual_seed(0)
    mean, deviation = torch.randn(6, generator=generator), torch.rand(6, generator=generator) + 0.5
    probe, tokens = AttentionPooling(3, 2, mean, deviation), torch.randn(4, 5, 6, generator=generator)
    standardised, lengths = (tokens - mean) / deviation, torch.tensor([5, 1, 3, 2])
    means = torch.stack([one[:length].mean(dim=0) for one, length in zip(standardised, lengths, strict=True)])
    with torch.no_grad():
        probe.query.zero_()
        torch.testing.assert_close(probe(tokens, lengths), probe.head(means.repeat(1, 3)), msg="no query: the mean")
        probe.query.copy_(torch.randn(3, 6, generator=generator))
    for number, length in enumerate(lengths):
        own = standardised[number, :length]
        # Use PyTorch's attention, one query at a time.
        gathered = [
            torch.nn.functional.scaled_dot_product_attention(query[None, None], own[None], own[None]).flatten()
            for query in probe.query
        ]
        torch.testing.assert_close(probe(tokens, lengths)[number], probe.head(torch.cat(gathered)))


def task_of(kind, n=60):
    """Return recordings whose label follows the largest first component of their tokens; many have a single token."""
    tokens = tokens_of(n)
    largest = np.array([one[:, 0].max() for one in tokens])
    labels = {
        "regression": largest,
        "binary": np.where(largest > np.median(largest), "yes", "no"),
        "multiclass": np.array(VIEWS.classes)[np.digitize(largest, np.quantile(largest, [1 / 3, 2 / 3]))],
        "multilabel": [label_set(["A"] * int(value > 4), ("A", "B"), ["B"] * int(value > 5)) for value in largest],
    }[kind]
    findings = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("A", "B"), partially_labelled=True)
    task = {"regression": REGRESSION, "binary": BINARY, "multiclass": VIEWS, "multilabel": findings}[kind]
    return task_data(task, tokens, labels, splits(n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass", "multilabel"])
def test_all_task_kinds_depend_on_the_seed(kind):
    data = task_of(kind)
    output, again = QUICK.predict(data, None, ""), QUICK.predict(data, None, "")
    assert (output.values == again.values).all() and output.details == again.details
    np.testing.assert_allclose(output.values, np.mean(output.repeats, axis=0))
    assert len(output.repeats) == 2 and not np.allclose(*output.repeats)
    assert not np.allclose(output.values, replace(QUICK, seed=7).predict(data, None, "").values)
    assert output.details["tokens"] == [1, 5] and len(output.details["epoch"]) == 2
    assert len(output.values) == len(data.indices("test")) and np.isfinite(output.values).all()
    if kind in ("binary", "multiclass"):
        np.testing.assert_allclose(output.values.sum(axis=1), 1)


def test_best_epoch_predicts_at_any_batch_size():
    data = task_of("regression")
    fit, held = data.indices("train"), data.indices("validation")
    training = AttentionTraining(data, fit, held, replace(QUICK, epochs=500, learning_rate=0.1, patience=3))
    probe, details = training.train(0)
    truth, scale = data.labels[held], data.labels[fit].std()
    loss = np.mean((training.predict(probe, held) - truth) ** 2) / scale**2
    assert details["validation_loss"] == pytest.approx(loss, rel=1e-4) and 1 <= details["epoch"] < 498
    one_by_one = np.concatenate([training.predict(probe, held[[n]]) for n in range(len(held))])
    np.testing.assert_allclose(one_by_one, training.predict(probe, held), rtol=1e-5)


@pytest.mark.slow
def test_test_recordings_and_labels_are_not_used():
    data = task_of("binary")
    test = data.indices("test")
    changed = data.rows.assign(
        **{BINARY.target: np.where(data.rows["split"] == "test", "no", data.rows[BINARY.target])}
    )
    assert (QUICK.predict(replace(data, rows=changed), None, "").values == QUICK.predict(data, None, "").values).all()
    vectors = data.embeddings.vectors.copy()
    vectors[data.embeddings.offsets[test[1]] :] *= 100
    other = replace(data, embeddings=replace(data.embeddings, vectors=vectors))
    assert (QUICK.predict(other, None, "").values[0] == QUICK.predict(data, None, "").values[0]).all()


def test_unmeasured_class_adds_no_loss():
    data = task_of("multilabel")
    rows = np.arange(len(data.rows))
    training = AttentionTraining(data, rows, rows, QUICK)
    outputs = torch.zeros(len(rows), 2)
    unmeasured = np.isnan(data.labels)
    outputs[torch.from_numpy(unmeasured)] = 1e6
    assert unmeasured.any() and float(training._loss(outputs, rows)) == pytest.approx(np.log(2), rel=1e-6)


def test_fifth_of_train_replaces_missing_validation():
    data = task_of("binary")
    rows = data.rows.assign(split=data.rows["split"].replace({"validation": "train"}))
    details = QUICK.predict(replace(data, rows=rows), None, "").details
    assert (details["fitted_on"], details["stopped_by"]) == (32, 8)


def test_unmeasured_validation_recordings_are_allowed():
    data = task_of("multilabel")
    validation = (data.rows["split"] == "validation").to_numpy()
    unmeasured = data.rows["findings"].where(~validation, "?A;?B")
    details = QUICK.predict(replace(data, rows=data.rows.assign(findings=unmeasured)), None, "").details
    assert (details["fitted_on"], details["stopped_by"]) == (24, 6)
    one_left = unmeasured.where(data.rows.index != np.flatnonzero(validation)[0], "A")
    details = QUICK.predict(replace(data, rows=data.rows.assign(findings=one_left)), None, "").details
    assert (details["fitted_on"], details["stopped_by"]) == (30, 1)


def test_score_of_every_seed_is_in_the_result():
    data = task_of("regression")
    output = QUICK.predict(data, None, "")
    ids = data.rows["id"].to_numpy()[output.indices]
    truth = data.labels[output.indices]
    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": truth})
    predictions = Predictions.join(references, pd.DataFrame({"id": ids, "y_pred": output.values}), REGRESSION)
    refits = refit_answers(data, output, predictions.frame["id"])
    found = seed_scores(replace(predictions, refits=refits))
    expected = [np.abs(values - truth).mean() for values in output.repeats]
    assert found["seed_scores"] == pytest.approx(expected)
    assert found["seed_sd"] == pytest.approx(np.std(expected, ddof=1))
    assert (
        seed_scores(predictions) == {}
        and refit_answers(data, replace(output, repeats=()), predictions.frame["id"]) is None
    )


def test_one_vector_per_recording_is_refused(binary):  # noqa: F811
    with pytest.raises(NotApplicable, match="so there is nothing to attend to"):
        QUICK.predict(binary, None, "")


@pytest.mark.parametrize(("given", "advice"), [(False, "--pooling tokens"), (True, "several rows per id")])
def test_single_vectors_per_recording_are_refused_with_advice(given, advice, tmp_path, capsys):
    refs = cardiobench.load_references("ptb_xl_sample/cd")
    refs[["id"]].assign(v0=1.0, v1=2.0).to_csv(tmp_path / "one.csv", index=False)
    model = (
        ["--embeddings", str(tmp_path / "one.csv"), "--seen-in-pretraining", "none"]
        if given
        else ["--model", "cardiobench/constant"]
    )
    folders = ["--output-dir", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "cache")]
    line = ["eval", *model, "--tasks", "ptb_xl_sample/cd", "--protocols", "attention_probe", "--workers", "0", "--json"]
    main([*line, *folders])
    (refused,) = json.loads(capsys.readouterr().out)["not_applicable"]
    assert "so there is nothing to attend to" in refused["reason"] and advice in refused["reason"]
    assert ("--pooling" in refused["reason"]) is not given


def test_device_of_the_run_is_used_or_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run = RunConfig(device="cpu")
    assert AttentionProbe.from_config(run).device == "cpu"
    assert AttentionProbe.from_config(run, device="auto").device == "auto"
    with pytest.raises(CardioBenchError, match=r"attention_probe\.device is cuda"):
        replace(QUICK, device="cuda").predict(task_of("binary"), None, "")
