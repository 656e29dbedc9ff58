"""Test learning curves: drawn patients, training data, refusals, and an end that equals the protocol's own result."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig, NotApplicable
from cardiobench.extensions.labels_saved import figures, write
from cardiobench.extensions.labels_saved.curves import curves_of, decide_savings, savings_table
from cardiobench.extensions.labels_saved.protocol import LearningCurve, learners
from cardiobench.extensions.labels_saved.subsets import draw_subsets
from cardiobench.protocols import protocol
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.protocols.patient_pool import nested_subsets, two_of_each
from cardiobench.protocols.task_scorer import TaskScorer
from cardiobench.report.plots.style import figure_style
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import Collection
from cardiobench.testing.protocol import with_other_test_rows
from tests.protocols.analyses import layers_of, study_of
from tests.protocols.conftest import BINARY, REGRESSION, VIEWS, task_data

SHARES = (0.1, 0.3, 1.0)
PROBE = {"penalties": [1.0], "resamples": 2}
CHEAP = {"shares": SHARES, "draws": 2, "options": {"probe": PROBE, "knn": {"neighbours": [3], "folds": 2}}}


@pytest.fixture(scope="module")
def clouds():
    """Return two classes of 100 and 60 patients with two recordings each; every fourth patient is test, every fifth validation."""
    rng = np.random.default_rng(0)
    patient = np.arange(320) // 2
    labels = np.where(patient < 100, "no", "yes")
    features = rng.normal(size=(320, 8))
    features[:, 0] += np.where(labels == "yes", 2, -2)
    split = np.select([patient % 4 == 0, patient % 5 == 1], ["test", "validation"], "train")
    return task_data(BINARY, features, labels.tolist(), split.tolist(), [f"p{one}" for one in patient])


def test_subsets_are_nested_and_keep_patients_together(clouds):
    pool = clouds.indices("train", "validation")
    small, middle, whole = nested_subsets(clouds, pool, SHARES, np.random.default_rng(1))
    assert set(small) < set(middle) < set(whole) == set(pool)
    for rows, share in ((small, 0.1), (middle, 0.3)):
        assert (np.bincount(clouds.patient_codes[rows]) % 2 == 0).all(), "all recordings of a patient, or none"
        assert np.bincount(clouds.labels[rows]) == pytest.approx(share * np.bincount(clouds.labels[pool]), abs=1)


def test_patient_of_two_classes_counts_as_rarer():
    labels = ["A2C"] * 40 + ["A2C", "PLAX"] * 10
    patients = [f"p{n}" for n in range(40)] + [f"q{n // 2}" for n in range(20)]
    data = task_data(VIEWS, np.eye(60), labels, ["train"] * 60, patients)
    for seed in range(5):
        (rows,) = nested_subsets(data, np.arange(60), (0.5,), np.random.default_rng(seed))
        assert np.sum(data.labels[rows] == 2) == 5


def test_two_patients_are_required_where_possible():
    data = task_data(BINARY, np.eye(6), ["no", "no", "no", "yes", "yes", "yes"], ["train"] * 6, list("abcdee"))
    every = np.arange(6)
    assert two_of_each(data, every, every) and not two_of_each(data, np.array([0, 1, 4, 5]), every)
    assert two_of_each(data, np.array([0, 1, 4]), np.array([0, 1, 4, 5])), "a single patient is positive"
    numbers = task_data(REGRESSION, np.eye(3), [1.0, 2, 3], ["train"] * 3, list("aab"))
    assert two_of_each(numbers, np.arange(3), np.arange(3)) and not two_of_each(numbers, np.arange(2), np.arange(3))


def test_unused_validation_patients_join_training(clouds):
    subsets, notes = draw_subsets(clouds, (0.01, *SHARES), 3, 0)
    assert [one.share for one in subsets] == list(SHARES) and "1 % of the patients (1) cannot include two" in notes[0]
    for subset in subsets:
        for data in subset.draws:
            assert np.array_equal(data.indices("test"), clouds.indices("test"))
            validation = data.indices("validation")
            assert not len(validation) or two_of_each(clouds, validation, validation)
    assert subsets[-1].draws[0] is clouds


def test_curve_ends_at_the_protocol_result(clouds):
    found = LearningCurve(learners=("probe",), **CHEAP).analyze(study_of(clouds), None)
    curve = found.tables["curve"]
    assert curve["patients"].tolist() == sorted(curve["patients"]) and curve["patients"].iloc[-1] == 120
    assert len(found.tables["draws"]) == 2 + 2 + 1 and list(found.tables["resamples"]) == list(found.values)
    probe, test = protocol("probe", **PROBE), clouds.indices("test")
    output = cut_by_validation(clouds, probe.predict(clouds, None, ""))
    (own,) = TaskScorer(BINARY, study_of(clouds).references(BINARY), 10, 0).of(clouds, test).score_all(
        [output.values], [output.cut]
    )  # fmt: skip
    assert curve["score"].iloc[-1] == own.value
    assert ((curve["low"] <= curve["score"]) & (curve["score"] <= curve["high"])).all()


def test_nothing_is_learned_from_test_rows(clouds, monkeypatch):
    made = LearningCurve(learners=("probe",), **CHEAP)
    before, after = (
        layers_of(monkeypatch, lambda one=data: made.analyze(study_of(one), None))
        for data in (clouds, with_other_test_rows(clouds))
    )
    assert len(before) == len(after) and all(map(np.array_equal, before, after))


def test_networks_are_trained_only_on_request():
    training = set(learners()) - set(learners(network=False))
    assert {"probe", "knn"} <= set(learners(network=False))
    assert all(protocol(name).keeps_training for name in training)
    config = RunConfig(models=("a/b",), seed=3)
    made = protocol("learning_curve", config)
    assert made.learners == learners(network=False) and made.options["probe"]["seed"] == 3
    assert not made.own_models((), ()) and made.takes("", ()) and not made.takes("another", ()) and made.from_embeddings


@pytest.mark.parametrize("name", sorted({*learners()} - {*learners(network=False)}))
def test_training_cost_is_estimated_first(clouds, name):
    """Check by hand: five draws of 44 % of the patients and one of all cost 3.2 times the work; 120 patients are not in test."""
    made = LearningCurve(learners=(name,))
    encoder = SimpleNamespace(trained_by=name, name="lab/a", network=torch.nn.Linear(2, 2))
    (variant,) = protocol(name).variants(BINARY)
    label = f"{name}.{variant}".rstrip(".")
    (known,) = made.price(study_of(clouds), encoder, {label: 10.0})
    assert "of 1, 4, 12, 36, 120 patients" in known and "3.2 times the work" in known and known.endswith("about 32 s")
    assert not made.from_embeddings and "about" not in made.price(study_of(clouds), encoder, {})[0]
    assert LearningCurve(learners=("probe",)).price(study_of(clouds), None, {}) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learners": ["zero_shot"]}, "does not learn from training patients. Choose among .*probe"),
        ({"learners": ["learning_curve"]}, "does not learn"),
        ({"shares": [0.1, 0.3]}, "ascending shares that end with 1"),
        ({"shares": [0.3, 0.1, 1]}, "ascending shares"),
        ({"shares": [0, 1]}, "above 0 and at most 1"),
        ({"draws": 1}, "a whole number from 2 to 1,000"),
    ],
)
def test_tasks_without_a_curve_are_refused(options, message):
    with pytest.raises(Exception, match=message) as raised:
        protocol("learning_curve", **options)
    assert isinstance(raised.value, BadConfig.__base__)


def test_task_without_train_rows_is_not_applicable(clouds):
    only_test = clouds.with_splits(np.full(len(clouds.rows), "test"))
    with pytest.raises(NotApplicable, match="no training rows"):
        LearningCurve(learners=("probe",)).analyze(study_of(only_test), None)


def record(clouds, name, learner="probe", **changed):
    made = LearningCurve(learners=(learner,), **CHEAP)
    found = made.analyze(study_of(clouds, **changed), None)
    options = {**made.get_params(), **found.options}
    return AnalysisResult(
        "learning_curve", "toy/as", ("toy/as",), found.values, found.tables, {}, options, models=({"name": name},)
    )


def drawn_curves(records):
    """Return the figure's axes, and the points of each curve by its name."""
    with figure_style():
        (figure,) = figures.draw_side_by_side(records).values()
    axes = figure.axes[0]
    return axes, {line.get_label().split("\n")[0]: line.get_xydata() for line in axes.lines}


def test_scores_and_patients_needed_follow_from_the_points_of_the_curves(clouds):
    """Recompute the numbers of the tables from the drawn points, which those of another learner do not give."""
    records = [record(clouds, "lab/a"), record(clouds, "lab/b", "knn")]
    axes, points = drawn_curves(records)
    shown = {}
    for one in records:
        learner = one.tables["curve"]["learner"].iloc[0]
        means = one.tables["draws"].groupby("patients")["score"].mean()
        shown[one.models[0]["name"]] = points[f"{one.models[0]['name']}, {learner}"]
        np.testing.assert_allclose(shown[one.models[0]["name"]], np.c_[means.index, 100 * means], atol=1e-9)
        last = one.values[f"{learner} at {means.index[-1]}"]
        assert shown[one.models[0]["name"]][-1, 1] == pytest.approx(100 * last.value)
    floor = next(line for line in axes.lines if line.get_label().startswith("floor"))
    assert floor.get_ydata()[0] == pytest.approx(100 * records[0].tables["curve"]["floor"].iloc[0])
    assert not np.allclose(shown["lab/a"], shown["lab/b"]), "another learner has other points"


def test_two_revisions_of_a_model_have_a_curve_each(clouds):
    first, second = record(clouds, "lab/a"), record(clouds, "lab/a")
    second = replace(second, models=({"name": "lab/a", "revision": "2" * 40},))
    first = replace(first, models=({"name": "lab/a", "revision": "1" * 40},))
    learner = first.tables["curve"]["learner"].iloc[0]
    found = curves_of([first, second])
    assert [*found.tables] == [f"lab/a 1111111, {learner}", f"lab/a 2222222, {learner}"]
    assert [*curves_of([first, replace(second, models=first.models)]).tables] == [f"lab/a, {learner}"]


def test_patients_needed_are_read_from_the_points():
    """Interpolate the drawn points by hand, on the axis of patients, which is logarithmic."""

    def made(name, scores):
        rows = pd.DataFrame({"learner": "probe", "patients": [10, 100, 1000], "score": scores})
        table = rows.assign(low=rows["score"], high=rows["score"], test_patients=50, reference="")
        table = table.assign(metric="f1_macro", unit="", better="higher", floor=0.5)
        resamples = pd.DataFrame(np.tile(scores, (20, 1)), columns=[f"probe at {count}" for count in rows["patients"]])
        return AnalysisResult(
            "learning_curve",
            "toy/as",
            ("toy/as",),
            {},
            {"curve": table, "resamples": resamples},
            models=({"name": name},),
        )

    records = [made("lab/a", [0.55, 0.7, 0.9]), made("lab/b", [0.4, 0.5, 0.75])]
    _, points = drawn_curves(records)
    (savings,), _ = decide_savings([curves_of(records)])
    needed = savings_table(savings).set_index("learner")["patients_needed"]
    place, height = np.log10(points["lab/a, probe"][:, 0]), points["lab/a, probe"][:, 1]
    by_hand = 10 ** np.interp(points["lab/b, probe"][-1, 1], height, place)
    assert needed["lab/a, probe"].split(" (")[0] == f"{by_hand:.0f}" == "178"
    assert needed["lab/b, probe"].startswith("more than all 1000")


@pytest.mark.slow
def test_models_are_listed_with_the_patients_they_need(clouds, tmp_path):
    records = [record(clouds, "lab/a"), record(clouds, "lab/b", "knn"), record(clouds, "lab/c", seed=1)]
    curves = curves_of(records)
    assert [one.name for one in curves.curves] == ["lab/a, probe", "lab/b, knn"]
    assert curves.unpaired == ("lab/c, probe",), "from other resamples"
    assert decide_savings([curves])[1] == 1, "one pair"
    with figure_style():
        axes = figures.draw_side_by_side(records)["curves"].axes[0]
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(texts) == 4 and sum("\n" in text for text in texts) == 1
    collection = Collection([], analyses=[(tmp_path / "a.json", one) for one in records])
    files, problems = write.write_labels_saved(collection, tmp_path)
    assert len(files) == 4 and "lab/c, probe" in str(problems[0])
    page = files[0].read_text("utf-8")
    assert "| lab/a, probe | lab/b, knn |" in page and page.count("|\n") == 4
    assert page.index("needs fewer patients") < page.index("needs more patients"), (
        "neighbours learn these clouds slowly"
    )
    assert "corrected together" not in page, "one pair"
    assert len(pd.read_csv(files[1])) == 2


@pytest.mark.slow
def test_missing_curves_are_reported(clouds, tmp_path):
    one = Collection([], analyses=[(tmp_path / "a.json", record(clouds, "lab/a"))])
    assert "nothing to compare it with" in write.write_labels_saved(one, tmp_path)[0][0].read_text("utf-8")
    nothing = write.write_labels_saved(Collection([]), tmp_path)[0]
    assert "There are no records" in nothing[0].read_text("utf-8") and len(nothing) == 1


def test_one_point_curves_are_drawn_not_compared(clouds, tmp_path):
    whole = record(clouds, "lab/a")
    end = replace(whole, tables={**whole.tables, "curve": whole.tables["curve"].tail(1)})
    assert not curves_of([end]).curves
    with figure_style():
        legend = figures.draw(end)["curves"].axes[0].get_legend()
    assert not legend.get_title().get_text()


def test_four_curves_keep_their_colours(clouds):
    """Check that no area covers a curve, and that each interval has the colour of its curve and the values of its rows."""
    one = record(clouds, "lab/a")
    records = [replace(one, models=({"name": f"lab/{letter}"},)) for letter in "abcd"]
    with figure_style():
        axes = figures.draw_side_by_side(records)["curves"].axes[0]
    assert all(isinstance(one, LineCollection) for one in axes.collections) and len(axes.collections) == 4
    colours = [to_rgba(line.get_color()) for line in axes.lines if not line.get_label().startswith("floor")]
    assert len(set(colours)) == 4
    shifts = set()
    for bars, line, colour in zip(axes.collections, axes.lines, colours, strict=False):
        assert tuple(bars.get_edgecolor()[0]) == colour, "opaque"
        rows = records[0].tables["curve"]
        ends = np.array([path[:, 1] for path in bars.get_segments()])
        np.testing.assert_allclose(ends, 100 * rows[["low", "high"]].to_numpy())
        shifts.add(tuple(line.get_transform().transform((10, 50)).round(3)))
    assert len(shifts) == 4, "beside each other on the screen"
