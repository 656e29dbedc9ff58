"""Check the scripts that score published networks and answers, on invented clones; and on real ones where they are."""

import importlib.util
import os
import pickle
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from benchmarks.real import answers, frames, networks, rows, sources
from cardiobench.core.errors import BadData, MissingData
from cardiobench.data import catalog
from cardiobench.data.media import Ecg

CLONES = "CARDIOBENCH_REAL"
CLOSE = 0.005
"""Largest difference of a score between processors, in the unit of the row."""


def invented(content, name="weights.pt"):
    return sources.Source("lab/net", "c0ffee", {name: sha256(content).hexdigest()})


def test_files_of_another_commit_are_refused(tmp_path):
    source = invented(b"weights")
    with pytest.raises(MissingData, match=r"weights\.pt does not exist.*github\.com/lab/net.*checkout c0ffee"):
        source.read(tmp_path, "weights.pt")
    (tmp_path / "weights.pt").write_bytes(b"others")
    with pytest.raises(BadData, match=rf"{sha256(b'others').hexdigest()}; at commit c0ffee it is .*checkout c0ffee"):
        source.read(tmp_path, "weights.pt")
    (tmp_path / "weights.pt").write_bytes(b"weights")
    assert source.read(tmp_path, "weights.pt") == b"weights"


@pytest.mark.parametrize("kind", ["<f4", "<i8"])
def test_dumped_array_is_read_without_executing_its_pickle(kind):
    array = np.random.default_rng(0).normal(0, 1000, size=(7, 5)).astype(kind)
    found = answers.array_of_pickle(pickle.dumps(array, protocol=2), (7, 5), kind)
    np.testing.assert_array_equal(found, array)


def test_pickle_with_code_is_not_executed(tmp_path):
    class Hostile:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    with pytest.raises(BadData, match="has another size"):
        answers.array_of_pickle(pickle.dumps(Hostile(), protocol=2), (7, 5), "<f4")
    assert not (tmp_path / "executed").exists()


def checkpoint(name):
    """Return modules with random weights in the layout of a published checkpoint, and its content."""
    made = {
        "trustecg": (networks.Trust(), networks.TrustEcg, [128, 128, 64, 5]),
        "ecg_scope": (networks.Scope(), networks.EcgScope, [128, 64, 5]),
        "inceptiontime": (networks.Inception(), networks.InceptionTime, [128, 5]),
    }
    network, model, widths = made[name]
    state = dict(network.state_dict())
    places = {"trustecg": (0, 3, 6), "ecg_scope": (0, 3), "inceptiontime": ("",)}[name]
    for place, inside, outside in zip(places, widths, widths[1:], strict=False):
        layer = torch.nn.Linear(inside, outside)
        prefix = f"{model.head}.{place}" if place != "" else model.head
        state |= {f"{prefix}.{key}": value for key, value in layer.state_dict().items()}
    return model, state


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_networks_read_their_checkpoints_and_answer_with_their_heads(name, tmp_path, monkeypatch):
    torch.manual_seed(0)
    model, state = checkpoint(name)
    torch.save(state, tmp_path / "weights.pt")
    monkeypatch.setattr(model, "source", invented((tmp_path / "weights.pt").read_bytes()))
    encoder = model(tmp_path)
    ecgs = [Ecg(np.random.default_rng(seed).normal(size=(1000, 12)).astype(np.float32), 100.0) for seed in range(2)]
    parts = torch.cat([encoder.transform(ecg) for ecg in ecgs])
    assert parts.shape == (2, 12, 1000) and abs(parts.mean()) < 1e-3 and abs(parts.std() - 1) < 1e-2
    vectors = encoder.encode(parts)
    assert vectors.shape == (2, 128)
    found = encoder.predict_native("super", [one[None].numpy() for one in vectors])
    with torch.no_grad():
        logits = encoder.classifier(vectors)
    wanted = dict(zip(model.order, torch.sigmoid(logits).double().numpy().T, strict=True))
    for column, label in enumerate(catalog.task(networks.TASK).classes):
        np.testing.assert_allclose(found[:, column], wanted[label], atol=1e-7)
    torch.save({**state, "unknown": torch.zeros(1)}, tmp_path / "weights.pt")
    monkeypatch.setattr(model, "source", invented((tmp_path / "weights.pt").read_bytes()))
    with pytest.raises(RuntimeError, match="unknown"):
        model(tmp_path)


def test_scores_are_computed_again_by_hand():
    truth = ["A", "A;B", "nothing", "B"]
    several = pd.DataFrame({"y_true": truth, "p_A": [0.9, 0.2, 0.3, 0.1], "p_B": [0.1, 0.8, 0.2, 0.3]})
    assert rows.recomputed("auroc_macro", several, "AB") == pytest.approx((3 / 4 + 1) / 2)
    decided = pd.DataFrame({"y_true": truth, "y_pred": ["A", "B", "A", "B"]})
    assert rows.recomputed("multilabel_f1", decided, "AB") == pytest.approx((1 / 2 + 1) / 2)
    assert rows.recomputed("mae", pd.DataFrame({"y_true": [1.0, 2.0], "y_pred": [2.0, 4.0]}), ()) == 1.5


def write_answers(clone, change=0.0):
    """Write answers of three networks in the layout of the repository, and their scores by scikit-learn plus a change."""
    rng, classes, files = np.random.default_rng(0), ("NORM", "MI", "STTC", "CD", "HYP"), {}
    for name in sources.FUSION_MODELS:
        truth, given = rng.random((30, 5)) < 0.4, rng.random((30, 5))
        both = {"true": truth.astype(int), "prob": given}
        columns = {f"{label}_{kind}": one[:, n] for n, label in enumerate(classes) for kind, one in both.items()}
        table = pd.DataFrame({"ecg_id": range(9, 39), "split": "test", **columns})
        score = roc_auc_score(truth, given) + change
        start = f"results/stage14l/{name}/stage14l_{name}_mlp"
        for part, content in (
            ("test_predictions", table),
            ("metrics_test", pd.DataFrame({"label": ["macro", "NORM"], "auroc": [score, 0.5]})),
        ):
            path = clone / f"{start}_{part}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.to_csv(index=False))
            files[f"{start}_{part}.csv"] = sha256(path.read_bytes()).hexdigest()
    return replace(sources.FUSION, files=files)


def test_answers_to_fold_10_equal_the_table_of_their_authors(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "FUSION", write_answers(tmp_path))
    found = answers.fusion(tmp_path)
    assert [(row.what, row.n, row.patients, row.seen) for row in found] == [
        (f"seefreewind/{name}_mlp", 30, None, True) for name in sources.FUSION_MODELS
    ]
    monkeypatch.setattr(answers, "FUSION", write_answers(tmp_path, change=1e-9))
    with pytest.raises(BadData, match=r"signal_embedding_mlp: auroc_macro is .* in metrics_test\.csv"):
        answers.fusion(tmp_path)


def test_score_that_differs_is_an_error():
    references = pd.DataFrame({"id": list("abcd"), "patient_id": list("abcd"), "split": "test"})
    references["y_true"] = ["1dAVb", "RBBB;LBBB", "SB;ST", "AF;ST;SB"]
    columns = {f"p_{name}": [0.1, 0.6, 0.3, 0.8] for name in catalog.task("code_test/six").classes}
    given = pd.DataFrame({"id": list("abcd"), **columns})
    result = answers.score_and_check(given, "code_test/six", references, "lab/net", "none")
    wrong = replace(
        result, overall={**result.overall, result.metric: replace(result.score, value=result.score.value + 1e-9)}
    )
    with pytest.raises(BadData, match="by scikit-learn on the same answers"):
        rows.check(wrong, given.merge(references), catalog.task("code_test/six").classes)


def test_area_counts_the_pixels_of_the_ventricle_in_their_size(tmp_path):
    mask = np.zeros((10, 10, 1), np.int16)
    mask[2:6, 2:7], mask[7:] = 1, 2
    image = nibabel.Nifti1Image(mask, np.eye(4))
    image.header.set_zooms((0.5, 2.0, 1.0))
    nibabel.save(image, tmp_path / "mask.nii")
    assert frames.area(tmp_path / "mask.nii") == pytest.approx(0.2)
    with pytest.raises(BadData, match=r"has 0 frames with masks.*github\.com/sarah1ibrahim"):
        frames.labels(tmp_path)


@pytest.fixture
def writer(root):
    spec = importlib.util.spec_from_file_location("make_real_networks", root / "docs" / "make_real_networks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_has_the_measured_rows(writer, root):
    measured = writer.read_rows()
    assert (root / "docs" / "real_networks.md").read_text(encoding="utf-8") == writer.page(measured)
    assert set(measured) == set(writer.TEXTS)


def test_first_screen_has_scores_of_the_page(writer, root):
    text = (root / "README.md").read_text(encoding="utf-8")
    for line in writer.short(writer.read_rows()).splitlines():
        assert line in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["code_test", "ecg_scope", "fusion", "inceptiontime", "onnx", "trustecg", "xresnet1d101"]
)
def test_real_clones_have_the_stated_scores(writer, name):
    from benchmarks.real.__main__ import run

    folder = Path(os.environ.get(CLONES, "")) / sources.SOURCES[name].name
    if CLONES not in os.environ or not folder.is_dir():
        pytest.skip(f"no clone of a published network: {CLONES} names no folder that has it")
    for found, stated in zip(run(name, folder.parent), writer.read_rows()[name], strict=True):
        assert found == replace(stated, value=found.value, low=found.low, high=found.high)
        assert abs(found.value - stated.value) < CLOSE, name
