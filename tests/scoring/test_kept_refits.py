"""Check that answers of refits are kept with results, read back, scored by every shown number and never mixed up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from cardiobench.core.errors import BadPredictions
from cardiobench.data.spec import Task
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import load_predictions, load_refits, refits_of_table, save_scored
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, Refits
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from cardiobench.tasks.answers import RefitAnswers, stack_refits, stored_refits

BINARY = Task("toy/sick", "binary", "sick", ("f1_macro",), ("well", "sick"))
LABELS = Task("toy/dx", "multilabel", "dx", ("auroc_macro",), ("A", "B"))
NUMBER = Task("toy/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100))


def example(task, refits=4, rows=60):
    """Return predictions with answers of refits, and the tables of these answers in another order of rows."""
    rng = np.random.default_rng(3)
    ids = [f"r{number}" for number in range(rows)]
    if task is NUMBER:
        truth = rng.uniform(20, 70, rows).round(1)
    elif task is BINARY:
        truth = rng.choice(task.classes, rows)
    else:
        truth = rng.choice(["A", "B", "A;B", ""], rows)

    def table():
        values = rng.uniform(size=rows)
        if task is NUMBER:
            return pd.DataFrame({"id": ids, "y_pred": truth + 10 * values})
        if task is BINARY:
            decided = np.where(values > 0.4, "sick", "well")
            return pd.DataFrame({"id": ids, "p_well": 1 - values, "p_sick": values, "y_pred": decided})
        return pd.DataFrame({"id": ids, "p_A": values, "p_B": rng.uniform(size=rows), "y_pred": "derived anew"})

    references = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": truth})
    joined = Predictions.join(references, table().drop(columns="y_pred") if task is LABELS else table(), task)
    tables = [table().sample(frac=1, random_state=number) for number in range(refits)]
    kept = stack_refits(tables, joined.frame["id"], task, TRAINING_PATIENTS, 7, "abc")
    return replace(joined, refits=kept), references, tables


@pytest.mark.parametrize("task", [NUMBER, BINARY, LABELS], ids=lambda task: task.kind)
def test_refits_are_scored_saved_and_read_again(task, tmp_path):
    joined, references, tables = example(task)
    result, _ = save_scored(score(joined, references), joined.frame, tmp_path / "r.json", refits=joined.refits.columns)
    truth = joined.frame["y_true"]
    found = result.refits
    assert (found.varies, found.seed, found.draws, found.count) == (TRAINING_PATIENTS, 7, "abc", 4)
    for number, table in enumerate(one.set_index("id").loc[joined.frame["id"]] for one in tables):
        if task is NUMBER:
            expected = {"mae": (table["y_pred"] - truth.to_numpy()).abs().mean()}
        elif task is BINARY:
            positive = truth == "sick"
            expected = {
                "f1_macro": f1_score(truth, table["y_pred"], average="macro"),
                "auroc": roc_auc_score(positive, table["p_sick"]),
            }
        else:
            areas = [roc_auc_score(truth.str.contains(name), table[f"p_{name}"]) for name in task.classes]
            expected = {"auroc_macro": np.mean(areas)}
        for key, value in expected.items():
            assert found.scores[key][number] == pytest.approx(value, rel=1e-6)
    assert set(found.scores) <= set(result.overall)
    assert ScoreResult.load(tmp_path / "r.json").refits == found
    file = predictions_path(tmp_path / "r.json")
    frame = load_predictions(result, file)
    pd.testing.assert_frame_equal(frame, joined.frame, check_dtype=False)
    stored = stored_refits(result.refits, load_refits(result, file), frame["id"])
    again = score(replace(joined, refits=stored), references)
    assert again.refits == found, "equal to the last bit"
    assert all(
        values.dtype == np.float32 for name, values in stored.columns.items() if name != "y_pred" or task is NUMBER
    )
    assert ("y_pred" in stored.columns) == (task is not LABELS), "derived from the probabilities"


def test_answers_without_training_have_refits_of_nothing():
    joined, references, _ = example(BINARY)
    found = score(replace(joined, refits=RefitAnswers(NO_TRAINING)), references).refits
    assert found == Refits(NO_TRAINING) and score(replace(joined, refits=None), references).refits is None


def test_missing_answers_and_other_orders_keep_refits_with_their_units():
    joined, references, tables = example(BINARY)
    kept = joined.frame["id"][10:][::-1].reset_index(drop=True)
    answers = joined.frame.drop(columns=["patient_id", "y_true"])
    fewer = Predictions.join(references, answers[answers["id"].isin(kept)], BINARY, allow_missing=True)
    taken = joined.refits.take(kept)
    first, other = ([*replace(fewer, refits=refits).of_refits()] for refits in (joined.refits, taken))
    for one, two, table in zip(first, other, tables, strict=True):
        pd.testing.assert_frame_equal(one.frame, two.frame)
        expected = table.set_index("id").loc[one.frame["id"], "y_pred"]
        assert (one.frame["y_pred"].to_numpy() == expected.to_numpy()).all()


def test_other_numbers_of_refits_are_refused(tmp_path):
    joined, references, _ = example(BINARY)
    result = score(joined, references)
    columns = {name: values[:, :2] for name, values in joined.refits.columns.items()}
    with pytest.raises(BadPredictions, match="scores of 4 refits, but its predictions have 2"):
        stored_refits(result.refits, columns, joined.frame["id"])
    lists = pa.array([[1.0, 2.0], [1.0]], pa.list_(pa.float32()))
    with pytest.raises(ValueError, match="refits_y_pred is a column of list"):
        refits_of_table(pa.table({"refits_y_pred": lists}))
    one, two = (pa.array([[1.0] * size], pa.list_(pa.float32(), size)) for size in (1, 2))
    with pytest.raises(ValueError, match="different lengths: p_a 1, p_b 2"):
        refits_of_table(pa.table({"refits_p_a": one, "refits_p_b": two}))


def test_probabilities_of_20_refits_of_71_labels_need_at_most_their_single_precision(tmp_path):
    rng, rows, labels = np.random.default_rng(0), 500, 71
    frame = pd.DataFrame({"id": [f"r{n}" for n in range(rows)], "patient_id": "p", "y_true": "", "y_pred": ""})
    joined, references, _ = example(NUMBER)
    refits = {f"p_{number}": rng.uniform(size=(rows, 20)).astype(np.float32) for number in range(labels)}
    result, files = save_scored(
        score(replace(joined, refits=None), references), frame, tmp_path / "r.json", refits=refits
    )
    assert files[0].stat().st_size < 1.02 * rows * labels * 20 * 4
    again = load_refits(result, files[0])
    assert list(again) == list(refits) and all(map(np.array_equal, again.values(), refits.values()))
