from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cardiobench.core.errors import BadConfig, BadPredictions, UnknownName
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.metrics import load
from cardiobench.metrics.load import load_metric
from cardiobench.metrics.metric import Metric
from cardiobench.metrics.number import Number
from cardiobench.results.context import ResultContext
from cardiobench.scoring.metrics import check_metrics, metrics_of, narrow_metrics
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score
from cardiobench.tasks.task import missing_metrics, unscorable

from .factories import BINARY, VALUE, VIEWS3, references, test_rows

STENOSIS = Task("tmed2/as", "binary", "as", ("f1_macro",), ("no_AS", "AS"), unit_column="study_id")


@pytest.fixture(scope="module")
def stenosis(shared):
    """Return the published split of TMED-2 and an external prediction file."""
    table = pd.read_csv(shared / "data" / "splits" / "tmed2" / "per_study.csv", dtype=str)
    table = pd.DataFrame(
        {
            "id": table["study_id"],
            "patient_id": table["study_id"].str.partition("s")[0],
            "split": table["split"].replace("val", "validation"),
            "y_true": table["diagnosis_label"].map({"0": "no_AS", "1": "AS"}),
        }
    )
    return table, shared / "golden/reference_eval/inputs/example_predictions/TMED2/AS/modelname.csv"


def test_published_example_is_a_constant(stenosis, tmp_path):
    table, path = stenosis
    result = score(Predictions.join(table, read_predictions(path, STENOSIS), STENOSIS, source=path.name), table)
    assert round(100 * result.score.value, 2) == 44.13
    assert (result.score.n, result.coverage) == (119, {"scored": 119, "expected": 119})
    assert result.collapsed
    assert result.floors["best_constant"].value == result.score.value
    assert result.floors["best_constant"].prediction == "AS"
    assert result.floor.value == 0.5 and result.verdict.word == "no information shown" and result.verdict.p_value > 0.05
    assert "collapsed: every answer is the same class" in result.warnings
    assert repr(type(result).load(result.save(tmp_path / "r.json"))) == repr(result)  # NaN is not equal to itself.


ADVICE = (
    "Answer all, or score the given answers with --allow-missing (in Python allow_missing=True): the coverage is "
    "stamped, and the verdict is judged as if every missing answer were wrong."
)


def test_published_example_without_a_row_is_refused(stenosis, tmp_path):
    table, path = stenosis
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "my.csv").write_text("".join(line for line in lines if not line.startswith("1040s1,")))
    with pytest.raises(BadPredictions) as error:
        Predictions.join(table, read_predictions(tmp_path / "my.csv", STENOSIS), STENOSIS, source="my.csv")
    assert str(error.value) == "my.csv has 118 of the 119 test units of tmed2/as. Missing: 1040s1. " + ADVICE


def joined(task, answer, **sizes):
    table = references(task, **sizes)
    truth = test_rows(table)
    return Predictions.join(table, truth[["id"]].assign(y_pred=answer(truth)), task), table


def test_good_model_beats_its_floor():
    found = score(*joined(VALUE, lambda truth: truth["y_true"] + 1))
    assert found.score.value == pytest.approx(1) and found.verdict.word == "above the floor"
    assert found.verdict.low > 0 and not found.collapsed
    assert found.warnings == ("none of 30 patients failed (off by > 15 points): up to 12 % may",)
    assert found.unit == "%" and not found.higher_is_better


@pytest.mark.parametrize(("patients", "rough"), [(9, False), (10, True), (19, True), (20, False)])
def test_rough_intervals_are_named_from_the_fewest_patients_of_a_verdict(patients, rough):
    """Fewer than 10 patients have no verdict, which says more."""
    found = score(*joined(VALUE, lambda truth: truth["y_true"] + 1, n_test=patients, per_patient=1))
    said = [sentence for sentence in found.warnings if sentence.startswith("rests on")]
    assert said == ([f"rests on {patients} patients: the interval is rough below 20"] if rough else [])


def test_model_worse_than_the_floor():
    found = score(*joined(VALUE, lambda truth: truth["y_true"] + 40))
    assert found.verdict.word == "carries information, not above the floor" and found.verdict.high < 0
    assert "a constant would be closer" in found.verdict.sentence, "all 40 too high, but in the right order"


def test_multiclass_against_scikit_learn():
    rng = np.random.default_rng(0)
    predictions, table = joined(VIEWS3, lambda truth: rng.choice(VIEWS3.classes, len(truth)), n_test=90)
    found = score(predictions, table)
    expected = f1_score(predictions.frame["y_true"], predictions.frame["y_pred"], average="macro")
    assert found.score.value == pytest.approx(expected, abs=1e-12)
    assert found.score.low < expected < found.score.high


def test_few_patients_and_few_positives_are_reported():
    table = references(BINARY, n_test=26, per_patient=1)
    rows = table.index[table["split"] == "test"]
    table.loc[rows, "y_true"] = ["sick"] * 4 + ["well"] * 22
    truth = test_rows(table)
    found = score(Predictions.join(table, truth[["id"]].assign(y_pred=truth["y_true"]), BINARY), table)
    assert "rests on 4 patients with sick" in found.warnings
    assert found.score.value == 1.0 and found.score.low < 0.95 and found.verdict.word == "too few to say"


def test_single_class_is_scored_and_reported():
    table = references(BINARY, per_patient=1).assign(y_true="well")
    truth = test_rows(table)
    found = score(Predictions.join(table, truth[["id"]].assign(y_pred="well"), BINARY), table)
    assert found.metric == "accuracy" and found.score.value == 1.0 and 0.8 < found.score.low < 1
    assert found.verdict.word == "no comparison possible" and "no scored row is sick" in found.warnings
    assert np.isnan(found.overall["f1_macro"].value) and "one class" in found.overall["f1_macro"].reason


def test_one_patient_has_a_value_and_no_interval():
    table = references(VALUE).assign(patient_id="p")
    truth = test_rows(table)
    found = score(Predictions.join(table, truth[["id"]].assign(y_pred=50.0), VALUE), table)
    assert found.score.value > 0 and np.isnan(found.score.low) and found.verdict.word == "too few to say"


def test_seed_determines_the_result():
    predictions, table = joined(BINARY, lambda truth: np.resize(["sick", "well", "well"], len(truth)))
    first, again, other = (score(predictions, table, ResultContext(seed=seed)) for seed in (0, 0, 1))
    assert repr(first.overall) == repr(again.overall) and repr(first.groups) == repr(again.groups)
    assert first.floors == again.floors and first.verdict == again.verdict
    assert first.score.low != other.score.low and first.score.value == other.score.value


def test_facts_from_the_runner_are_kept():
    predictions, table = joined(VALUE, lambda truth: truth["y_true"])
    found = score(predictions, table, ResultContext(protocol="probe", variant="linear", options={"c": 1.0}, dataset={"name": "toy"}, model={"name": "org/x", "revision": "abc"}, seen_in_pretraining=True, resamples=50, seed=9))  # fmt: skip
    assert (found.protocol, found.variant, found.options, found.seen_in_pretraining) == (
        "probe",
        "linear",
        {"c": 1.0},
        True,
    )
    assert (found.stamp["seed"], found.stamp["resamples"]) == (9, 50) and "numpy" in found.stamp


def test_metrics_are_selected_but_ranking_is_required():
    ef, view = catalog.task("camus/ef"), catalog.task("camus/view")
    assert narrow_metrics(ef) == metrics_of(ef)
    assert narrow_metrics(ef, ("regression_report", "mae", "f1_macro")) == ("mae", "regression_report")
    check_metrics([ef, view], ("mae", "f1_macro"))
    with pytest.raises(BadConfig, match="lack mae, which ranks models on camus/ef"):
        check_metrics([view, ef], ("f1_macro",))
    with pytest.raises(UnknownName, match="f1_macr0"):
        check_metrics([view], ("f1_macro", "f1_macr0"))
    with pytest.raises(UnknownName, match="mae"):
        check_metrics([view], ("f1_macro", "mae"))


def test_task_without_its_metrics_is_refused_only_if_it_is_alone(monkeypatch):
    """A multilabel task also needs the formula behind the intervals of its classes."""
    ef, view, findings = (catalog.task(name) for name in ("camus/ef", "camus/view", "code_test/six"))
    left = [name for name in load.list_metrics() if name not in ("mae", "classification_report")]
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: left)
    assert unscorable(ef) == "camus/ef needs mae, not among the metrics here"
    assert missing_metrics(view) == missing_metrics(findings) == ["classification_report"]
    monkeypatch.setattr("cardiobench.tasks.task.list_metrics", lambda: [*left, "classification_report"])
    check_metrics([view, ef], ())
    monkeypatch.setattr(
        "cardiobench.scoring.metrics.load_metric", lambda name: raised(UnknownName(f"no metric {name}"))
    )
    with pytest.raises(UnknownName, match="no metric mae"):
        check_metrics([ef], ())


def raised(error):
    raise error


def test_two_metrics_of_a_task_do_not_give_one_number(monkeypatch):
    check_metrics([catalog.task(name) for name in (*catalog.list_tasks(), *catalog.list_dense_tasks())], ())
    task = replace(BINARY, metrics=("matthews",))
    theirs = Metric("matthews", lambda references, predictions: {"mcc": 0.0}, {"mcc": Number("mcc")})
    monkeypatch.setattr(load, "load_metric", lambda name: theirs if name == "matthews" else load_metric(name))
    with pytest.raises(
        BadConfig, match="two numbers are called 'mcc': metric matthews and metric classification_report"
    ):
        check_metrics([task], ())
