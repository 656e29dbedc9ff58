"""Check comparisons with missing predictions: conclusions hold for any values of the missing ones."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data.spec import Task
from cardiobench.scoring.compare import compare
from cardiobench.scoring.missing_answers import fill_missing
from cardiobench.scoring.predictions import Predictions

from .factories import BINARY, VALUE, references, test_rows

SEVERAL = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("MI", "AS"))


def off_by(table, error, missing=0, source="a"):
    """Return predictions with errors of alternating sign, without those of the first units."""
    truth = test_rows(table)
    values = truth["y_true"] + error * np.where(np.arange(len(truth)) % 2, 1, -1)
    answers = truth[["id"]].assign(y_pred=values)[missing:]
    return Predictions.join(table, answers, VALUE, source=source, allow_missing=True)


def test_missing_number_is_as_far_away_as_it_can_be():
    table = references(VALUE)
    truth = test_rows(table)["y_true"].to_numpy()
    farthest = max(truth[0] - truth.min(), truth.max() - truth[0])
    found = compare(off_by(table, 1, missing=1), off_by(table, 2, source="b"))
    assert (found.a, found.b) == pytest.approx(((59 * 1 + farthest) / 60, 2))
    assert found.difference == pytest.approx(found.a - found.b) and (found.n, found.n_patients) == (60, 30)
    best = compare(fill_missing(off_by(table, 1, missing=1), worst=False), off_by(table, 2, source="b"))
    worst = compare(fill_missing(off_by(table, 1, missing=1), worst=True), off_by(table, 2, source="b"))
    assert found.low == min(best.low, worst.low) and found.high == max(best.high, worst.high)
    assert found.p_value == max(best.p_value, worst.p_value)


def test_missing_predictions_leave_verdict_undecided():
    table = references(VALUE)
    assert compare(off_by(table, 1), off_by(table, 4, source="b")).outcome == "answers differ"
    assert compare(off_by(table, 1, missing=1), off_by(table, 4, source="b")).outcome == "answers differ"
    assert compare(off_by(table, 1, missing=30), off_by(table, 4, source="b")).outcome == "undecided"
    assert compare(off_by(table, 4, source="b"), off_by(table, 1, missing=30)).outcome == "undecided"
    assert compare(off_by(table, 1, missing=5), off_by(table, 1, missing=5)).outcome != "equivalent", "unknown"


@pytest.mark.parametrize("task", [BINARY, SEVERAL])
def test_missing_classes_are_wrong_or_right(task):
    table = references(BINARY)
    if task is SEVERAL:
        table["y_true"] = np.resize(["MI", "AS", "MI;AS", ""], len(table))
    truth = test_rows(table)
    rng = np.random.default_rng(0)
    answers = pd.DataFrame({"id": truth["id"], **{f"p_{name}": rng.uniform(0, 1, 60) for name in task.classes}})
    if task is BINARY:
        answers["p_well"] = 1 - answers["p_sick"]
    joined = Predictions.join(table, answers[3:], task, allow_missing=True)
    for worst in (True, False):
        filled = fill_missing(joined, worst=worst)
        assert filled.missing is None and sorted(filled.frame["id"]) == sorted(truth["id"])
        rows = filled.frame.iloc[57:]
        given = rows[[f"p_{name}" for name in task.classes]].to_numpy()
        has = np.array([[name in cell.split(";") for name in task.classes] for cell in rows["y_true"]])
        np.testing.assert_array_equal(given, has != worst)
        assert (rows["y_pred"] == rows["y_true"]).all() != worst
    whole = Predictions.join(table, answers, task, source="b")
    found = compare(joined, whole)
    assert found.low <= found.difference <= found.high and found.n == 60
