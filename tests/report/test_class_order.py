"""Check that figures take the classes and their order from the task, not from the predictions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from cardiobench.data import catalog
from cardiobench.report.plots.draw import classes_of_unknown_task, draw_report
from cardiobench.report.plots.predictions import classification_figure
from cardiobench.report.plots.radar import radar_figure, view_scores
from cardiobench.report.plots.style import figure_style
from cardiobench.results.collect import collect
from cardiobench.results.paths import predictions_path
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from tests.report import example_results


def tick_labels(drawn):
    confusion = next(axes for axes in drawn.figure.axes if axes.get_xlabel() == "predicted")
    return [label.get_text() for label in confusion.get_xticklabels()]


def cells(drawn):
    confusion = next(axes for axes in drawn.figure.axes if axes.get_xlabel() == "predicted")
    return [text.get_text() for text in confusion.texts]


def answers(classes, share=0.3, n=200, seed=0):
    """Return predictions of two classes; the second one has a given share and informative probabilities."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < share
    probability = np.clip(0.25 + 0.3 * sick + rng.normal(0, 0.15, n), 0.01, 0.99)
    names = np.array(classes, dtype=object)
    return pd.DataFrame(
        {
            "id": np.arange(n).astype(str),
            "y_true": names[sick.astype(int)],
            "y_pred": names[(probability > 0.5).astype(int)],
            f"p_{classes[0]}": 1 - probability,
            f"p_{classes[1]}": probability,
        }
    )


@pytest.mark.parametrize("classes", [("no CD", "CD"), ("well", "ill"), ("0", "1"), ("a", "b")])
def test_positive_class_is_second_without_probabilities(classes):
    frame = answers(classes)
    truth = frame["y_true"] == classes[1]
    with figure_style():
        labels_alone = frame[["id", "y_true", "y_pred"]]
        drawn = classification_figure({"best": labels_alone, "other": frame}, "best", "x/y", classes)
    assert set(drawn.tables["curves"]["model"]) == {"other"}
    curves = {name: part[["x", "y"]].to_numpy().T for name, part in drawn.tables["curves"].groupby("curve")}
    area = auc(*curves["ROC"])
    assert area == pytest.approx(roc_auc_score(truth, frame[f"p_{classes[1]}"]), abs=1e-12)
    area = auc(*curves["precision-recall"])
    assert area == pytest.approx(average_precision_score(truth, frame[f"p_{classes[1]}"]), abs=1e-12)
    point = curves["operating point"][:, 0]
    called = frame["y_pred"] == classes[1]
    assert tuple(point) == pytest.approx((called[~truth].mean(), called[truth].mean()))
    assert (
        f"prevalence of {100 * truth.mean():.1f} % {classes[1]}; dotted: {classes[1]} predicted for all"
        in drawn.caption
    )
    assert tick_labels(drawn) == list(classes)
    counted = pd.crosstab(frame["y_true"], frame["y_pred"]).reindex(index=classes, columns=classes)
    assert cells(drawn) == [str(count) for count in counted.to_numpy().ravel()]


@pytest.mark.slow
def test_task_page_draws_curves_without_probabilities(tmp_path):
    task = catalog.task("phantom_ecg/cd")
    assert list(task.classes) != sorted(task.classes), "otherwise, alphabetical order would hide an error"
    for folder in ("with", "without"):
        example_results.write_result(tmp_path / folder, "org/two", task.name, 0.7, seed=2)
        path = example_results.write_result(tmp_path / folder, "org/one", task.name, 0.95, seed=1)
        if folder == "without":
            frame = pd.read_parquet(predictions_path(path))
            labels_alone = frame[[name for name in frame if not name.startswith("p_")]]
            save_scored(replace(ScoreResult.load(path)), labels_alone, path)
    curves, captions = {}, {}
    for folder in ("with", "without"):
        drawn = draw_report(collect([tmp_path / folder]), tmp_path / folder / "out", processes=1, kinds=("task",))
        saved = next(figure for figure in drawn.of("task", task.name) if figure.name == "curves")
        table = pd.read_csv(next(file for file in saved.files if file.suffix == ".csv"))
        curves[folder] = table[table["model"].str.startswith("org/two")].reset_index(drop=True)
        captions[folder] = saved.caption
    pd.testing.assert_frame_equal(curves["with"], curves["without"])
    assert (
        "prevalence of 50.0 % CD" in captions["without"]
        and "Without probabilities, or with many answers outside the classes: org/one" in captions["without"]
    )


def test_confusion_matrix_has_class_order_of_task():
    classes = ("none", "mild", "severe", "critical")
    names = np.array(classes, dtype=object)
    truth = np.array([0, 1, 2, 3, 3])
    frame = pd.DataFrame({"id": list("abcde"), "y_true": names[truth], "y_pred": names[[0, 1, 2, 3, 2]]})
    with figure_style():
        drawn = classification_figure({"m": frame}, "m", "x/y", classes)
    assert tick_labels(drawn) == list(classes)
    assert cells(drawn) == ["1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1", "0", "0", "0", "1", "1"]


def test_unknown_task_keeps_order_of_classes():
    labels_alone = pd.DataFrame({"y_true": ["z", "a"], "y_pred": ["z", "m"]})
    assert classes_of_unknown_task([labels_alone]) == ["z", "a", "m"]
    assert classes_of_unknown_task([labels_alone, answers(("z", "a"))]) == ["z", "a"]


def test_views_have_spokes_in_task_order():
    views = ("subcostal", "A4C", "PLAX")
    frame = pd.DataFrame({"y_true": [*views, "A4C"], "y_pred": ["subcostal", "A4C", "A4C", "A4C"]})
    assert view_scores(frame, views)["f1"].tolist() == pytest.approx([1, 0.8, 0])  # A4C: precision 2/3, recall 2/2.
    with figure_style():
        drawn = radar_figure("m", {"x/view": frame}, views)
    assert drawn.tables["views"]["view"].tolist() == list(views)
