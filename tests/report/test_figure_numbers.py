"""Recompute the numbers of tables from the points that figures draw, and not from another result's answers."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from cardiobench.data import catalog
from cardiobench.metrics.load import load_metric
from cardiobench.report.plots import curves
from cardiobench.report.plots.groups import group_errors_figure, groups_figure
from cardiobench.report.plots.predictions import agreement_figure, classification_figure
from cardiobench.report.plots.scores import scores_figure
from cardiobench.report.plots.style import figure_style
from tests.report import example_results


def lines(figure, title):
    """Return the points of the model's line in a panel, as matplotlib draws them. The shape is (m, 2)."""
    axes = next(axes for axes in figure.axes if axes.get_title(loc="left") == title)
    return next(line.get_xydata() for line in axes.lines if not line.get_label().startswith("_"))


def of_curves(frame, task):
    """Return the numbers that follow from the figure of a classification."""
    classes = catalog.task(task).classes
    with figure_style():
        drawn = classification_figure({"m": frame}, "m", task, classes)
    table = drawn.tables["curves"]
    for curve, rows in table[table["curve"] != "operating point"].groupby("curve"):
        np.testing.assert_array_equal(lines(drawn.figure, curve), rows[["x", "y"]])
    points = {name: rows for name, rows in table.groupby("curve")}
    counts = drawn.tables["confusion"].set_index("true").to_numpy()
    texts = next(axes for axes in drawn.figure.axes if axes.get_xlabel() == "predicted").texts
    assert [text.get_text() for text in texts] == counts.astype(str).ravel().tolist()
    hits, true, said = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    reliability = points["reliability"]
    binary = {
        "mean_probability": (reliability["share"] * reliability["x"]).sum(),
        "observed_share": (reliability["share"] * reliability["y"]).sum(),
    }
    return {
        **(binary if len(classes) == 2 else {}),
        "auroc": np.trapezoid(points["ROC"]["y"], points["ROC"]["x"]),
        "auprc": np.trapezoid(points["precision-recall"]["y"], points["precision-recall"]["x"]),
        "accuracy": hits.sum() / counts.sum(),
        "f1_macro": (2 * hits / (true + said))[true > 0].mean(),
    }


@pytest.mark.parametrize("task", ["phantom_ecg/cd", "phantom_echo/view"])
def test_areas_calibration_error_and_confusion_equal_the_scores(task):
    joined, result = example_results.scored_example(task, 0.6, 1)
    other, _ = example_results.scored_example(task, 0.6, 2)
    stored = {**{key: one.value for key, one in result.overall.items()}, **result.further}
    found, wrong = of_curves(joined.frame, task), of_curves(other.frame, task)
    assert found == pytest.approx({key: stored[key] for key in found}, abs=1e-12)
    same = {"observed_share"}  # Both results are about the same patients.
    assert all(abs(wrong[key] - stored[key]) > 1e-4 for key in found.keys() - same), "answers of another result"


def test_reliability_of_several_classes_gives_the_calibration_error():
    joined, _ = example_results.scored_example("phantom_echo/view", 0.6, 1)
    classes = catalog.task("phantom_echo/view").classes
    bins = curves.reliability(joined.frame, classes)
    codes = joined.frame["y_true"].map(list(classes).index)
    report = load_metric("classification_report")
    error = report.compute(codes, joined.frame[[f"p_{label}" for label in classes]].to_numpy())["ece"]
    assert (bins["share"] * (bins["x"] - bins["y"]).abs()).sum() == pytest.approx(error, abs=1e-12)


def test_constant_prediction_has_the_prevalence_as_area_under_precision_recall():
    truth = np.resize([True, False], 20)[:, None]
    x, y = curves.precision_recall(truth, np.full((20, 1), 0.4))
    assert (list(x), list(y)) == ([0, 1], [0.5, 0.5])


@pytest.mark.parametrize("classes", [1, 4])
def test_simplified_curves_keep_their_area(classes):
    """Compare 5,000 rows, some with equal scores, with scikit-learn's scores."""
    rng = np.random.default_rng(0)
    truth = rng.random((5000, classes)) < 0.3
    scores = rng.normal(size=(5000, classes)).round(3) + truth
    columns = [(truth[:, k], scores[:, k]) for k in range(classes)]
    for function, score in ((curves.roc, roc_auc_score), (curves.precision_recall, average_precision_score)):
        x, y = function(truth, scores)
        assert len(x) <= 2 * curves.MAX_STEPS + 1 and (np.diff(x) >= 0).all()
        assert np.trapezoid(y, x) == pytest.approx(np.mean([score(*pair) for pair in columns]), abs=1e-12)


@pytest.mark.parametrize("task", ["phantom_echo/view", "phantom_echo/ef"])
def test_scores_groups_and_gaps_equal_the_result(task):
    joined, result = example_results.scored_example(task, 0.6, 1)
    _, other = example_results.scored_example(task, 0.6, 2)
    result, other = (dataclasses.replace(one, model={"name": name}) for one, name in ((result, "m"), (other, "n")))
    factor = result.number().factor
    found = catalog.task(task)
    with figure_style():
        scores = scores_figure([result])
        groups = groups_figure([result, other], result, found, joined.frame)
    axes = scores.figure.axes[0]
    drawn = np.concatenate([line.get_xydata()[:, 0] for line in axes.lines if line.get_label().startswith("_")])
    assert drawn.tolist() == [factor * result.score.value]
    floor = next(line for line in axes.lines if line.get_label().startswith("floor"))
    assert floor.get_xdata()[0] == factor * result.floor.value
    assert floor.get_label() == f"floor {factor * result.floor.value:.2f}"
    (segments,) = next(c.get_segments() for c in axes.collections if len(c.get_segments()))
    assert segments[:, 0].tolist() == [factor * result.score.low, factor * result.score.high]

    markers = [line.get_xydata() for line in groups.figure.axes[0].lines if line.get_label().startswith("_")]
    by_height = dict(sorted(((y, x) for x, y in np.concatenate(markers)), reverse=True))
    names = [(name, group) for name, breakdown in result.groups.items() for group in breakdown.values]
    values = pd.Series([x / factor for x in by_height.values()], pd.MultiIndex.from_tuples(names))
    for name, breakdown in result.groups.items():
        own = values[name].dropna()
        gap = own.max() - own.min() if len(own) > 1 else np.nan
        assert gap == pytest.approx(breakdown.gap.value, abs=1e-12, nan_ok=True), name
        of_other = other.groups[name].gap.value
        assert np.isnan(gap) or abs(gap - of_other) > 1e-6, "another result has other gaps"


def boxes(axes):
    """Return lower quartile, median, upper quartile and mean by height of the box, as matplotlib draws them."""
    found = {}
    for patch in axes.patches:
        x, y = patch.get_path().vertices.T
        found[y[:4].mean().round(6)] = [x.min(), None, x.max(), None]
    for line in axes.lines:
        x, y = line.get_xydata().T
        if len(x) == 2 and x[0] == x[1] and (own := found.get(y.mean().round(6))) and own[0] <= x[0] <= own[2]:
            own[1] = x[0]
        elif len(x) == 1 and (own := found.get(y[0].round(6))):
            own[3] = x[0]
    return found


def test_boxes_of_all_models_give_the_errors_of_each_group():
    """Recompute quartiles and means from the answers, which the boxes of another model do not show."""
    answers = []
    for number, name in enumerate("mn"):
        joined, made = example_results.scored_example("phantom_echo/ef", 0.6, number + 1)
        answers.append((dataclasses.replace(made, model={"name": name}), joined.frame))
    task = catalog.task("phantom_echo/ef")
    with figure_style():
        drawn = group_errors_figure(answers, task)
    found = boxes(drawn.figure.axes[0])
    expected = []
    for result, frame in answers:
        errors = (frame["y_pred"] - frame["y_true"]).abs()
        groups = [(name, group) for name, breakdown in result.groups.items() for group in breakdown.values]
        quantiles = drawn.tables["errors_by_group"].set_index(["model", "breakdown", "group"]).loc[result.model["name"]]
        sex = errors.groupby(frame["sex"])
        for group, own in sex:
            assert quantiles.loc[("sex", group), ["q1", "med", "q3", "mean"]].tolist() == pytest.approx(
                [*own.quantile([0.25, 0.5, 0.75]), own.mean()]
            )
        expected.append(
            [quantiles.loc[one, ["q1", "med", "q3", "mean"]].tolist() for one in groups if one in quantiles.index]
        )
    assert len(found) == 2 * len(expected[0])
    in_order = [found[height] for height in sorted(found, reverse=True)]
    assert np.array(in_order[::2]) == pytest.approx(np.array(expected[0]))
    assert np.array(in_order[1::2]) == pytest.approx(np.array(expected[1]))
    assert not np.allclose(expected[0], expected[1])


def test_errors_of_a_measurement_follow_from_the_dots():
    joined, result = example_results.scored_example("phantom_echo/ef", 0.6, 1)
    other, _ = example_results.scored_example("phantom_echo/ef", 0.6, 2)
    result = dataclasses.replace(result, model={"name": "m"})
    found = []
    for frame in (joined.frame, other.frame):
        with figure_style():
            above, below = agreement_figure(result, frame).figure.axes
        measured, predicted = above.lines[0].get_xydata().T
        means, differences = below.lines[0].get_xydata().T
        np.testing.assert_allclose(differences, predicted - measured)
        np.testing.assert_allclose(means, (predicted + measured) / 2)
        assert below.lines[1].get_ydata()[0] == pytest.approx(differences.mean(), abs=1e-12), "the line of the bias"
        found.append(np.abs(differences).mean())
    assert found[0] == pytest.approx(result.score.value, abs=1e-12)
    assert abs(found[1] - result.score.value) > 1e-3
