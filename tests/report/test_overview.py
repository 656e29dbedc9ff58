"""The overview's arithmetic, by hand."""

import dataclasses
import math

import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.report.overview import STEPS, ScoreCell, marks, missing_reason, overview_tables, skill
from cardiobench.report.page.examples import worst_predictions
from cardiobench.results.collect import Entry
from tests.results.test_formatting import NAN, result


def entry(path="r.json", **more):
    from pathlib import Path

    return Entry(Path(path), result(**more))


def test_skill_is_the_share_of_the_way_to_perfect():
    # floor 0.5: half of the way to 1 is 0.75; an error of half the floor is half of the way to 0.
    assert skill(result(0.75)) == pytest.approx(0.5)
    assert skill(result(0.5)) == 0.0
    assert skill(result(1.0)) == 1.0
    assert skill(result(0.25, metric="mae", higher=False)) == pytest.approx(0.5)
    assert skill(result(1.0, metric="mae", higher=False)) == pytest.approx(-1.0)
    assert math.isnan(skill(result(NAN)))


def test_a_perfect_floor_leaves_no_room():
    from cardiobench.results.score_result import Floor

    perfect = dataclasses.replace(result(1.0), floors={"best_uninformed": Floor(1.0)})
    assert math.isnan(skill(perfect))


@pytest.mark.parametrize(
    "value, shade", [(-1, -2), (-0.1, -1), (0, 0), (0.1, 1), (0.2, 2), (0.5, 3), (0.9, 4), (NAN, 0)]
)
def test_shades(value, shade):
    assert ScoreCell(entry(), value, ()).shade == shade and len(STEPS) == 6


def test_marks_of_everything_that_a_reader_must_see():
    one = result(collapsed=True, seen_in_pretraining=True)
    one = dataclasses.replace(one, dataset={"name": "tmed2", "twin": True, "limit": 5})
    assert marks(one) == (
        "no information shown",
        "collapsed",
        "seen in pretraining",
        "incomplete",
        "synthetic twin",
        "part of the data",
    )


def test_tables_by_kind_and_coverage_of_each_row():
    entries = [
        entry(task="camus/ef", model="a", metric="mae", higher=False),
        entry(task="camus/ef", model="b", metric="mae", higher=False),
        entry(task="echonet_dynamic/ef", model="a", metric="mae", higher=False),
        entry(task="camus/view", model="a"),
        entry(task="ptb_xl/af", model="c"),
        entry(task="nobody/knows", model="c"),
    ]
    made = overview_tables(entries)
    assert [board.name for board in made] == ["Echo: measurements", "Echo: views", "ECG: diagnoses", "Other tasks"]
    first = made[0]
    assert first.tasks == ("camus/ef", "echonet_dynamic/ef")
    assert [(row.model, row.covered, len(row.cells)) for row in first.rows] == [("a", 2, 2), ("b", 1, 2)]
    assert first.rows[1].cells[1] == "not run"


def test_two_ways_of_running_a_model_are_two_rows():
    one, two = entry(), entry()
    two = Entry(two.path, dataclasses.replace(two.result, model={"name": "org/name", "revision": "other"}))
    (board,) = overview_tables([one, two])
    assert [row.setting for row in board.rows] == ["", "other"]


def test_why_a_cell_is_empty():
    from cardiobench.models.cards import card

    mute, ecg = card("cardiobench/pixel-motion"), card("cardiobench/minirocket")
    assert missing_reason(mute, "zero_shot", catalog.task("camus/ef")) == "not applicable: no text tower"
    assert missing_reason(mute, "native", catalog.task("camus/ef")).startswith("not applicable: none of its own heads")
    assert missing_reason(ecg, "probe", catalog.task("camus/ef")) == "not applicable: the model takes ecg"
    assert missing_reason(mute, "probe", catalog.task("camus/ef")) == "not run"
    assert missing_reason(None, "zero_shot", catalog.task("camus/ef")) == "not run", "nobody knows the model"


def test_a_model_without_text_is_said_to_be_not_applicable_beside_zero_shot_ones():
    zero = dataclasses.replace(result(model="org/clip", task="camus/view"), protocol="zero_shot")
    made = overview_tables([Entry(entry().path, zero), entry(model="cardiobench/pixel-motion", task="camus/view")])
    mute = [row for row in made[0].rows if row.model == "cardiobench/pixel-motion" and row.protocol == "zero_shot"]
    assert mute[0].cells == ("not applicable: no text tower",) and mute[0].covered == 0


def test_the_worst_items_by_hand():
    ef = pd.DataFrame({"id": ["a", "b", "c"], "y_true": [50.0, 60.0, 70.0], "y_pred": [51.0, 40.0, 73.0]})
    assert worst_predictions(ef, catalog.task("camus/ef"), 2)[["id", "error"]].values.tolist() == [
        ["b", 20.0],
        ["c", 3.0],
    ]
    task = catalog.task("phantom_ecg/cd")
    no, yes = task.classes
    frame = pd.DataFrame({"id": ["a", "b", "c"], "y_true": [no, yes, no], "y_pred": [yes, no, no]})
    frame[f"p_{no}"], frame[f"p_{yes}"] = [0.4, 0.9, 0.8], [0.6, 0.1, 0.2]
    found = worst_predictions(frame, task)
    assert found["id"].tolist() == ["b", "a"] and found["error"].tolist() == pytest.approx([0.9, 0.6])
