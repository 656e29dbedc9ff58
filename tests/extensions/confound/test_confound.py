"""Test how much of a label's score is due to the hospital, on embeddings that encode either or both."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.spec import Group, Task
from cardiobench.extensions.confound import figures
from cardiobench.extensions.confound.protocol import Confound, OutOfFold, SiteRecords, from_places, positive_shares
from cardiobench.protocols.analysis import Analysis
from cardiobench.results.analysis_result import AnalysisResult
from tests.protocols.conftest import task_data
from tests.protocols.planted import APART, embeddings, study

QUICK = Confound(folds=3, inner=2, grids={"logistic": {"C": (1e-2, 1.0)}}, most=120)


def hospital_study(features, labels, hospitals):
    task = Task("two/af", "binary", "af", ("f1_macro",), ("no", "yes"), groups=(Group("hospital", "hospital"),))
    names = np.where(labels == 1, "yes", "no")
    data = task_data(task, features, names, ["train"] * len(labels), hospital=hospitals)
    return Analysis("two/af", (task,), {"name": "a/b"}, 0, 50, lambda task, change: data, lambda task: None)


def values(finding):
    return {name: found.value for name, found in finding.values.items()}


@pytest.mark.slow
def test_dataset_embedding_contains_no_label():
    found = QUICK.analyze(study(embeddings(120, 30, of_dataset=15)), None)
    got = values(found)
    assert got["identity_balanced_accuracy"] == 1.0 and got["identity_chance"] == pytest.approx(1 / 3)
    assert got["auroc_place_alone"] == 0.5, "every dataset has equal numbers of each class"
    for key in ("auroc_own", "auroc_carried", "auroc_mixed", "auroc_mixed_within_places"):
        assert got[key] == pytest.approx(0.5, abs=0.1), key
    assert found.values["identity_balanced_accuracy"].low == 1.0
    assert np.array_equal(found.tables["identity"].set_index("place").to_numpy(), 120 * np.eye(3))


@pytest.mark.slow
def test_class_embeddings_transfer_between_hospitals():
    got = values(QUICK.analyze(study(embeddings(120, 12, of_class=4)), None))
    assert got["auroc_own"] == got["auroc_carried"] == got["auroc_mixed"] == 1.0 and got["carrying_costs"] == 0.0
    assert got["identity_balanced_accuracy"] == pytest.approx(1 / 3, abs=0.08)


@pytest.mark.slow
def test_reversed_classes_transfer_with_reversed_scores():
    found = embeddings(120, 6, of_class=2, names=("one", "two"))
    features, labels = found["two"]
    found["two"] = -features, labels
    finding = QUICK.analyze(study(found), None)
    got = values(finding)
    assert got["auroc_own"] == 1.0 and got["auroc_carried"] == 0.0 and got["carrying_costs"] == 1.0
    matrix = finding.tables["matrix"].pivot_table(index="train", columns="test", values="auroc")
    assert np.array_equal(matrix.to_numpy(), np.eye(2))
    assert finding.tables["matrix"]["n"].tolist() == [120] * 4


def mixed_hospitals(n=240, seed=0):
    """Test a label whose positives all come from one hospital, with an embedding that encodes only the hospital."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, 0], [n // 2, n // 2])
    # Two fifths of the negatives are in the hospital of the positives.
    hospitals = np.where(np.arange(n) < n // 2 + n // 5, "first", "second")
    features = rng.normal(size=(n, 8)) + APART * (hospitals == "first")[:, None] * np.eye(8)[0]
    return features, labels, hospitals


def test_label_from_one_hospital_is_predicted_by_the_hospital():
    finding = QUICK.analyze(hospital_study(*mixed_hospitals()), None)
    got = values(finding)
    # By hand: for 3 of 5 negatives, the positive is in the first hospital and the negative in the second; the others tie.
    assert got["auroc_place_alone"] == pytest.approx(0.6 + 0.4 / 2, abs=0.06)
    assert got["auroc_mixed"] == pytest.approx(got["auroc_place_alone"], abs=0.08)
    assert got["auroc_mixed_within_places"] == pytest.approx(0.5, abs=0.2)
    assert got["identity_balanced_accuracy"] == 1.0
    assert np.isnan(got["auroc_carried"]) and "1 of 2 places" in finding.values["auroc_carried"].reason
    places = finding.tables["places"].set_index("place")
    assert places.loc["second", "positives"] == 0 and places["n"].sum() == 120


def test_pairs_count_where_one_model_answered_both():
    # In each fold, the positive ranks above the negative; different levels of folds would reverse two of the four pairs.
    answers = OutOfFold(np.array([[0.9, 0.1], [0.95, 0.05], [0.2, 0.8], [0.3, 0.7]]), np.array([0, 0, 1, 1]))
    labels = np.array([1, 0, 1, 0])
    assert answers.auroc(labels) == 1.0
    assert np.isnan(answers.auroc(labels, np.array([0, 3])))


def test_score_from_hospital_equals_hand_worked_value():
    # First hospital: 3 of 4 are positive; second: none of 4.
    records = SiteRecords(
        ("a", "b"), np.zeros((8, 1)), np.array([1, 1, 1, 0, 0, 0, 0, 0]), np.repeat([0, 1], 4), np.arange(8)
    )
    assert positive_shares(records).tolist() == [0.75] * 4 + [0.0] * 4
    assert records.with_both_classes == []


def test_single_hospital_cannot_confound():
    features, labels, _ = mixed_hospitals()
    with pytest.raises(NotApplicable, match=r"all records of .* are from first"):
        QUICK.analyze(hospital_study(features, labels, ["first"] * len(labels)), None)
    with pytest.raises(NotApplicable, match="of the rarer class"):
        QUICK.analyze(hospital_study(features[:130], labels[:130], ["first"] * 130), None)


def test_devices_are_sites_and_records_need_one():
    features, labels, hospitals = mixed_hospitals()
    made = hospital_study(features, labels, hospitals)
    (task,) = made.tasks
    device = replace(task, groups=(Group("device", "device"),))
    assert device.name in QUICK.subjects([device])
    data = made.data(task)
    devices = np.where(np.arange(len(labels)) % 3 == 0, None, hospitals)
    rows = data.rows.drop(columns="hospital").assign(device=devices)
    records = from_places(replace(data, task=device, rows=rows), 1000, 0)
    assert records.sites == ("first", "second"), "None is not a hospital"
    assert len(records.labels) <= (devices != None).sum()  # noqa: E711 - element by element


def test_subjects_are_labels_across_datasets_and_tasks_of_several_hospitals():
    known = [task for name in catalog.list_datasets() for task in catalog.spec(name).tasks]
    found = Confound().subjects(known)
    assert {"cd", "af", "chapman_ningbo/cd", "chapman_ningbo/af"} <= set(found)
    assert not {"chapman_ningbo/cd_ningbo", "chapman_ningbo/af_chapman"} & set(found)
    assert len(found["cd"]) > 3 and len(found["chapman_ningbo/af"]) == 1


def test_unsuitable_tasks_are_refused_with_the_reason():
    with pytest.raises(NotApplicable, match=r"cd has data from one dataset only \(one\)"):
        QUICK.analyze(study(embeddings(60, 10, names=("one",))), None)
    tasks = (catalog.task("camus/view"), catalog.task("tmed2/view"))
    with pytest.raises(NotApplicable, match="view does not have exactly two classes"):
        QUICK.analyze(Analysis("view", tasks, {}, 0, 10, None, None), None)


@pytest.mark.slow
@pytest.mark.parametrize("places", ["datasets", "hospitals"])
def test_figure_is_drawn_from_the_tables(places, tmp_path):
    made = study(embeddings(60, 10, of_class=2)) if places == "datasets" else hospital_study(*mixed_hospitals())
    finding = QUICK.analyze(made, None)
    record = AnalysisResult("confound", made.subject, (), finding.values, finding.tables, models=({"name": "a/b"},))
    record.save(tmp_path / "x__y.json")
    (figure,) = figures.draw(AnalysisResult.load(tmp_path / "x__y.json")).values()
    titles = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(titles) == 5 and "chance 0." in figure.get_suptitle()
