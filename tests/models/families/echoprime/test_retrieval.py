"""Test predictions by retrieval on hand-worked banks, and the files of banks."""

import os
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadModel, NotApplicable
from cardiobench.data.spec import VIEWS as BENCHMARK_VIEWS
from cardiobench.models.families.echoprime.adapter import EchoPrimeEncoder, stenosis, view_probabilities
from cardiobench.models.families.echoprime.files import read_labels, read_retrieval, read_section_weights
from cardiobench.models.families.echoprime.retrieval import (
    SECTION_OF,
    VIEWS,
    CandidateBank,
    SectionWeights,
    answers,
    nearest,
    report,
    row_of,
    section_vectors,
)
from cardiobench.models.files import given_files
from tests.models.families.echoprime import checkpoint

A2C, A4C, A5C = (VIEWS.index(name) for name in ("A2C", "A4C", "A5C"))


def recording(direction: int, view: int, length: float = 1.0) -> np.ndarray:
    """Return a stored vector along one axis."""
    vector = np.zeros(523, dtype=np.float32)
    vector[direction], vector[512 + view] = length, 1
    return vector


def table(**rows: dict[int, float]) -> SectionWeights:
    weights = np.zeros((len(rows), len(VIEWS)))
    for row, shares in zip(weights, rows.values(), strict=True):
        for view, share in shares.items():
            row[view] = share
    return SectionWeights(tuple(name.replace("_", " ") for name in rows), weights)


@pytest.fixture
def weights():
    return SectionWeights(checkpoint.SECTIONS, checkpoint.section_table())


@pytest.fixture
def bank():
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(90, 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return CandidateBank(
        torch.from_numpy(vectors), {name: rng.integers(0, 2, 90).astype(np.float32) for name in SECTION_OF}
    )


def test_recordings_are_weighted_by_their_views():
    weights = table(Left_Ventricle={A2C: 3.0, A4C: 4.0})
    study = np.stack([recording(0, A2C), recording(1, A4C), recording(2, A5C)])
    vectors, blind = section_vectors(study, weights)
    np.testing.assert_allclose(vectors[0, :3], [0.6, 0.8, 0], atol=1e-7)
    assert not blind.any()


def test_studies_are_combined_by_task_section(weights, bank):
    units = [np.stack([recording(0, A2C), recording(1, A4C)]), recording(2, A2C)[None]]
    encoder = SimpleNamespace(name="a/b", retrieval=(weights, bank), upstream_compat=False)
    for target, section in (("ef", "Left Ventricle"), ("as", "Aortic Valve")):
        one, two = weights.table[checkpoint.SECTIONS.index(section), [A2C, A4C]]
        found = EchoPrimeEncoder.study_vectors(encoder, target, units)
        np.testing.assert_allclose(found[0, :2], np.array([one, two]) / np.hypot(one, two), atol=1e-6)
        assert found.shape == (2, 512) and found[1, 2] == 1
    with pytest.raises(NotApplicable, match=r"no report section for 'lvh' \(available: ef, as"):
        EchoPrimeEncoder.study_vectors(encoder, "lvh", units)
    with pytest.raises(NotApplicable, match="nothing without its section weights"):
        EchoPrimeEncoder.study_vectors(SimpleNamespace(name="a/b", retrieval=None), "ef", units)


def test_unweighted_views_count_equally():
    weights = table(Left_Ventricle={A4C: 1.0}, IVC={A5C: 1.0})
    study = np.stack([recording(0, A5C, 3.0), recording(1, A5C, 4.0)])
    vectors, blind = section_vectors(study, weights)
    assert blind.tolist() == [True, False]
    np.testing.assert_allclose(vectors[:, :2], [[0.6, 0.8]] * 2, atol=1e-7)
    vectors, blind = section_vectors(study, weights, uniform=False)
    assert blind.tolist() == [True, False] and not vectors[0].any()


def test_one_recording_is_a_study_and_its_weight_cancels():
    weights = table(Left_Ventricle={A2C: 0.01, A4C: 0.9})
    one, other = (section_vectors(recording(5, view)[None], weights)[0] for view in (A2C, A4C))
    np.testing.assert_allclose(one, other, atol=1e-7)


def test_prediction_is_mean_of_labelled_neighbours():
    directions = np.eye(512, dtype=np.float32)
    bank = CandidateBank(
        torch.from_numpy(directions[[0, 0, 0, 1, 2]]), {"ejection_fraction": np.array([40, np.nan, 50, 70, 10.0])}
    )
    weights = table(Left_Ventricle={A4C: 1.0})
    studies = [recording(0, A4C)[None], recording(1, A4C)[None]]
    values, blind = answers("ejection_fraction", studies, weights, bank, k=3)
    assert values[0] == 45.0 and not blind.any()
    assert answers("ejection_fraction", studies[1:], weights, bank, k=1)[0].tolist() == [70.0]
    # With fewer candidates than requested, all of them are used.
    assert answers("ejection_fraction", studies, weights, bank, k=50)[0].tolist() == [42.5, 42.5]
    nobody = CandidateBank(bank.embeddings, {"ejection_fraction": np.full(5, np.nan)})
    assert np.isnan(answers("ejection_fraction", studies, weights, nobody)[0]).all()


def test_nearest_agrees_with_sorting_all_cosines(bank):
    vectors = np.random.default_rng(5).normal(size=(7, 512)).astype(np.float32)
    expected = np.argsort(-(vectors.astype(np.float64) @ bank.embeddings.numpy().astype(np.float64).T), axis=1)[:, :10]
    np.testing.assert_array_equal(nearest(vectors, bank, k=10, chunk=2), expected)


def test_released_code_predicts_from_wrong_rows(weights):
    wrong = {"Aortic Valve": "Atrial Septum", "Pulmonary Artery": "Pericardium", "Left Atrium": "Right Ventricle"}
    for section, read in wrong.items():
        assert weights.sections[row_of(section, weights)] == section
        assert weights.sections[row_of(section, weights, upstream_compat=True)] == read
    assert row_of("Left Ventricle", weights) == row_of("Left Ventricle", weights, upstream_compat=True) == 0


def test_misalignment_changes_only_multi_view_studies(weights, bank):
    rng = np.random.default_rng(6)
    study = np.concatenate([rng.normal(size=(5, 512)), np.eye(11)[[0, 2, 7, 8, 10]]], axis=1)
    ours, released = (report(study, weights, bank, k=10, upstream_compat=compat) for compat in (False, True))
    assert list(ours) == list(SECTION_OF) and len(ours) == 21
    assert ours["ejection_fraction"] == released["ejection_fraction"]
    assert ours != released


def test_table_order_does_not_matter(weights, bank, tmp_path):
    path = tmp_path / "MIL_weights.csv"
    checkpoint.section_weights(path)
    read = read_section_weights(path)
    assert read.sections == weights.sections
    np.testing.assert_array_equal(read.table, weights.table)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    turned = [[line[0], *reversed(line[1:])] for line in [lines[0], *reversed(lines[1:])]]
    path.write_text("\n".join(",".join(line) for line in turned))
    study = np.concatenate([np.random.default_rng(7).normal(size=(3, 512)), np.eye(11)[[0, 2, 7]]], axis=1)
    assert report(study, read_section_weights(path), bank, k=10) == report(study, weights, bank, k=10)


def test_views_of_the_benchmark():
    views = dict(
        zip(BENCHMARK_VIEWS, view_probabilities(np.stack([recording(0, v) for v in (0, 0, 7, 4)])), strict=True)
    )
    assert views == {"A2C": 0.5, "A3C": 0, "A4C": 0, "PSAX": 0, "PLAX": 0.25, "Other": 0.25}
    single = [BENCHMARK_VIEWS[view_probabilities(recording(0, v)[None]).argmax()] for v in range(11)]
    assert single == ["A2C", "A3C", "A4C", *["Other"] * 4, "PLAX", "PSAX", "Other", "Other"]


def test_published_cut_is_a_probability_of_one_half():
    np.testing.assert_allclose(stenosis(np.array([0, 0.39, 0.78, 0.89, 1.0])), [0, 0.25, 0.5, 0.75, 1.0])


@pytest.fixture
def download(tmp_path):
    checkpoint.candidate_bank(tmp_path / "model_data" / "candidates_data")
    checkpoint.section_weights(tmp_path / "assets" / "MIL_weights.csv")
    return tmp_path


def test_download_is_read(download):
    weights, bank = read_retrieval(given_files("echonet/EchoPrime", download))
    assert weights.sections == checkpoint.SECTIONS
    assert bank.embeddings.shape == (80, 512)
    known = ~np.isnan(bank.labels["ejection_fraction"])
    assert not known[0] and known[1:77].all() and not known[77:].any()
    labels = pickle.loads((download / "model_data/candidates_data/candidate_labels.pkl").read_bytes())  # noqa: S301
    assert bank.labels["ejection_fraction"][5] == np.float32(labels["ejection_fraction"]["study-005"])


def test_numpy_numbers_and_study_numbers_are_read(tmp_path):
    labels = {name: {number: np.float64(number / 2) for number in range(4)} for name in SECTION_OF}
    path = tmp_path / "candidate_labels.pkl"
    path.write_bytes(pickle.dumps(labels))
    assert read_labels(path, ["3", "0", "9"])["tavr"].tolist()[:2] == [1.5, 0.0]


class Harmful:
    def __reduce__(self):
        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("candidate_labels.pkl", pickle.dumps({"ejection_fraction": Harmful()}), "could run code when read.*system"),
        ("candidate_labels.pkl", pickle.dumps([1, 2]), "contains a list; expected a dictionary"),
        ("candidate_labels.pkl", pickle.dumps({"tavr": {"a": 1.0}}), "lacks labels of impella"),
        ("candidate_labels.pkl", pickle.dumps({n: {"a": "x"} for n in SECTION_OF}), "a label that is not a number"),
        ("candidate_labels.pkl", b"\x80\x04\x95", "truncated or not a pickle"),
        ("candidate_labels.pkl", b"", "truncated or not a pickle"),
        ("candidate_embeddings_p1.pt", b"PK\x03\x04 cut short", "truncated or not a PyTorch file|could run code"),
        ("candidate_studies.csv", b"Study\na\nb\n", "lists 2 studies.*contain 80"),
        ("candidate_studies.csv", b"Id\na\n", "has the columns Id; expected Study"),
        ("candidate_studies.csv", b"", "is not a CSV table"),
        ("MIL_weights.csv", b"Section,A2C\nLeft Ventricle,1\n", "lacks A3C, A4C"),
    ],
)
def test_damaged_file_is_refused(download, file, content, message, monkeypatch):
    monkeypatch.chdir(download)
    next(download.rglob(file)).write_bytes(content)
    with pytest.raises(BadModel, match=message) as caught:
        read_retrieval(given_files("echonet/EchoPrime", download))
    assert file in str(caught.value)
    assert not (download / "harmed").exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(50, 12), r"contains a Tensor \(50, 12\)"),
        ({"a": torch.zeros(50, 512)}, "contains a dict"),
        (torch.full((50, 512), float("nan")), "not finite"),
        (Harmful(), "could run code"),
    ],
)
def test_invalid_half_of_the_bank_is_refused(download, value, message):
    torch.save(value, next(download.rglob("candidate_embeddings_p2.pt")))
    with pytest.raises(BadModel, match=message):
        read_retrieval(given_files("echonet/EchoPrime", download))


@pytest.mark.parametrize(
    ("weight", "message"), [("x", "not a number"), ("", "empty or not finite"), ("inf", "not finite")]
)
def test_invalid_section_weight_is_refused(tmp_path, weight, message):
    path = tmp_path / "MIL_weights.csv"
    checkpoint.section_weights(path)
    head, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, ",".join([first.partition(",")[0], weight, *first.split(",")[2:]]), *rest]))
    with pytest.raises(BadModel, match=message):
        read_section_weights(path)


def test_section_by_another_name_is_missed(tmp_path):
    path = tmp_path / "MIL_weights.csv"
    checkpoint.section_weights(path)
    path.write_text(path.read_text().replace("Aortic Valve", "Aortic valve"))
    with pytest.raises(BadModel, match="lacks Aortic Valve"):
        read_section_weights(path)
