"""Pictures: curves against scikit-learn, errors against numpy, places by hand, and the same bytes however they are drawn."""

import dataclasses
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.report.page.render import drawn, write_html
from cardiobench.report.plots import curves, draw
from cardiobench.report.plots.groups import QUANTILES, errors
from cardiobench.report.plots.panel import Panel, _numbers, around, words
from cardiobench.report.plots.style import new_figure, style
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import Problem, collect
from cardiobench.results.record import CHECKSUM, checksum
from tests.report import example_results

answers = st.lists(
    st.tuples(st.booleans(), st.floats(0, 1).map(lambda share: round(share, 2))), min_size=1, max_size=200
)


@settings(deadline=None, max_examples=200)
@given(answers)
def test_curves_are_those_of_scikit_learn(rows):
    """Equal to the last bit, ties and single classes included."""
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import precision_recall_curve, roc_curve

    truth, share = (np.array(column) for column in zip(*rows, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, y, _ = roc_curve(truth, share)
        precision, recall, _ = precision_recall_curve(truth, share)
    if truth.any() and not truth.all():
        np.testing.assert_array_equal(curves.roc(truth, share), (x, y))
        observed, predicted = calibration_curve(truth, share, n_bins=curves.BINS, strategy="quantile")
        np.testing.assert_array_equal(curves.calibration(truth, share), (predicted, observed))
    else:
        assert not len(curves.roc(truth, share)[0])
    if truth.any():
        np.testing.assert_array_equal(curves.precision_recall(truth, share), (recall, precision))
    else:
        assert not len(curves.precision_recall(truth, share)[0])


def test_errors_of_groups_are_those_of_their_rows():
    task = catalog.task("phantom_echo/ef")
    joined, result = example_results.scored_example("phantom_echo/ef", 0.6, 1)
    table = errors(task, result, joined.frame).set_index(["breakdown", "group"])
    women = joined.frame[joined.frame["sex"] == "F"]
    off = (women["y_pred"] - women["y_true"]).abs()
    row = table.loc[("sex", "F")]
    assert row["error_mean"] == pytest.approx(off.mean())
    assert row[QUANTILES].tolist() == pytest.approx(np.percentile(off, [5, 25, 50, 75, 95]).tolist())
    assert row["error_mean"] == pytest.approx(result.groups["sex"].values["F"].value), "their mean is the group's MAE"


@pytest.mark.parametrize(
    ("scale", "texts"),
    [
        ((0.1, 10.4), ["2.5", "5.0", "7.5", "10.0"]),
        ((0.47, 0.99), ["0.6", "0.8"]),
        ((-2.4, 2.2), ["−2", "−1", "0", "1", "2"]),
        ((0.0, 4.2e-4), ["0.0000", "0.0001", "0.0002", "0.0003", "0.0004"]),
        ((0.0, 30000.0), ["0", "10000", "20000", "30000"]),
    ],
)
def test_numbers_of_a_scale_have_the_decimals_of_their_step(scale, texts):
    ticks, shown = _numbers(scale, None)
    assert shown == texts
    assert [float(text.replace("−", "-")) for text in shown] == pytest.approx(list(ticks))


def test_a_scale_holds_every_finite_number():
    assert around([np.nan, 1.0], [3.0], margin=0.5) == (0.0, 4.0)
    assert around([], [np.nan]) == (0.0, 1.0)
    low, high = around([7.0, 7.0])
    assert low < 7 < high


def test_a_point_of_a_panel_stands_where_a_ruler_says(tmp_path):
    """The middle of a panel from 1 to 3 inches is 2 inches from the left: 144 points, of 72 an inch."""
    with style():
        figure = new_figure(4, 2)
        panel = Panel(figure, (1.0, 0.5, 2.0, 1.0), (0, 10), (0, 1))
        panel.words(5, 0.5, "<middle> $x$ & \u202e", ha="center", va="baseline")
        words(figure, 1.0, 0.5, "turned", rotation=90, ha="center")
        figure.savefig(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    found = re.search(r"<text [^>]*>&lt;middle&gt; \$x\$ &amp;[^<]*</text>", text)
    assert "text-anchor: middle" in found[0]
    assert [float(n) for n in re.search(r'x="([\d.]+)" y="([\d.]+)"', found[0]).groups()] == pytest.approx([144, 72])
    assert "rotate(-90" in text
    figure.savefig(tmp_path / "a.png", dpi=100)
    assert (tmp_path / "a.png").stat().st_size > 500


def test_one_process_and_several_draw_the_same_bytes(tmp_path):
    example_results.folder_of_results(tmp_path / "r")
    example_results.write_result(tmp_path / "r", "org/three", "phantom_echo/view", 0.5, seed=5)
    collection = collect([tmp_path / "r"])
    one = drawn(collection, tmp_path / "one", processes=1)
    two = drawn(collection, tmp_path / "two", processes=2)
    assert len(one.of) == 7 > draw.FEW and not one.problems + two.problems
    files = sorted((tmp_path / "one" / "pictures").iterdir())
    assert {file.suffix for file in files} == {".svg", ".csv"}
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / "pictures" / file.name).read_bytes(), file.name
    assert {key: [d.svg for d in own] for key, own in one.of.items()} == {
        key: [d.svg for d in own] for key, own in two.of.items()
    }


def test_damaged_answers_are_named_and_the_rest_is_drawn(tmp_path):
    path = example_results.write_result(tmp_path / "r", "org/one", "phantom_echo/ef")
    example_results.write_result(tmp_path / "r", "org/two", "phantom_echo/ef", 0.5, seed=2)
    path.with_suffix(".predictions.parquet").write_bytes(b"PAR1 cut off")
    found = drawn(collect([tmp_path / "r"]), tmp_path / "out", processes=1)
    assert [problem.kind for problem in found.problems] == ["no answers"]
    assert [picture.name for picture in found.of["task", "phantom_echo/ef"]] == ["scores", "agreement", "groups"]


def similarity(model, near, digest="d" * 16, **more):
    """A record of three frames whose neighbours have that cosine."""
    cosine = near ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    frame, other = np.indices(cosine.shape)
    matrix = pd.DataFrame({"frame": frame.ravel(), "other": other.ravel(), "cosine": cosine.ravel()})
    values = {key: point_estimate(near, n=12) for key in ("frames of a clip", "frames between patients", "difference")}
    return AnalysisResult(
        "frame_similarity",
        "phantom_echo",
        ("phantom_echo/ef",),
        values,
        {"matrix": matrix, "apart": pd.DataFrame({"frames_apart": [0, 1, 2], "cosine": cosine[0]})},
        models=({"name": model},),
        datasets=(
            {
                "name": "phantom_echo",
                "version": example_results.VERSION,
                "digest": digest,
                "twin": False,
                "limit": None,
            },
        ),
        **more,
    )


def test_frame_similarities_stand_side_by_side_in_one_scale(tmp_path):
    from cardiobench.report.plots import frame_similarity

    example_results.write_result(tmp_path / "r", "org/one", "phantom_echo/ef")
    for model, near in (("org/one", 0.9), ("org/two", 0.5)):
        folder = tmp_path / "r" / model.replace("/", "__") / "r1" / "frame_similarity"
        similarity(model, near, seen_in_pretraining={"phantom_echo": model == "org/two"}).save(
            folder / "phantom_echo__.json"
        )
    collection = collect([tmp_path / "r"])
    pictures = drawn(collection, tmp_path / "out", processes=1)
    ((records, (picture,)),) = pictures.beside
    assert [record.models[0]["name"] for record in records] == ["org/one", "org/two"]
    assert "n = 12" in picture.caption and {file.suffix for file in picture.files} == {".png", ".svg", ".csv"}
    table = pd.read_csv(next(file for file in picture.files if file.suffix == ".csv"))
    assert table.groupby("model")["cosine"].min().tolist() == pytest.approx([0.81, 0.25])
    figure = frame_similarity.beside(records)["side_by_side"]
    limits = {panel.images[0].get_clim() for panel in figure.axes if panel.images}
    assert limits == {(0.25, 1.0)}, "one scale of colours"
    page = write_html(collection, tmp_path / "out", drawings=pictures).read_text()
    assert "Between models" in page and "org/two: seen in pretraining: phantom_echo" in page


def test_a_study_of_other_data_than_is_ranked_is_said_and_not_shown(tmp_path):
    example_results.write_result(tmp_path, "org/one", "phantom_echo/ef")
    folder = tmp_path / "org__one" / "r1" / "frame_similarity"
    similarity("org/one", 0.9).save(folder / "phantom_echo__a.json")
    similarity("org/one", 0.9, digest="e" * 16).save(folder / "phantom_echo__b.json")
    dataclasses.replace(similarity("org/one", 0.9), datasets=({"name": "camus", "version": "9"},)).save(
        folder / "camus__c.json"
    )
    found = collect([tmp_path])
    assert sorted(path.name for path, _ in found.analyses) == ["camus__c.json", "phantom_echo__a.json"]
    (problem,) = found.problems
    assert problem.kind == "other data" and problem.file.endswith("phantom_echo__b.json")
    assert "digest eeeeeeeeeeee" in problem.message and "digest dddddddddddd" in problem.message


def test_a_study_that_does_not_say_how_many_patients_were_used_is_told_by_its_data(tmp_path):
    example_results.write_result(tmp_path, "org/one", "phantom_echo/ef", dataset={"limit": 5})
    folder = tmp_path / "org__one" / "r1" / "frame_similarity"
    whole = similarity("org/one", 0.9)
    silent = {key: value for key, value in whole.datasets[0].items() if key != "limit"}
    dataclasses.replace(whole, datasets=(silent,)).save(folder / "phantom_echo__a.json")
    whole.save(folder / "phantom_echo__b.json")
    found = collect([tmp_path])
    assert [path.name for path, _ in found.analyses] == ["phantom_echo__a.json"]
    assert "first 5 patients" in found.problems[0].message


def test_numbers_of_a_study_are_marked_like_scores():
    record = similarity("org/one", 0.9, seen_in_pretraining={"phantom_echo": True, "camus": None})
    limited = dataclasses.replace(record, datasets=({"name": "phantom_echo", "twin": True, "limit": 5},))
    assert tables.analysis_flags(limited) == [
        "seen in pretraining: phantom_echo",
        "synthetic twin: phantom_echo",
        "first 5 patients",
    ]
    (row, *_), columns = tables.analysis_rows(limited), tables.ANALYSIS_COLUMNS
    assert dict(zip(columns, row, strict=True))["flags"].startswith("seen in pretraining: phantom_echo")
    assert tables.analysis_rows(dataclasses.replace(record, seen_in_pretraining={}))[0][-1] == "–"


@pytest.mark.parametrize("junk", [{"models": [{}]}, {"datasets": ["x"]}, {"seen_in_pretraining": "yes"}])
def test_a_record_that_was_edited_into_nonsense_is_refused(tmp_path, junk):
    import json

    path = tmp_path / "phantom_echo__a.json"
    similarity("org/one", 0.9).save(path)
    content = {**json.loads(path.read_text()), **junk}
    path.write_text(json.dumps({**content, CHECKSUM: checksum(content)}))
    with pytest.raises(BadData, match="no AnalysisResult of schema"):
        AnalysisResult.load(path)


def test_a_missing_picture_is_not_called_unranked():
    kinds = ("no picture", "no answers", "no examples", "edited by hand", "other data")
    told = [Problem("x", kind, "why").consequence for kind in kinds]
    assert told == ["not drawn", "not drawn", "not shown", "not ranked", "not ranked"]
