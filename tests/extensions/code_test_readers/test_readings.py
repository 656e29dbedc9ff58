"""Compare the bundled readings with the published table, scikit-learn and an independent bootstrap."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.data.references_file import read_references
from cardiobench.extensions.code_test_readers import readings
from cardiobench.extensions.code_test_readers.demo import comparisons, demo
from cardiobench.extensions.code_test_readers.readings import DOCTORS, JUDGES, NETWORK, READERS
from cardiobench.metrics.load import load_formula
from cardiobench.results.context import ResultContext
from cardiobench.results.printing import PrintedTable
from cardiobench.scoring.score import score
from cardiobench.tasks.labels import multi_hot

CLASSES = ("1dAVb", "RBBB", "LBBB", "SB", "ST", "AF")
TASK = "code_test/six"


@pytest.fixture(scope="module")
def answered():
    return {reader: readings.predictions(reader) for reader in READERS}


def table(answered, reader):
    return multi_hot(answered[reader].frame["y_pred"], CLASSES)


@pytest.fixture(scope="module")
def gold(answered):
    return multi_hot(answered[NETWORK].frame["y_true"], CLASSES)


def test_published_table_is_reproduced_to_its_three_digits(answered, gold):
    published = readings.published_scores()
    assert sorted(published["reader"].unique()) == sorted((NETWORK, *DOCTORS)) and len(published) == 24
    for row in published.itertuples():
        each = load_formula("multilabel_f1").compute(gold, table(answered, row.reader), average=None)
        for name in ("precision", "recall", "specificity", "f1"):
            found = each[name][CLASSES.index(row.diagnosis)]
            assert f"{found:.3f}" == f"{getattr(row, name):.3f}", (row.diagnosis, row.reader, name)


def test_means_equal_scikit_learn(answered, gold):
    means = {reader: f1_score(gold, table(answered, reader), average="macro") for reader in READERS}
    assert [round(means[one], 3) for one in (NETWORK, *DOCTORS)] == [0.925, 0.862, 0.829, 0.817]
    for reader in READERS:
        found = load_formula("multilabel_f1").compute(gold, table(answered, reader))
        assert found["multilabel_f1"] == pytest.approx(means[reader], abs=1e-12)


def test_network_diagnoses_equal_published_ones(answered, gold):
    sample = answered[NETWORK].sample()
    assert (sample.y_pred == table(answered, NETWORK)).all()
    cut = sample.probabilities >= 0.5
    assert int((cut != sample.y_pred).sum()) == 48
    assert f1_score(gold, cut, average="macro") == pytest.approx(0.776, abs=5e-4)
    assert roc_auc_score(gold, sample.probabilities) == pytest.approx(0.997796, abs=5e-7)
    assert average_precision_score(gold, sample.probabilities) == pytest.approx(0.938309, abs=5e-7)
    assert all(answered[reader].sample().probabilities is None for reader in READERS if reader != NETWORK)


def test_gold_standard_equals_the_release(answered, gold, tmp_path):
    task = catalog.task(TASK)
    assert dict(zip(CLASSES, gold.sum(axis=0), strict=True)) == {name: task.expected[name]["total"] for name in CLASSES}
    one, two = (table(answered, judge) for judge in JUDGES)
    assert (gold == one)[one == two].mean() == pytest.approx(0.9988, abs=5e-5)
    read = read_references(readings.references().write(tmp_path / "references.csv"), task)
    assert read.problem == "" and read.expected("test") == 827 == read.table["patient_id"].nunique()
    assert answered[NETWORK].expected == 827


def test_doctors_are_scored_without_auroc(answered):
    references = readings.references().table
    for reader, metric in ((NETWORK, "auroc_macro"), (DOCTORS[0], "multilabel_f1")):
        result = score(answered[reader], references, ResultContext(resamples=50))
        assert result.metric == metric and result.verdict.word == "above the floor"
        assert ("auroc_macro" in result.overall) == (reader == NETWORK)


def test_differences_agree_with_a_bootstrap_of_patients(answered, gold):
    rng, n = np.random.default_rng(0), len(gold)
    rows = [rng.integers(0, n, n) for _ in range(1000)]
    times = np.stack([np.bincount(some, minlength=n) for some in rows])

    def drawn(one):
        return (2 * (times @ (gold * one)) / (times @ gold + times @ one)).mean(axis=1)

    network = table(answered, NETWORK)
    published = [f1_score(gold[some], network[some], average="macro") for some in rows[:10]]
    assert drawn(network)[:10] == pytest.approx(published), "the draws are scored as in scikit-learn"
    for reader, comparison in zip(DOCTORS, comparisons(answered), strict=True):
        doctors = table(answered, reader)
        assert comparison.difference == pytest.approx(
            f1_score(gold, network, average="macro") - f1_score(gold, doctors, average="macro")
        )
        ends = np.quantile(drawn(network) - drawn(doctors), [0.025, 0.975])
        assert [comparison.low, comparison.high] == pytest.approx(ends, abs=0.012)
        assert comparison.outcome == "answers differ" and comparison.p_value <= comparison.p_adjusted < 0.05


def test_demo_prints_the_readings():
    started = time.process_time()
    parts = list(demo())
    assert time.process_time() - started < 6, "about half a second on an idle machine"
    means, diagnoses = (part for part in parts if isinstance(part, PrintedTable))
    said = "\n".join(part for part in parts if isinstance(part, str))
    assert [row[:2] for row in means.rows][:2] == [["network", "0.925"], ["cardiology residents", "0.862"]]
    marked = {row[0] for row in means.rows if "gold standard" in row[-1]}
    assert marked == {"cardiologist 1", "cardiologist 2"}
    assert "The network's mean F1 is 0.925, 0.063 higher than the cardiology residents' [" in said
    assert "cardiologist 1" not in said and said.count("these two sets of answers differ") == 3
    assert [row[:2] for row in diagnoses.rows] == [
        [name, count] for name, count in zip(CLASSES, "28 34 30 16 37 13".split(), strict=True)
    ]


def test_files_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["readers", "--out", "readers"]) == 0
    assert len(pd.read_csv("readers/dnn.csv")) == 827
    files = [f"readers/{name}.csv" for name in (NETWORK, DOCTORS[0])]
    capsys.readouterr()
    assert (
        main(["compare", *files, "--task", TASK, "--references", "readers/references.csv", "--csv", "pairs.csv"]) == 0
    )
    (pair,) = pd.read_csv("pairs.csv").to_dict("records")
    assert pair["metric"] == "multilabel_f1" and pair["difference"] == pytest.approx(0.0632, abs=5e-4)
